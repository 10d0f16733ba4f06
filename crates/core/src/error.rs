//! Errors that stop a driver: the environment can't do what a step needs. The run is safe in its journal.

use ralph_loop_domain::ports::{SandboxError, WorkspaceError};
use ralph_loop_journal::JournalError;
use ralph_loop_protocol::outcome::{ErrorCode, RunError};

#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A setup command failed in the workspace.
    #[error("the setup `{command}` failed; its log: {log}{}", last_lines(.output))]
    Setup {
        command: String,
        /// Path of its log.
        log: String,
        /// The end of its output.
        output: String,
        /// Detected from the repo's files, not configured.
        guessed: bool,
    },
    #[error("{0}")]
    Wiring(String),
}

impl DriveError {
    /// The error for the result object.
    pub fn to_run_error(&self, iteration: Option<u32>) -> RunError {
        let (code, hint) = match self {
            Self::Journal(error) => (ErrorCode::StorageFailed, error.hint()),
            Self::Sandbox(SandboxError::CannotStart { program, .. }) => (
                ErrorCode::IterationFailed,
                Some(format!(
                    "install `{program}` or correct its `command_argv`; `ralph doctor` shows what is missing"
                )),
            ),
            Self::Sandbox(_) => {
                (ErrorCode::SandboxInitFailed, Some("`ralph doctor` shows what this machine can do".into()))
            }
            Self::Workspace(error) => (ErrorCode::IterationFailed, error.hint.clone()),
            Self::Setup { guessed, .. } => {
                let hint = ralph_loop_domain::repo::setup::setup_failed_hint(*guessed);
                let hint = if *guessed { hint.to_owned() } else { format!("{hint}, then `ralph resume`") };
                (ErrorCode::SandboxInitFailed, Some(hint))
            }
            Self::Wiring(_) => (ErrorCode::InvalidInput, None),
        };
        let hint = hint.or_else(|| {
            Some(
                "fix what the message names, then `ralph resume`: everything up to the last event is safe"
                    .into(),
            )
        });
        RunError {
            code,
            message: self.to_string(),
            hint,
            recoverable: !matches!(self, Self::Wiring(_)),
            iteration,
        }
    }
}

/// The last lines of an output, under its name.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(5)..].iter().map(|line| format!("\n    {line}")).collect()
}
