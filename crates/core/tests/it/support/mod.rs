//! A whole run in memory: no process, no git, a clock that moves when the code waits.

use jiff::{SignedDuration, Timestamp};
use ralph_loop_core::driver::drive;
use ralph_loop_core::{CancelToken, Observer, Run, RunPorts, SessionProgress};
use ralph_loop_domain::ports::{
    Agent, Clock, CustomCheck, ReleaseWhen, Sandbox, SandboxError, SessionReport, SessionRequest,
    SessionSink, Stream, WriteMode,
};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::journal::RunPaths;
use ralph_loop_protocol::event::{Event, SessionEnd};
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::Usage;
use ralph_loop_protocol::outcome::RunResult;
use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
use ralph_loop_task::config::ConfigFile;
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
pub struct FakeClock(Mutex<Duration>);

impl FakeClock {
    pub fn seconds(&self) -> u64 {
        self.0.lock().unwrap().as_secs()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(*self.0.lock().unwrap()).unwrap();
        Timestamp::from_second(1_800_000_000).unwrap() + since
    }
    fn elapsed(&self) -> Duration {
        *self.0.lock().unwrap()
    }
    fn pause(&self, length: Duration) {
        *self.0.lock().unwrap() += length;
    }
}

struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: &RunState, _: &Event) {}
    fn live(&mut self, _: &RunState, _: &SessionProgress<'_>) {}
    fn output(&mut self, _: Stream, _: &[u8]) {}
}

pub type Session = dyn Fn(&SessionRequest<'_>, &dyn Sandbox) -> (SessionEnd, String) + Send + Sync;

/// An agent implemented by a closure.
pub struct FnAgent {
    pub name: AgentName,
    pub session: Arc<Session>,
    pub tokens: Vec<&'static str>,
    /// Whether it can continue a session.
    pub continues: bool,
}

impl Agent for FnAgent {
    fn name(&self) -> &AgentName {
        &self.name
    }
    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        self.tokens.iter().for_each(|piece| sink.token(piece));
        let (end, final_message) = (self.session)(request, sandbox);
        sink.output(Stream::Stdout, final_message.as_bytes());
        let _ = sink.poll();
        Ok(SessionReport {
            end,
            final_message,
            usage: Usage::free(),
            response: serde_json::json!({"format": "closure"}),
            duration: Duration::from_millis(5),
            exit_code: Some(0),
            survivors: 0,
            wishes: ralph_loop_domain::ports::AgentRequests::default(),
        })
    }

    fn continue_session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<Option<SessionReport>, SandboxError> {
        self.continues.then(|| self.session(request, sandbox, sink)).transpose()
    }

    /// It keeps no process between sessions.
    fn release_resources(&self, _: ReleaseWhen) {}
}

/// A machine in memory; only `.ralph/` is on disk.
pub struct Machine {
    pub temp: tempfile::TempDir,
    pub sandbox: MemorySandbox,
    pub clock: Arc<FakeClock>,
    pub session: Arc<Session>,
    pub agents: Vec<&'static str>,
    pub config: ConfigFile,
    pub sealed: bool,
    pub custom: Mutex<Option<BTreeMap<String, Box<dyn CustomCheck>>>>,
    pub continues: bool,
    pub helpers: ralph_loop_core::Helpers,
    pub models: ralph_loop_task::config::Models,
    pub tokens: Vec<&'static str>,
}

impl Machine {
    pub fn new(
        session: impl Fn(&SessionRequest<'_>, &dyn Sandbox) -> (SessionEnd, String) + Send + Sync + 'static,
    ) -> Self {
        let config = ConfigFile::parse(
            r#"{"agents":[{"name":"a","command_argv":["a"]}],
                "verifiers":[{"name":"tests","command_argv":["grep","done","result.txt"]}],"max_iterations":6}"#,
        )
        .unwrap();
        Self {
            temp: tempfile::tempdir().unwrap(),
            sandbox: MemorySandbox::default(),
            clock: Arc::new(FakeClock(Mutex::new(Duration::ZERO))),
            session: Arc::new(session),
            agents: vec!["a"],
            config,
            sealed: true,
            custom: Mutex::new(None),
            continues: false,
            helpers: ralph_loop_core::Helpers {
                asker: Some(Arc::new(ralph_loop_agents::BackendAsker::new())),
                ..ralph_loop_core::Helpers::default()
            },
            models: ralph_loop_task::config::Models::default(),
            tokens: Vec::new(),
        }
    }

    pub fn folder(&self) -> PathBuf {
        self.temp.path().join("repo")
    }

    pub fn dir(&self) -> RalphDir {
        RalphDir::of(&self.folder())
    }

    pub fn journal(&self) -> PathBuf {
        self.dir().run(&"r1".into()).events()
    }

    pub fn run_dir(&self) -> PathBuf {
        self.dir().run(&"r1".into()).path().to_owned()
    }

    pub fn spec(&self) -> RunSpec {
        RunSpec {
            version: 1,
            spec_version: 1,
            run_id: "r1".into(),
            created_at: self.clock.now(),
            task: Task::from_prompt("# A task\n\nMake it done.\n", "PROMPT.md").unwrap(),
            settings: ralph_loop_task::config::Settings {
                models: self.models.clone(),
                baseline: false,
                ..self.config.clone().resolve()
            },
            place: WorkspaceKind::InPlace,
            workspace: self.folder(),
            origin: self.folder(),
            branch: None,
            config_digest: None,
            handed_to: None,
            forked_from: None,
            unproven_runs: Vec::new(),
        }
    }

    pub fn ports(&self) -> RunPorts {
        let agents = self.agents.iter().map(|name| {
            Box::new(FnAgent {
                name: AgentName::from(*name),
                session: Arc::clone(&self.session),
                tokens: self.tokens.clone(),
                continues: self.continues,
            }) as Box<dyn Agent>
        });
        RunPorts {
            dir: self.dir(),
            home: self.dir(),
            cooldowns: self.dir().cooldowns(),
            places: RunPaths {
                dir: self.dir().run(&"r1".into()),
                seal: self.sealed.then(|| self.temp.path().join("seal.jsonl")),
                elsewhere: None,
            },
            proof_dir: self.temp.path().join("proof"),
            baseline_cache: None,
            sandbox: self.sandbox.with_root(Path::new("/workspace")).unwrap(),
            workspace: Box::new(MemoryWorkspace::new(&self.sandbox)),
            installed: Vec::new(),
            agents: agents.collect(),
            custom_checks: self.custom.lock().unwrap().take().unwrap_or_default(),
            clock: self.clock.clone(),
            redactor: Arc::new(Redactor::default()),
            observers: vec![Box::new(Silent)],
            helpers: self.helpers.clone(),
            refusals: ralph_loop_core::Refusals::default(),
            forge: None,
            push_to: None,
            notifiers: Vec::new(),
            keeper: None,
            machine: Some("m1".into()),
            version: Some("test 1".into()),
            vars: ralph_loop_domain::vars::Vars::default(),
            cancel: Arc::new(CancelToken::default()),
        }
    }

    pub fn run(&self) -> RunResult {
        drive(Run::create(self.spec(), self.ports()).unwrap())
    }

    pub fn run_with(&self, observer: Box<dyn Observer>, redactor: Redactor) -> RunResult {
        let ports = RunPorts { observers: vec![observer], redactor: Arc::new(redactor), ..self.ports() };
        drive(Run::create(self.spec(), ports).unwrap())
    }

    pub fn resume(&self) -> RunResult {
        drive(Run::resume(self.ports()).unwrap())
    }

    pub fn events(&self) -> Vec<Event> {
        let text = std::fs::read_to_string(self.journal()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn kinds(&self) -> Vec<&'static str> {
        self.events().iter().map(|e| e.body.kind()).collect()
    }
}

pub fn write(sandbox: &dyn Sandbox, path: &str, text: &str) {
    sandbox.write(Path::new(path), text.as_bytes(), WriteMode::Replace).unwrap();
}

pub fn completed(message: &str) -> (SessionEnd, String) {
    (SessionEnd::Completed, message.to_owned())
}

pub const PROMISE: &str = "All is done.\n\n<promise>COMPLETE</promise>";

/// Three sessions: a part, a false promise, the work.
pub fn three_sessions(request: &SessionRequest<'_>, sandbox: &dyn Sandbox) -> (SessionEnd, String) {
    match request.iteration {
        1 => {
            write(sandbox, "result.txt", "half\nway\nthere\n");
            completed("Half of it.")
        }
        2 => {
            write(sandbox, "notes.txt", "a\nb\nc\n");
            completed(PROMISE)
        }
        _ => {
            write(sandbox, "result.txt", "done\nand\ntested\n");
            completed(PROMISE)
        }
    }
}
