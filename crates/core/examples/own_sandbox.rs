//! Implements the sandbox port yourself: here, a wrapper that counts the commands of another sandbox.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use ralph_loop_agents::ScriptedAgent;
use ralph_loop_core::{Completion, LoopAgent};
use ralph_loop_domain::ports::{
    ExecOutcome, ExecRequest, ExecSink, Sandbox, SandboxCapabilities, SandboxError, WriteMode,
};
use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
use ralph_loop_task::config::AgentConfig;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const SCRIPT: &str = r#"{"version": 1, "turns": [
    {"do": [{"write": {"path": "DONE.md", "content": "done\n"}}], "say": "Done."}]}"#;

/// Counts the commands of another sandbox.
struct Counting {
    inner: Box<dyn Sandbox>,
    commands: Arc<AtomicU32>,
}

impl Counting {
    fn over(&self, inner: Box<dyn Sandbox>) -> Box<dyn Sandbox> {
        Box::new(Self { inner, commands: Arc::clone(&self.commands) })
    }
}

impl Sandbox for Counting {
    fn kind(&self) -> &'static str {
        "counting"
    }
    fn capabilities(&self) -> SandboxCapabilities {
        self.inner.capabilities()
    }
    fn root(&self) -> &Path {
        self.inner.root()
    }
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.inner.exec(request, sink)
    }
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        self.inner.read(path)
    }
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        self.inner.write(path, bytes, mode)
    }
    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        self.inner.remove(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        self.inner.list(path)
    }
    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(self.over(self.inner.new_connection()?))
    }
    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(self.over(self.inner.with_root(root)?))
    }
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir()?;
    let memory = MemorySandbox::default();
    let commands = Arc::new(AtomicU32::new(0));
    let agent = LoopAgent::builder()
        .workspace(MemoryWorkspace::new(&memory))
        .sandbox(Counting { inner: Box::new(memory), commands: Arc::clone(&commands) })
        .agent(ScriptedAgent::from_json(AgentConfig::command("writer", &[]), SCRIPT)?)
        .task("Write DONE.md.")
        .repo(temp.path().join("repo"))
        .records(temp.path().join("records"))
        .completion(Completion::argv(["test", "-f", "DONE.md"]))
        .build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let result = runtime.block_on(agent.run());
    println!("{} ({} commands)", result.summary, commands.load(Ordering::Relaxed));
    assert!(result.success && commands.load(Ordering::Relaxed) > 0, "{result:?}");
    Ok(())
}
