//! The process manager for programs that want it without an agent: the same that backs the built-in tools.

use super::halt::Halt;
use super::process::{ProcessStart, Processes, Ready, Signal};
use ralph_loop_domain::ports::{ProcessInfo, Sandbox};
use ralph_loop_protocol::outcome::ErrorCode;
use ralph_loop_protocol::text;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest wait for a process to be ready, unless told.
const READY: Duration = Duration::from_secs(60);

/// A manager could not do what was asked; the message is made for a model or a person to act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ManagerError {
    /// `PROCESS_FAILED` or `BROWSER_FAILED`.
    pub code: ErrorCode,
    /// What went wrong, and what helps.
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

/// A process that is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProcess {
    /// Its name; one of the same name ends first.
    pub name: String,
    /// The command, as for a shell.
    pub command: String,
    /// The folder below the sandbox's root that it runs in.
    pub cwd: PathBuf,
    /// Variables added to its environment.
    pub env: Vec<(String, String)>,
    /// A text or regular expression that it prints when it is ready.
    pub ready_signal: Option<String>,
    /// Longest wait for that; a minute unless told.
    pub ready_timeout: Duration,
}

impl NewProcess {
    /// A process with every default.
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

    /// Ready once it prints this.
    #[must_use]
    pub fn ready_signal(mut self, signal: impl Into<String>) -> Self {
        self.ready_signal = Some(signal.into());
        self
    }
}

/// Long-running commands by name: one per name, the whole process group ends (asked first, killed after 5 seconds), nothing
/// outlives the manager.
#[derive(Debug, Default)]
pub struct ProcessManager {
    all: Processes,
}

impl ProcessManager {
    /// Starts a process and waits until it is ready: its signal, or an address in its output, or a moment without trouble.
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

    /// Ends a process.
    pub fn stop(&self, name: &str) -> Result<(), ManagerError> {
        self.all.stop(name).map(|_| ()).map_err(ManagerError::process)
    }

    /// The last lines that a process printed.
    pub fn output(&self, name: &str, lines: usize) -> Result<String, ManagerError> {
        let (_, output) = self.all.output(name).map_err(ManagerError::process)?;
        Ok(text::tail_lines(output.trim_end(), lines).to_owned())
    }

    /// All of them, also those that have ended since the last [`Self::cleanup`].
    pub fn list(&self) -> Vec<ProcessInfo> {
        self.all.list().into_iter().map(Into::into).collect()
    }

    /// The process of this name.
    pub fn get(&self, name: &str) -> Option<ProcessInfo> {
        self.list().into_iter().find(|one| one.name == name)
    }

    /// Lets go of what is idle for five minutes or has ended; servers that get requests stay.
    pub fn cleanup(&self) {
        self.all.tidy(Instant::now());
    }

    /// Ends them all.
    pub fn stop_all(&self) {
        self.all.end_all();
    }
}
