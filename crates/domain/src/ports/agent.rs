//! The agent port.

use super::sandbox::{Sandbox, SandboxError, StopCause, Stream};
use jiff::Timestamp;
pub use ralph_loop_protocol::event::Ask;
use ralph_loop_protocol::event::{CommitPart, SessionEnd};
use ralph_loop_protocol::id::{AgentName, RunId};
use ralph_loop_protocol::money::{Tokens, Usage, Usd};
use ralph_loop_task::config::AgentConfig;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// An agent: one fresh session per call, no memory between calls.
///
/// Implementations guarantee: everything the agent knows comes from the request and the sandbox; the result reports
/// what happened, never a verdict; errors of the agent are a [`SessionEnd`] of the report, and `Err` means that the
/// session couldn't be started.
pub trait Agent: Send {
    fn name(&self) -> &AgentName;
    /// Its configuration: kind and session limits; `None` for defaults.
    fn config(&self) -> Option<&AgentConfig> {
        None
    }
    /// What the agent's kind adds at the start of every prompt: answer format and tools. It never changes within a
    /// run.
    fn preamble(&self) -> String {
        String::new()
    }
    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError>;
    /// Continues its last session with this prompt: the one way to ask about what it said. `None` if it can't.
    fn continue_session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<Option<SessionReport>, SandboxError> {
        let _ = (request, sandbox, sink);
        Ok(None)
    }
    /// Ends what the agent keeps alive between its sessions, as this moment requires. It has no default, because a
    /// proof relies on it.
    fn release_resources(&self, moment: ReleaseWhen);
    /// What it keeps alive now, for display. Called often, so it never waits.
    fn resources(&self) -> AgentResources {
        AgentResources::default()
    }
}

/// What an agent keeps alive: background processes, open browsers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentResources {
    pub processes: Vec<ProcessInfo>,
    pub browsers: Vec<BrowserInfo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    pub name: String,
    pub command: String,
    /// Its age, in seconds.
    pub uptime_seconds: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How it ended, as text; `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserInfo {
    pub name: String,
    pub url: String,
}

/// When an agent must end what it keeps alive between sessions (processes, browsers).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseWhen {
    /// Before the final check and at the end: everything. Nothing of an agent may live while its work is proven.
    Everything,
    /// After an iteration: what is idle or broken.
    Idle,
}

#[derive(Debug, Clone)]
pub struct SessionRequest<'a> {
    pub run: &'a RunId,
    /// Iteration number, from 1.
    pub iteration: u32,
    /// Which try of this iteration, from 1.
    pub attempt: u32,
    pub prompt: &'a str,
    /// The prompt as a file on the host.
    pub prompt_file: &'a Path,
    /// The session's folder, relative to the root.
    pub cwd: &'a Path,
    /// The session's model, if chosen.
    pub model: Option<&'a str>,
    /// Time limit of the session; never longer than the run's remaining time.
    pub timeout: Duration,
    /// Remaining money, for agents that support a cap.
    pub budget_left: Option<Usd>,
    pub config: &'a AgentConfig,
    /// The current time, for reset times given as a clock time.
    pub now: Timestamp,
    /// Where the stable parts of the prompt end, in bytes, ascending: what never changes in a run, then what changes
    /// slowly. Providers should cache up to there.
    pub stable: &'a [usize],
    /// Paths and globs that the session must not change.
    pub protected: &'a [String],
    /// The iteration's folder on the host, for complete outputs that the session shows in part.
    pub folder: &'a Path,
}

/// Receives a session's output and may end it.
pub trait SessionSink {
    /// Raw output of the agent's process.
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// Output that is the agent's text: the stdout of an agent with plain output. Characters are complete.
    fn text_output(&mut self, bytes: &[u8]) {
        self.output(Stream::Stdout, bytes);
        self.token(&String::from_utf8_lossy(bytes));
    }
    /// An activity of the agent, in one line ("editing src/router.rs").
    fn activity(&mut self, line: &str);
    /// One action of the session as a JSON line (`actions.jsonl`).
    fn action(&mut self, json_line: &str);
    /// A tool's result, bounded: its first and last lines.
    fn result(&mut self, ok: bool, text: &str) {
        let _ = (ok, text);
    }
    /// A managed action begins: an event of the run.
    fn action_started(&mut self, action: &ActionStart) {
        let _ = action;
    }
    /// A managed action has ended: an event of the run.
    fn action_finished(&mut self, action: &ActionEnd) {
        let _ = action;
    }
    /// A piece of the agent's text.
    fn token(&mut self, text: &str) {
        let _ = text;
    }
    /// Tokens used so far, if the agent reports them during the session.
    fn used(&mut self, tokens: &Tokens) {
        let _ = tokens;
    }
    /// Called often; `Break` ends the session.
    fn poll(&mut self) -> ControlFlow<StopCause>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionStart {
    /// Its number in the session, from 1.
    pub number: u32,
    /// The kind: `run`, `patch`, `write`, … or a tool's name.
    pub action: String,
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionEnd {
    pub number: u32,
    pub ok: bool,
    pub result: String,
    pub exit_code: Option<i32>,
    pub duration: Duration,
}

/// What an agent requests beyond its final message. A request starts a check or a question; it decides nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentRequests {
    pub done: bool,
    pub claims: Vec<String>,
    pub commit_message: Option<String>,
    /// Commits of some of its files before that one.
    pub commit_parts: Vec<CommitPart>,
    /// It requests something instead of continuing.
    pub ask: Option<Ask>,
}

#[derive(Debug, Clone)]
pub struct SessionReport {
    pub end: SessionEnd,
    /// The agent's final message, joined over stream pieces, at most [`FINAL_MESSAGE_MAX`] bytes (its end).
    pub final_message: String,
    pub usage: Usage,
    /// The agent's structured output, or a wrapper around plain text (`response.json`).
    pub response: serde_json::Value,
    pub duration: Duration,
    /// The exit code of the agent's process, if any.
    pub exit_code: Option<i32>,
    pub survivors: u32,
    pub wishes: AgentRequests,
}

/// Limit of [`SessionReport::final_message`].
pub const FINAL_MESSAGE_MAX: usize = 256 * 1024;
