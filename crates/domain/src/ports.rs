//! The ports: what the engine needs of the outside world, as small blocking traits over plain data.
//!
//! They block on purpose: a run is one thread that does one thing at a time, and a blocking call with a callback that
//! may say "stop" is the simplest thing that can be killed anywhere. A backend that needs an async runtime owns one.

use crate::config::AgentConfig;
use crate::event::{FileChange, RefMove, SessionEnd};
use crate::id::{AgentName, CommitId, RunId, TreeId};
use crate::money::{Usage, Usd};
use crate::protect::ProtectedChange;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the engine's time comes from.
pub trait Clock: Send + Sync {
    /// The current instant, to the millisecond.
    fn now(&self) -> Timestamp;
    /// A monotonic reading, for durations.
    fn elapsed(&self) -> Duration;
    /// Lets this much time pass. Callers wait in small steps, so that a person's word is heard meanwhile.
    fn pause(&self, length: Duration);
}

// ---------------------------------------------------------------------------------------------------------- sandbox

/// Where the agent's tree lives and where commands run.
///
/// An implementer guarantees: when `exec` returns, no process it started is alive, whatever way it ended; paths given
/// to the file methods are relative to [`Sandbox::root`] and never lead out of it; `exec` calls its sink's
/// [`ExecSink::poll`] at least every 250 ms.
pub trait Sandbox: Send {
    /// `local`, `memory`, ….
    fn kind(&self) -> &'static str;
    /// The workspace's folder as commands inside see it.
    fn root(&self) -> &Path;
    /// Runs one command to its end.
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError>;
    /// A file's bytes; `None` where there is no such file.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError>;
    /// Writes or appends a file, making its folders.
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError>;
    /// Removes a file; no error where there is none.
    fn remove(&self, path: &Path) -> Result<(), SandboxError>;
    /// Names in a folder, sorted.
    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError>;
    /// The same kind of sandbox over another folder, for clean checkouts.
    fn beside(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError>;
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Replace the file.
    Replace,
    /// Add to its end.
    Append,
}

/// One command.
#[derive(Debug, Clone)]
pub struct ExecRequest {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Folder below the root to run in.
    pub cwd: PathBuf,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// What stands on standard input.
    pub stdin: Stdin,
    /// Longest run.
    pub timeout: Option<Duration>,
    /// Longest silence on both output streams.
    pub idle_timeout: Option<Duration>,
    /// Time between the polite signal and the final one.
    pub grace: Duration,
}

impl ExecRequest {
    /// A command with nothing on stdin, the sandbox's environment and no time-out.
    pub fn new(argv: Vec<String>) -> Self {
        Self {
            argv,
            cwd: PathBuf::new(),
            env: Vec::new(),
            stdin: Stdin::Empty,
            timeout: None,
            idle_timeout: None,
            grace: Duration::from_secs(2),
        }
    }
}

/// What a command reads on standard input.
#[derive(Debug, Clone)]
pub enum Stdin {
    /// End of file at once.
    Empty,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// A file of the host, opened for reading.
    File(PathBuf),
}

/// Which output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Receives a command's output and may end it.
pub trait ExecSink {
    /// Bytes as they came, in order per stream.
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// Called often; `Break` ends the command and everything it started.
    fn poll(&mut self) -> ControlFlow<StopCause>;
}

/// Why the engine ended a command before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// The run is cancelled.
    Cancelled,
    /// A person asked for a fresh session.
    Rotated,
    /// A person skips this agent.
    Skipped,
    /// The agent's own output shows that going on is hopeless (a long rate limit).
    Hopeless,
    /// A budget or deadline ended during the session.
    Budget,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecEnd {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It ran past its time.
    TimedOut,
    /// It was silent for too long.
    IdleTimedOut,
    /// The sink said stop.
    Stopped(StopCause),
    /// The process that watches over it died; everything it had started is gone.
    GuardLost,
}

impl ExecEnd {
    /// The exit code as a shell would show it.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signaled(signal) => Some(128 + signal),
            _ => None,
        }
    }
    /// Whether the command exited with 0.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }
}

/// The end of a command.
#[derive(Debug, Clone, Copy)]
pub struct ExecOutcome {
    /// How it ended.
    pub end: ExecEnd,
    /// How long it took.
    pub duration: Duration,
    /// Processes it had left behind, ended by the sandbox.
    pub survivors: u32,
}

/// A sandbox could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The program does not exist or cannot be started.
    #[error("cannot start `{program}`: {reason}")]
    CannotStart {
        /// What was to be started.
        program: String,
        /// Why not.
        reason: String,
    },
    /// A path that leads out of the workspace, or into `.git`.
    #[error("`{0}` is outside the workspace")]
    OutsideWorkspace(PathBuf),
    /// A file operation failed.
    #[error("cannot {verb} `{path}`: {reason}")]
    File {
        /// What was tried.
        verb: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        reason: String,
    },
    /// The sandbox itself is broken or gone.
    #[error("the sandbox failed: {0}")]
    Broken(String),
}

// ------------------------------------------------------------------------------------------------------------ agent

/// Who works: one fresh session per call, no memory between calls.
///
/// An implementer guarantees: everything it knows comes from the request and the sandbox; what it returns is a report
/// of what happened, never a verdict; errors of the agent are a [`SessionEnd`] of the report, and `Err` means that the
/// session could not be started at all.
pub trait Agent: Send {
    /// The configured name.
    fn name(&self) -> &AgentName;
    /// Runs one session.
    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError>;
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
}

/// Receives what a session prints and may end it.
pub trait SessionSink {
    /// Raw bytes of the agent's process.
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// Something the agent did, in one line for people ("editing src/router.rs").
    fn activity(&mut self, line: &str);
    /// One action of the session as a JSON line (`actions.jsonl`).
    fn action(&mut self, json_line: &str);
    /// Called often; `Break` ends the session.
    fn poll(&mut self) -> ControlFlow<StopCause>;
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
}

/// Bound of [`SessionReport::final_message`].
pub const FINAL_MESSAGE_MAX: usize = 256 * 1024;

/// A check that is code of the calling program (the library's custom completion). It looks at the workspace through the
/// sandbox it is given and says why the work is not done. A closure is one.
///
/// An implementer guarantees: the same files give the same answer; it may block, on an async runtime of its own if need be.
pub trait CustomCheck: Send {
    /// Whether the check passes; `Err` says in words why not.
    fn check(&self, sandbox: &dyn Sandbox) -> Result<(), String>;
}

impl<F: Fn(&dyn Sandbox) -> Result<(), String> + Send> CustomCheck for F {
    fn check(&self, sandbox: &dyn Sandbox) -> Result<(), String> {
        self(sandbox)
    }
}

// -------------------------------------------------------------------------------------------------------- workspace

/// The agent's tree and its history: snapshots, commits, diffs and the refs that must not move.
///
/// An implementer guarantees: the user's index, stash, other branches and unrelated files are never changed; every
/// method can be repeated after a crash without doubling its effect.
pub trait Workspace: Send {
    /// Takes the start snapshot (`refs/ralph/<run>/start`) unless it exists, and remembers refs and protected files.
    fn begin(&mut self, protected: &[String]) -> Result<Baseline, WorkspaceError>;
    /// Goes on from a baseline that an earlier process recorded.
    fn reopen(&mut self, baseline: &Baseline) -> Result<(), WorkspaceError>;
    /// Records the tree as it is now: tree, commit on `refs/ralph/<run>/work`, list of changes.
    fn checkpoint(&mut self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, WorkspaceError>;
    /// The tree as it is now, without a commit. Cheap when nothing changed.
    fn tree(&mut self) -> Result<TreeId, WorkspaceError>;
    /// Refs that moved since they were last accepted, other than by this run.
    fn moved_refs(&mut self) -> Result<Vec<RefMove>, WorkspaceError>;
    /// Takes the refs as they are now for the new baseline (a person approved).
    fn accept_refs(&mut self) -> Result<(), WorkspaceError>;
    /// Protected paths that differ from the start of the run.
    fn protected_changes(&mut self) -> Result<Vec<ProtectedChange>, WorkspaceError>;
    /// Takes a protected path as it is now for its baseline (the engine itself or a person's journalled edit changed it).
    fn accept_protected(&mut self, path: &str) -> Result<(), WorkspaceError>;
    /// The patch between two trees or commits, at most `max` bytes.
    fn patch(&self, from: &str, to: &str, max: usize) -> Result<Vec<u8>, WorkspaceError>;
    /// The changes between two trees or commits.
    fn changes(&self, from: &str, to: &str) -> Result<Vec<FileChange>, WorkspaceError>;
    /// A clean checkout of `commit` in the empty folder `into`; ignored and untracked files are not there.
    fn checkout_clean(&self, commit: &CommitId, into: &Path) -> Result<(), WorkspaceError>;
}

/// The state at the start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The commit that `HEAD` named.
    pub head: CommitId,
    /// The branch, unless detached.
    pub branch: Option<String>,
    /// The snapshot commit.
    pub start: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// Files that were dirty or untracked.
    #[serde(default)]
    pub dirty: Vec<String>,
    /// How many were dirty in all, where the list is cut.
    #[serde(default)]
    pub dirty_total: usize,
    /// Files too large for the snapshot, left alone.
    #[serde(default)]
    pub left_out: Vec<String>,
}

/// What a checkpoint is asked for.
#[derive(Debug, Clone)]
pub struct CheckpointRequest<'a> {
    /// The iteration it closes.
    pub iteration: u32,
    /// The agent who worked.
    pub agent: &'a AgentName,
    /// Commit message without trailers.
    pub message: &'a str,
    /// When.
    pub at: Timestamp,
    /// Whether the run's branch moves with it, too.
    pub on_branch: bool,
}

/// A recorded tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The tree of the workspace, user's unrelated changes included.
    pub tree: TreeId,
    /// The work commit; `None` where nothing has changed since the last one.
    pub commit: Option<CommitId>,
    /// Files changed since the previous checkpoint.
    pub files: Vec<FileChange>,
    /// Files that were dirty at the start and that the agent has edited.
    pub dirty_touched: Vec<String>,
    /// Protected paths that differ from the start of the run.
    pub protected: Vec<ProtectedChange>,
    /// Whether an earlier process had already made this commit.
    pub reused: bool,
}

/// Git could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct WorkspaceError {
    /// What was tried.
    pub what: String,
    /// Why it failed, with git's last words.
    pub reason: String,
    /// What to do, where something can be done.
    pub hint: Option<String>,
}
