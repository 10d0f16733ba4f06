//! A sandbox that plays canned output and a sink that records, for this crate's tests.

pub mod model;

use ralph_loop_domain::ports::{
    Agent, ExecEnd, ExecOutcome, ExecRequest, ExecSink, HostAccess, Sandbox, SandboxCapabilities,
    SandboxError, SessionReport, SessionRequest, SessionSink, StopCause, Stream, WriteMode,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::config::{AgentConfig, OutputFormat};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const NOW: &str = "2026-11-15T03:00:00Z";

/// Plays the same output for every command.
pub struct Canned {
    pub root: PathBuf,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub end: ExecEnd,
    pub chunk: usize,
    /// How often the output is played.
    pub times: usize,
    pub missing: bool,
    pub files: RefCell<BTreeMap<PathBuf, Vec<u8>>>,
    pub asked: RefCell<Vec<ExecRequest>>,
}

impl Canned {
    pub fn new(stdout: impl Into<Vec<u8>>, stderr: impl Into<Vec<u8>>, end: ExecEnd) -> Self {
        Self {
            root: PathBuf::from("/w/repo"),
            stdout: stdout.into(),
            stderr: stderr.into(),
            end,
            chunk: 4096,
            times: 1,
            missing: false,
            files: RefCell::default(),
            asked: RefCell::default(),
        }
    }
    pub fn file(&self, path: &str) -> Option<String> {
        self.files.borrow().get(Path::new(path)).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
    pub fn put(&self, path: &str, content: &str) {
        self.files.borrow_mut().insert(path.into(), content.as_bytes().to_vec());
    }
}

impl Sandbox for Canned {
    fn kind(&self) -> &'static str {
        "canned"
    }
    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Own }
    }
    fn root(&self) -> &Path {
        &self.root
    }
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        self.asked.borrow_mut().push(request.clone());
        if self.missing {
            return Err(SandboxError::CannotStart {
                program: request.argv[0].clone(),
                reason: "no such file".into(),
            });
        }
        let outcome = |end| Ok(ExecOutcome { end, duration: Duration::from_secs(2), survivors: 0 });
        for (stream, bytes) in [(Stream::Stderr, &self.stderr), (Stream::Stdout, &self.stdout)] {
            for _ in 0..self.times {
                for piece in bytes.chunks(self.chunk) {
                    sink.output(stream, piece);
                    if let ControlFlow::Break(cause) = sink.poll() {
                        return outcome(ExecEnd::Stopped(cause));
                    }
                }
            }
        }
        outcome(self.end)
    }
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        Ok(self.files.borrow().get(path).cloned())
    }
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        if path.is_absolute() || path.starts_with("..") {
            return Err(SandboxError::OutsideWorkspace(path.into()));
        }
        let mut files = self.files.borrow_mut();
        let file = files.entry(path.into()).or_default();
        if mode == WriteMode::Replace {
            file.clear();
        }
        file.extend_from_slice(bytes);
        Ok(())
    }
    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        self.files.borrow_mut().remove(path);
        Ok(())
    }
    fn list(&self, _: &Path) -> Result<Vec<String>, SandboxError> {
        Ok(Vec::new())
    }
    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        Err(SandboxError::Broken("not in this test".into()))
    }
    fn with_root(&self, _: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        Err(SandboxError::Broken("not in this test".into()))
    }
}

/// Records a session's reports.
#[derive(Default)]
pub struct RecordingSink {
    pub activities: Vec<String>,
    pub actions: Vec<serde_json::Value>,
    pub bytes: u64,
    pub output: Vec<u8>,
    /// Ends the session at this poll.
    pub stop_at: Option<(u32, StopCause)>,
    pub polls: Cell<u32>,
}

impl SessionSink for RecordingSink {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.output.len() < 10_000 {
            self.output.extend_from_slice(bytes);
        }
    }
    fn activity(&mut self, line: &str) {
        assert!(line.len() <= 200 && !line.contains('\n'), "{line:?}");
        self.activities.push(line.to_owned());
    }
    fn action(&mut self, json_line: &str) {
        assert!(json_line.len() <= 4096 && !json_line.contains('\n'), "{json_line:?}");
        self.actions.push(serde_json::from_str(json_line).unwrap());
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.polls.set(self.polls.get() + 1);
        match self.stop_at {
            Some((at, cause)) if self.polls.get() >= at => ControlFlow::Break(cause),
            _ => ControlFlow::Continue(()),
        }
    }
}

pub fn play(
    agent: &dyn Agent,
    config: &AgentConfig,
    iteration: u32,
    sandbox: &Canned,
    told: &mut RecordingSink,
) -> SessionReport {
    let run = RunId::from("r");
    let request = SessionRequest {
        run: &run,
        iteration,
        attempt: 1,
        prompt: "do it",
        prompt_file: Path::new("/p/prompt.md"),
        cwd: std::path::Path::new(""),
        model: None,
        timeout: Duration::from_secs(600),
        budget_left: None,
        config,
        now: NOW.parse().unwrap(),
        stable: &[],
        protected: &[],
        folder: std::path::Path::new(""),
    };
    agent.session(&request, sandbox, told).unwrap()
}

pub fn cli(format: OutputFormat, sandbox: &Canned) -> (SessionReport, RecordingSink) {
    let config = AgentConfig { output_format: format, ..AgentConfig::command("x", &["x"]) };
    let mut told = RecordingSink::default();
    let agent = ralph_loop_agents::CliAgent::new(config.clone());
    let report = play(&agent, &config, 1, sandbox, &mut told);
    (report, told)
}
