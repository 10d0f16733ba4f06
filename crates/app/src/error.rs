//! The error type of every interface: what failed, the cause, the command that fixes it, the exit code.

use ralph_loop_core::DriveError;
use ralph_loop_domain::ports::{ForgeError, SandboxError, WorkspaceError};
use ralph_loop_git::RepoError;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::lock::LockError;
use ralph_loop_protocol::outcome::{ErrorCode, RunError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Usage,
    /// Nothing checks the result; one answer from the user can fix it.
    NothingChecks,
    NeedsPerson,
    /// This machine can't do it.
    Environment,
    /// The user or another process ended it.
    Stopped,
}

impl ErrorKind {
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Usage | Self::NothingChecks => 2,
            Self::NeedsPerson => 3,
            Self::Environment => 4,
            Self::Stopped => 130,
        }
    }
}

/// An error with its cause and next step.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct AppError {
    pub kind: ErrorKind,
    /// Code for JSON results, if it says more than the kind.
    pub code: Option<ErrorCode>,
    /// What failed, naming the input.
    pub message: String,
    /// The likely cause or the last lines of output.
    pub cause: Option<String>,
    /// The next step.
    pub hint: Option<String>,
}

impl AppError {
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Usage, code: None, message: message.into(), cause: None, hint: None }
    }
    pub fn environment(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Environment, ..Self::usage(message) }
    }
    pub fn needs_person(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::NeedsPerson, ..Self::usage(message) }
    }
    pub fn stopped(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Stopped, ..Self::usage(message) }
    }
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    #[must_use]
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }
    /// Combines several problems into one error: the first, with the others below it.
    pub fn all(errors: Vec<Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let first = errors.next()?;
        let others: Vec<String> = errors
            .map(|error| {
                let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                let cause = error.cause.map(|cause| format!("\n{cause}")).unwrap_or_default();
                format!("also: {}{hint}{cause}", error.message)
            })
            .collect();
        let cause: Vec<String> = first.cause.clone().into_iter().chain(others).collect();
        Some(Self { cause: (!cause.is_empty()).then(|| cause.join("\n")), ..first })
    }
    #[must_use]
    pub fn code(mut self, code: ErrorCode) -> Self {
        self.code = Some(code);
        self
    }
    /// Like [`Self::all`]: every problem comes with its fix, so one start reports them all.
    pub fn together(mut problems: Vec<Self>) -> Result<(), Self> {
        if problems.len() < 2 {
            return problems.pop().map_or(Ok(()), Err);
        }
        let first = problems.remove(0);
        let line = |error: &Self| {
            let cause = error.cause.as_deref().map(|cause| format!(" ({cause})")).unwrap_or_default();
            format!("also: {}{cause}; {}", error.message, error.next())
        };
        let more: Vec<String> = first.cause.iter().cloned().chain(problems.iter().map(line)).collect();
        Err(Self { cause: Some(more.join("\n")), ..first })
    }
    /// The hint, or a default for this kind of error.
    pub fn next(&self) -> &str {
        let known = match self.kind {
            ErrorKind::Usage | ErrorKind::NothingChecks => {
                "`ralph --help` and `ralph COMMAND --help` show how it is used"
            }
            ErrorKind::NeedsPerson => "run `ralph status` to see the question",
            ErrorKind::Stopped => "start again",
            ErrorKind::Environment => {
                "fix what the message names, then start again; `ralph doctor` checks this machine and repo"
            }
        };
        self.hint.as_deref().unwrap_or(known)
    }
    /// The error for JSON results.
    pub fn to_run_error(&self) -> RunError {
        let code = self.code.unwrap_or(match self.kind {
            ErrorKind::Usage | ErrorKind::NothingChecks => ErrorCode::InvalidInput,
            ErrorKind::NeedsPerson => ErrorCode::NeedsHuman,
            ErrorKind::Environment | ErrorKind::Stopped => ErrorCode::SandboxInitFailed,
        });
        RunError {
            code,
            message: match &self.cause {
                Some(cause) => format!("{}: {cause}", self.message),
                None => self.message.clone(),
            },
            hint: Some(self.next().to_owned()),
            recoverable: !matches!(self.kind, ErrorKind::Usage | ErrorKind::NothingChecks),
            iteration: None,
        }
    }
}

impl From<JournalError> for AppError {
    fn from(error: JournalError) -> Self {
        let kind = match &error {
            JournalError::NoRun(_) => ErrorKind::Usage,
            JournalError::Tampered { .. } => ErrorKind::NeedsPerson,
            _ => ErrorKind::Environment,
        };
        let code = (kind == ErrorKind::Environment).then_some(ErrorCode::StorageFailed);
        Self { kind, code, hint: error.hint(), message: error.to_string(), cause: None }
    }
}

impl From<LockError> for AppError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::File(error) => error.into(),
            held => Self::environment(held.to_string()).cause("one run at a time per folder").hint(
                "run `ralph status` to see it, `ralph cancel` to end it, or `ralph run --worktree` to start another next to it",
            ),
        }
    }
}

impl From<DriveError> for AppError {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Journal(error) => error.into(),
            DriveError::Sandbox(error) => error.into(),
            DriveError::Workspace(error) => error.into(),
            DriveError::Wiring(message) => Self::environment(message),
            error @ DriveError::Setup { .. } => Self::environment(error.to_string()),
        }
    }
}

impl From<SandboxError> for AppError {
    fn from(error: SandboxError) -> Self {
        Self::environment(error.to_string()).hint("`ralph doctor` shows what this machine can do")
    }
}

impl From<WorkspaceError> for AppError {
    fn from(error: WorkspaceError) -> Self {
        let hint = error.hint.clone();
        Self { hint, ..Self::environment(error.to_string()) }
    }
}

impl From<ForgeError> for AppError {
    fn from(error: ForgeError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self { hint, ..Self::environment(error.to_string()) }
    }
}

impl From<RepoError> for AppError {
    fn from(error: RepoError) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::usage(error.to_string()) }
    }
}

impl From<ralph_loop_git::Error> for AppError {
    fn from(error: ralph_loop_git::Error) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::environment(error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_problems_are_reported_together_with_fixes() {
        assert!(AppError::together(Vec::new()).is_ok());
        let all = ["a", "b", "c"].map(|name| AppError::usage(format!("{name} is missing")).hint("get it"));
        let error = AppError::together(all.to_vec()).unwrap_err();
        assert_eq!(error.message, "a is missing");
        assert_eq!(error.cause.as_deref(), Some("also: b is missing; get it\nalso: c is missing; get it"));
        assert_eq!(error.hint.as_deref(), Some("get it"));
    }

    #[test]
    fn the_code_of_an_error_says_what_failed_not_only_how_it_ends() {
        let code = |error: AppError| error.to_run_error().code;
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let journal = JournalError::File { verb: "write", path: "events.jsonl".into(), source: full };
        assert_eq!(code(journal.into()), ErrorCode::StorageFailed);
        assert_eq!(code(AppError::environment("x")), ErrorCode::SandboxInitFailed);
        assert_eq!(code(AppError::usage("x").code(ErrorCode::CloneFailed)), ErrorCode::CloneFailed);
    }
}
