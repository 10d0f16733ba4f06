//! The sandbox port.

use super::trace::ExecTrace;
use crate::repo::installed::InstalledFolder;
pub use ralph_loop_protocol::event::StopCause;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Holds the agent's tree and runs commands.
///
/// Implementations guarantee: when `exec` returns, no process it started is alive, however it ended, even if it left
/// its process group or ignores SIGTERM; paths of the file methods are relative to [`Sandbox::root`], and anything
/// absolute, with `..`, or leading outside over a link or into `.git` is refused with
/// [`SandboxError::OutsideWorkspace`]; `exec` calls [`ExecSink::poll`] at least every 250 ms.
pub trait Sandbox: Send {
    /// `local`, `memory`, …: a display name. For features see [`Sandbox::capabilities`].
    fn kind(&self) -> &'static str;
    /// Its properties that the engine depends on.
    fn capabilities(&self) -> SandboxCapabilities;
    /// The workspace's folder as commands inside see it.
    fn root(&self) -> &Path;
    /// The same folder for this process, maybe another path; `None` if its files aren't on this machine.
    fn host_root(&self) -> Option<&Path> {
        None
    }
    /// Whether commands don't see what this machine has at an absolute path, judged by its name alone: an agent must
    /// not learn what exists.
    fn hides(&self, path: &Path) -> bool {
        let _ = path;
        false
    }
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError>;
    /// Runs one command and records which files of the workspace its runners open and run, and who writes there.
    /// `None` if watching isn't supported.
    fn exec_watched(
        &self,
        request: &ExecRequest,
        sink: &mut dyn ExecSink,
    ) -> Result<(ExecOutcome, Option<ExecTrace>), SandboxError> {
        Ok((self.exec(request, sink)?, None))
    }
    /// A file's bytes; `None` if it doesn't exist.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError>;
    /// Writes or appends a file, creating its folders.
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError>;
    /// Removes a file, if it exists.
    fn remove(&self, path: &Path) -> Result<(), SandboxError>;
    /// Names in a folder, sorted; empty if it doesn't exist.
    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError>;
    /// A separate connection to the same sandbox, to run more commands at the same time: background processes and
    /// parallel commands. What runs there ends when it is dropped, at the latest with this process.
    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError>;
    /// The same kind of sandbox over another folder, for clean checkouts.
    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError>;
    /// The same, with folders of the user's repo as read-only mounts, each at its path below the top. Equals
    /// [`Sandbox::with_root`] if commands don't use this machine's programs.
    fn with_lent(&self, root: &Path, lent: &[InstalledFolder]) -> Result<Box<dyn Sandbox>, SandboxError> {
        let _ = lent;
        self.with_root(root)
    }
    /// Where this process and sandboxed commands can exchange files; `None` without a sandbox or on another machine.
    fn exchange(&self) -> Option<SharedDir> {
        None
    }
    /// An outside URL for `port` of whichever command listens there, as long as the sandbox lives; `None` if its
    /// ports are this machine's anyway, or if there is no plain URL.
    fn host_address(&self, port: u16) -> Result<Option<String>, SandboxError> {
        let _ = port;
        Ok(None)
    }
    /// Called when files of the workspace were changed on this machine between two commands, so that the next one
    /// sees them. Not needed if commands see this machine's files, or get them each time.
    fn folder_edited(&self) -> Result<(), SandboxError> {
        Ok(())
    }
}

/// Properties of a sandbox that the engine depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxCapabilities {
    /// The source of its commands' programs, settings and variables.
    pub surroundings: HostAccess,
}

/// The source of commands' programs, settings and variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAccess {
    /// This machine and this process: a proof must check that none leads into the workspace.
    Host,
    /// The sandbox; this machine's don't matter.
    Own,
}

/// A folder that this process and sandboxed commands can both write. A hostile command may have written anything in
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedDir {
    pub outside: PathBuf,
    pub inside: PathBuf,
    /// Whether commands may use sockets among themselves, as a browser must.
    pub sockets: bool,
    pub loopback: Loopback,
}

/// What a sandboxed command reaches on its loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// Only itself: every command has a separate network, and finds the others through the sandbox's proxy.
    OfCommand,
    /// All commands of the sandbox, and nothing else.
    OfSandbox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    Replace,
    Append,
}

#[derive(Debug, Clone)]
pub struct ExecRequest {
    pub argv: Vec<String>,
    /// The folder to run in, relative to the root.
    pub cwd: PathBuf,
    pub env: Vec<(String, String)>,
    pub stdin: Stdin,
    /// Longest run.
    pub timeout: Option<Duration>,
    /// Longest silence on both output streams.
    pub idle_timeout: Option<Duration>,
    pub grace: Duration,
    pub credentials: Credentials,
}

/// Which keys and login a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Credentials {
    /// None: a check, a setup command, a request of a repo or a model.
    #[default]
    None,
    /// Its program's: an agent's session.
    Agent,
}

impl ExecRequest {
    /// A command with empty stdin, the sandbox's environment and no timeout.
    pub fn new(argv: Vec<String>) -> Self {
        Self {
            argv,
            cwd: PathBuf::new(),
            env: Vec::new(),
            stdin: Stdin::Empty,
            timeout: None,
            idle_timeout: None,
            grace: Duration::from_secs(2),
            credentials: Credentials::None,
        }
    }
}

/// What a command reads on standard input.
#[derive(Debug, Clone)]
pub enum Stdin {
    Empty,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// A file of the host, opened for reading.
    File(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Receives a command's output and may end it.
pub trait ExecSink {
    /// Bytes as received, in order per stream.
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// Called often; `Break` ends the command and everything it started.
    fn poll(&mut self) -> ControlFlow<StopCause>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecEnd {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    IdleTimedOut,
    Stopped(StopCause),
    /// Its guard process died; everything it had started is gone.
    GuardLost,
}

impl ExecEnd {
    /// The exit code as a shell shows it.
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

#[derive(Debug, Clone, Copy)]
pub struct ExecOutcome {
    pub end: ExecEnd,
    pub duration: Duration,
    pub survivors: u32,
}

/// A sandbox couldn't do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The program doesn't exist or can't be started.
    #[error("cannot start `{program}`: {reason}")]
    CannotStart {
        program: String,
        /// Why not.
        reason: String,
    },
    /// A path that leads out of the workspace, or into `.git`.
    #[error("`{0}` is outside the workspace")]
    OutsideWorkspace(PathBuf),
    #[error("cannot {verb} `{path}`: {reason}")]
    File { verb: &'static str, path: PathBuf, reason: String },
    #[error("the sandbox failed: {0}")]
    Broken(String),
}
