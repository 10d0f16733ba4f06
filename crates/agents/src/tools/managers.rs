//! The process manager for programs without an agent; the built-in tools use the same one.

use super::halt::Halt;
use super::process::{ProcessStart, Processes, Ready, Signal};
use ralph_loop_domain::ports::{ProcessInfo, Sandbox};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::outcome::ErrorCode;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Default time limit for a process to be ready.
const READY: Duration = Duration::from_secs(60);

/// A manager couldn't do what was requested; a model or a user can act on the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ManagerError {
    pub code: ErrorCode,
    /// What went wrong, and how to fix it.
    pub message: String,
}

impl ManagerError {
    fn process(message: String) -> Self {
        Self { code: ErrorCode::ProcessFailed, message }
    }
    #[cfg(feature = "browser")]
    pub(super) fn browser(message: String) -> Self {
        Self { code: ErrorCode::BrowserFailed, message }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProcess {
    /// Its name; an existing process of this name ends first.
    pub name: String,
    /// The command for a shell.
    pub command: String,
    /// The folder to run in, relative to the sandbox's root.
    pub cwd: PathBuf,
    pub env: Vec<(String, String)>,
    /// A text or regular expression that it prints when it is ready.
    pub ready_signal: Option<String>,
    /// Time limit for that; default: a minute.
    pub ready_timeout: Duration,
}

impl NewProcess {
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            cwd: PathBuf::new(),
            env: Vec::new(),
            ready_signal: None,
            ready_timeout: READY,
        }
    }

    #[must_use]
    pub fn ready_signal(mut self, signal: impl Into<String>) -> Self {
        self.ready_signal = Some(signal.into());
        self
    }
}

/// Long-running commands by name: the whole process group ends (SIGTERM, SIGKILL after 5 seconds), nothing outlives
/// the manager.
#[derive(Debug, Default)]
pub struct ProcessManager {
    all: Processes,
}

impl ProcessManager {
    /// Starts a process and waits until it is ready: its signal, or a URL in its output, or a moment without failure.
    pub fn start(&self, sandbox: &dyn Sandbox, process: &NewProcess) -> Result<ProcessInfo, ManagerError> {
        let NewProcess { name, command, cwd, env, ready_signal, ready_timeout } = process.clone();
        let signal = ready_signal.as_deref().map(Signal::new);
        let start = ProcessStart { name, command, cwd, env, signal };
        let (view, _) = self.all.start(start, sandbox).map_err(ManagerError::process)?;
        let ready = self.all.wait(&view, ready_signal.is_some(), ready_timeout, &Halt::default());
        let (listed, output) = self.all.output(&process.name).map_err(ManagerError::process)?;
        let said = text::tail_lines(output.trim_end(), 20);
        match ready {
            Ready::Yes => Ok(listed.into()),
            Ready::Ended(end) => Err(ManagerError::process(format!(
                "`{}` {} before it was ready; last output:\n{said}",
                process.name,
                end.words()
            ))),
            Ready::NotYet | Ready::Halted(_) => Err(ManagerError::process(format!(
                "`{}` was not ready after {}; it still runs; last output:\n{said}",
                process.name,
                text::duration(ready_timeout)
            ))),
        }
    }

    pub fn stop(&self, name: &str) -> Result<(), ManagerError> {
        self.all.stop(name).map(|_| ()).map_err(ManagerError::process)
    }

    pub fn output(&self, name: &str, lines: usize) -> Result<String, ManagerError> {
        let (_, output) = self.all.output(name).map_err(ManagerError::process)?;
        Ok(text::tail_lines(output.trim_end(), lines).to_owned())
    }

    /// All processes, including those that ended since the last [`Self::cleanup`].
    pub fn list(&self) -> Vec<ProcessInfo> {
        self.all.list().into_iter().map(Into::into).collect()
    }

    pub fn get(&self, name: &str) -> Option<ProcessInfo> {
        self.list().into_iter().find(|one| one.name == name)
    }

    /// Ends processes that are idle for five minutes and forgets ended ones; servers that get requests stay.
    pub fn cleanup(&self) {
        self.all.tidy(Instant::now());
    }

    pub fn stop_all(&self) {
        self.all.end_all();
    }
}
