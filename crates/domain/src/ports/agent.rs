//! The port to who works.

use super::sandbox::{Sandbox, SandboxError, StopCause, Stream};
use jiff::Timestamp;
pub use ralph_loop_protocol::event::Ask;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::id::{AgentName, RunId};
use ralph_loop_protocol::money::{Tokens, Usage, Usd};
use ralph_loop_task::config::AgentConfig;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Who works: one fresh session per call, no memory between calls.
///
/// An implementer guarantees: everything it knows comes from the request and the sandbox; what it returns is a report
/// of what happened, never a verdict; errors of the agent are a [`SessionEnd`] of the report, and `Err` means that the
/// session could not be started at all.
pub trait Agent: Send {
    /// The configured name.
    fn name(&self) -> &AgentName;
    /// How it was configured: of which kind it is, how long a session may take; `None` where every default will do.
    fn config(&self) -> Option<&AgentConfig> {
        None
    }
    /// What the agent's kind adds at the very beginning of every prompt: how it answers, what its tools are. It never
    /// changes within a run.
    fn preamble(&self) -> String {
        String::new()
    }
    /// Runs one session.
    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError>;
    /// Ends what the agent keeps alive between its sessions, as far as this moment asks for it. It has no default, as a
    /// proof relies on it.
    fn release_resources(&self, moment: ReleaseWhen);
    /// What it keeps alive now, for whoever looks at the run. Asked often, so it never waits.
    fn resources(&self) -> AgentResources {
        AgentResources::default()
    }
}

/// What an agent keeps alive: processes in the background, open browsers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentResources {
    /// Managed processes.
    pub processes: Vec<ProcessInfo>,
    /// Open browsers.
    pub browsers: Vec<BrowserInfo>,
}

/// A managed process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// The name that it was started under.
    pub name: String,
    /// Its command line.
    pub command: String,
    /// For how long it has existed, in seconds.
    pub uptime_seconds: u64,
    /// The address that it printed, where it is a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How it ended, in words; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// An open browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserInfo {
    /// The name that it was opened under.
    pub name: String,
    /// The page that it shows.
    pub url: String,
}

/// When an agent must end what it keeps alive between sessions (processes, browsers).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseWhen {
    /// Before the final check and at the end: everything. Nothing of an agent lives while its work is proven.
    Everything,
    /// After an iteration: what is idle or broken.
    Idle,
}

/// What a session is given.
#[derive(Debug, Clone)]
pub struct SessionRequest<'a> {
    /// The run.
    pub run: &'a RunId,
    /// Iteration number, from 1.
    pub iteration: u32,
    /// Which try of this iteration, from 1.
    pub attempt: u32,
    /// The whole prompt.
    pub prompt: &'a str,
    /// The same prompt as a file of the host.
    pub prompt_file: &'a Path,
    /// Folder below the root that the session works in.
    pub cwd: &'a Path,
    /// Model for this session, where one was chosen.
    pub model: Option<&'a str>,
    /// Longest session; never longer than what is left of the run's time.
    pub timeout: Duration,
    /// Money left, for agents that take a cap.
    pub budget_left: Option<Usd>,
    /// The agent's configuration.
    pub config: &'a AgentConfig,
    /// The current time, for reset times given as a clock time.
    pub now: Timestamp,
    /// Where the parts of the prompt end that stay the same, in bytes, smallest first: what never changes in a run, then
    /// what changes slowly. Providers are told to cache up to there.
    pub stable: &'a [usize],
    /// Paths and globs that the session must leave alone.
    pub protected: &'a [String],
    /// The iteration's folder on the host, for whole outputs of which the session shows only a part.
    pub folder: &'a Path,
}

/// Receives what a session prints and may end it.
pub trait SessionSink {
    /// Raw bytes of the agent's process.
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// Output that is the agent's text as it stands: the stdout of an agent without a format of its own. Characters are
    /// whole.
    fn text_output(&mut self, bytes: &[u8]) {
        self.output(Stream::Stdout, bytes);
        self.token(&String::from_utf8_lossy(bytes));
    }
    /// Something the agent did, in one line for people ("editing src/router.rs").
    fn activity(&mut self, line: &str);
    /// One action of the session as a JSON line (`actions.jsonl`).
    fn action(&mut self, json_line: &str);
    /// A managed action begins: an event of the run.
    fn action_started(&mut self, action: &ActionStart) {
        let _ = action;
    }
    /// It is over: an event of the run.
    fn action_finished(&mut self, action: &ActionEnd) {
        let _ = action;
    }
    /// A piece of the agent's text, as it comes.
    fn token(&mut self, text: &str) {
        let _ = text;
    }
    /// Tokens that the session has used so far, where the agent tells while it works.
    fn used(&mut self, tokens: &Tokens) {
        let _ = tokens;
    }
    /// Called often; `Break` ends the session.
    fn poll(&mut self) -> ControlFlow<StopCause>;
}

/// A managed action begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionStart {
    /// Its place in the session, from 1.
    pub number: u32,
    /// What it is: `run`, `patch`, `write`, … or a tool's name.
    pub action: String,
    /// On what, in one line for people.
    pub what: String,
}

/// A managed action is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionEnd {
    /// Its place in the session.
    pub number: u32,
    /// Whether it worked.
    pub ok: bool,
    /// In one line: what came of it, or why it failed.
    pub result: String,
    /// Exit code of a command.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration: Duration,
}

/// What an agent asks of the engine beyond its final message. A request starts a check or a question; it decides nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentRequests {
    /// It says that everything is done.
    pub done: bool,
    /// Ids of criteria that it says are met.
    pub claims: Vec<String>,
    /// The message it would like for this iteration's commit.
    pub commit_message: Option<String>,
    /// It would rather not go on like this.
    pub ask: Option<Ask>,
}

/// What happened in a session.
#[derive(Debug, Clone)]
pub struct SessionReport {
    /// How it ended.
    pub end: SessionEnd,
    /// The agent's final message, joined over stream pieces, at most [`FINAL_MESSAGE_MAX`] bytes (its end).
    pub final_message: String,
    /// Tokens and cost.
    pub usage: Usage,
    /// The structured result as the agent printed it, or a wrapper around plain text (`response.json`).
    pub response: serde_json::Value,
    /// How long it took.
    pub duration: Duration,
    /// Exit code of the agent's process, if it had one.
    pub exit_code: Option<i32>,
    /// Processes the agent had left behind.
    pub survivors: u32,
    /// What the agent asks for.
    pub wishes: AgentRequests,
}

/// Bound of [`SessionReport::final_message`].
pub const FINAL_MESSAGE_MAX: usize = 256 * 1024;
