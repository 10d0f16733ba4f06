//! A program that uses only the packaged crates: its custom sandbox passes the conformance suite, and two agents run in one process
//! on a current-thread runtime.

use ralph_loop_core::{Completion, LoopAgent};
use ralph_loop_domain::ports::{
    Agent, AgentRequests, Capabilities, ExecOutcome, ExecRequest, ExecSink, ReleaseWhen, Sandbox,
    SandboxCapabilities, SandboxError, SessionReport, SessionRequest, SessionSink, WriteMode,
};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::Usage;
use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_testkit::conformance::{self, Subject};
use std::path::Path;
use std::time::Duration;

/// A custom sandbox that wraps another.
struct Own(Box<dyn Sandbox>);

impl Sandbox for Own {
    fn kind(&self) -> &'static str {
        "own"
    }
    fn capabilities(&self) -> SandboxCapabilities {
        self.0.capabilities()
    }
    fn root(&self) -> &Path {
        self.0.root()
    }
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        self.0.exec(request, sink)
    }
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        self.0.read(path)
    }
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        self.0.write(path, bytes, mode)
    }
    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        self.0.remove(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        self.0.list(path)
    }
    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(Self(self.0.new_connection()?)))
    }
    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(Self(self.0.with_root(root)?)))
    }
}

/// A custom agent that writes its name.
struct Writer(AgentName);

impl Agent for Writer {
    fn name(&self) -> &AgentName {
        &self.0
    }
    fn session(
        &self,
        _: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        _: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        sandbox.write(Path::new("DONE.md"), self.0.as_str().as_bytes(), WriteMode::Replace)?;
        Ok(SessionReport {
            end: SessionEnd::Completed,
            final_message: "Done.".into(),
            usage: Usage::free(),
            response: Default::default(),
            duration: Duration::ZERO,
            exit_code: None,
            survivors: 0,
            wishes: AgentRequests::default(),
        })
    }
    fn release_resources(&self, _: ReleaseWhen) {}
}

fn agent(folder: &Path, name: &str) -> LoopAgent {
    let memory = MemorySandbox::default();
    LoopAgent::builder()
        .workspace(MemoryWorkspace::new(&memory))
        .sandbox(Own(Box::new(memory)))
        .agent(Writer(name.into()))
        .task("Write DONE.md.")
        .repo(folder.join(name))
        .records(folder.join("records"))
        .completion(Completion::file("DONE.md"))
        .build()
        .expect("everything is there")
}

/// Runs all checks.
pub fn main() {
    ralph_loop_sandbox::init();
    let temp = tempfile::tempdir().expect("a folder");
    let place = temp.path().join("sandbox");
    std::fs::create_dir(&place).expect("a folder");
    let vars = std::env::vars_os().collect();
    let local = LocalSandbox::start(&place, LocalOptions::new("outside", &vars)).expect("a sandbox");
    let own = Own(Box::new(local));
    let capabilities = Capabilities {
        streaming: true,
        separate_stderr: true,
        stdin: true,
        parallel: true,
        ..Capabilities::default()
    };
    conformance::run(&Subject::of_sandbox(&own, capabilities)).assert_passed();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (left, right) = (agent(temp.path(), "left"), agent(temp.path(), "right"));
    runtime.block_on(async {
        let (left, right) = (tokio::spawn(left.run()), tokio::spawn(right.run()));
        for run in [left, right] {
            let result = run.await.expect("it does not break");
            assert!(result.success, "{result:?}");
        }
    });
    println!("the sandbox passes, and both agents are proven");
}
