//! The port to where commands run.

use super::trace::ExecTrace;
use crate::installed::InstalledFolder;
pub use ralph_loop_protocol::event::StopCause;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the agent's tree lives and where commands run.
///
/// An implementer guarantees: when `exec` returns, no process it started is alive, whatever way it ended, also none that left
/// its process group or ignores polite signals; paths given to the file methods are relative to [`Sandbox::root`], and what is
/// absolute, has `..`, leads out over a link or into `.git` is refused with [`SandboxError::OutsideWorkspace`]; `exec` calls
/// its sink's [`ExecSink::poll`] at least every 250 ms.
pub trait Sandbox: Send {
    /// `local`, `memory`, …: a name for people. What a sandbox can do is asked of [`Sandbox::capabilities`].
    fn kind(&self) -> &'static str;
    /// What it is like, as far as the engine acts on it.
    fn capabilities(&self) -> SandboxCapabilities;
    /// The workspace's folder as commands inside see it.
    fn root(&self) -> &Path;
    /// The same folder as this process sees it, which may be another path; `None` where its files are not on this machine.
    fn host_root(&self) -> Option<&Path> {
        None
    }
    /// Runs one command to its end.
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError>;
    /// Runs one command to its end and watches which files of the workspace its runners open and run, and who writes there.
    /// `None` where commands cannot be watched here.
    fn exec_watched(
        &self,
        request: &ExecRequest,
        sink: &mut dyn ExecSink,
    ) -> Result<(ExecOutcome, Option<ExecTrace>), SandboxError> {
        Ok((self.exec(request, sink)?, None))
    }
    /// A file's bytes; `None` where there is no such file.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError>;
    /// Writes or appends a file, making its folders.
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError>;
    /// Removes a file; no error where there is none.
    fn remove(&self, path: &Path) -> Result<(), SandboxError>;
    /// Names in a folder, sorted; none where there is no such folder.
    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError>;
    /// A connection of its own to the same sandbox, so that one more can run beside those of `self`: for
    /// processes in the background and for several commands at once. What runs there ends when it is dropped, at the
    /// latest with this process.
    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError>;
    /// The same kind of sandbox over another folder, for clean checkouts.
    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError>;
    /// The same, with folders of the user's repo that are there for reading only, each at its own path below the top. Nothing
    /// more than [`Sandbox::with_root`] where commands do not use the programs of this machine.
    fn with_lent(&self, root: &Path, lent: &[InstalledFolder]) -> Result<Box<dyn Sandbox>, SandboxError> {
        let _ = lent;
        self.with_root(root)
    }
    /// Where this process and sandboxed commands can meet; `None` where commands see the machine as it is, and where they run
    /// on another one.
    fn exchange(&self) -> Option<Exchange> {
        None
    }
    /// An address outside of the sandbox that leads to `port` of whichever command listens there, as long as the sandbox lives;
    /// `None` where a port in there is one of this machine anyway, or where no plain address leads there.
    fn host_address(&self, port: u16) -> Result<Option<String>, SandboxError> {
        let _ = port;
        Ok(None)
    }
    /// Files of the workspace were changed on this machine, between two commands: the next one sees them. Nothing has to be
    /// done where commands see this machine's files anyway, or get them anew each time.
    fn folder_edited(&self) -> Result<(), SandboxError> {
        Ok(())
    }
}

/// What a sandbox is like, as far as the engine acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxCapabilities {
    /// Whose programs, settings and variables its commands use.
    pub surroundings: Surroundings,
}

/// Whose programs, settings and variables commands use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surroundings {
    /// Those of this machine and this process: a proof must look at them, too, and see that none leads into the workspace.
    Host,
    /// Its own; those of this machine do not count.
    Own,
}

/// A folder that this process and sandboxed commands can both write. Whatever is in it may be the work of a hostile command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Its place for this process.
    pub outside: PathBuf,
    /// Its place for commands.
    pub inside: PathBuf,
    /// Whether commands may use sockets among themselves, as a browser must.
    pub sockets: bool,
    /// What a command reaches on its own loopback.
    pub loopback: Loopback,
}

/// What a sandboxed command reaches on its loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// Only itself: every command has a network of its own, and finds the others through the sandbox's proxy.
    OfCommand,
    /// All commands of the sandbox, and nothing else.
    OfSandbox,
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
    /// Whose keys and login it gets.
    pub credentials: Credentials,
}

/// Whose keys and login a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Credentials {
    /// Nobody's: a check, a set-up command, whatever a repo or a model asks for.
    #[default]
    None,
    /// Those of its program: it is the session of an agent that has some.
    Agent,
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
            credentials: Credentials::None,
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
