//! The action contract: what a model may ask for. Published as `schemas/actions.schema.json`.

use std::time::Duration;

/// The published schema.
pub(super) const SCHEMA: &str = include_str!("../../schemas/actions.schema.json");

/// Most actions of one answer.
pub(super) const ACTIONS_MAX: usize = 200;
/// Longest summary, message or reason, in characters.
pub(super) const WORDS_MAX: usize = 2000;
/// Longest command, in seconds.
pub(super) const COMMAND_SECONDS_MAX: u64 = 3600;
/// Time of a command that names none.
pub(super) const COMMAND_SECONDS: u64 = 900;

/// One answer of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// What was done, in a sentence for people.
    pub summary: String,
    /// In the order in which they are carried out.
    pub actions: Vec<Action>,
    /// What the model says is done.
    pub claims: Claims,
}

/// What a model says is done. It is checked, never believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// Ids of criteria.
    pub checkboxes_checked: Vec<String>,
    /// Ids of milestones.
    pub milestones_completed: Vec<String>,
}

/// Whether the rest goes on after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The rest is not run.
    #[default]
    Stop,
    /// The rest is run all the same.
    Continue,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs a shell line.
    Run {
        /// The line.
        command: String,
        /// Folder below the workspace; the session's own where absent.
        cwd: Option<String>,
        /// Longest run.
        timeout: Duration,
        /// What a failure does.
        on_error: OnError,
    },
    /// Applies a unified diff to one file.
    Patch {
        /// The file.
        path: String,
        /// The diff.
        patch: String,
        /// What a failure does.
        on_error: OnError,
    },
    /// Writes a file.
    Write {
        /// The file.
        path: String,
        /// Its content, or what is added.
        content: String,
        /// Adds to its end instead of replacing it.
        append: bool,
        /// What a failure does.
        on_error: OnError,
    },
    /// Says what this iteration's commit is called.
    Commit {
        /// The message.
        message: String,
        /// What the model thinks belongs to it; the engine commits everything that changed.
        paths: Vec<String>,
    },
    /// Asks for a fresh session.
    Rotate {
        /// Why.
        reason: String,
    },
    /// Asks for a person.
    Pause {
        /// What about.
        reason: String,
    },
    /// Says that everything is done.
    StopSuccess {
        /// Why it thinks so.
        reason: String,
    },
    /// Says that the task cannot be done.
    StopFailure {
        /// Why.
        reason: String,
    },
}

impl Action {
    /// The word of the contract.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Patch { .. } => "patch",
            Self::Write { .. } => "write",
            Self::Commit { .. } => "commit",
            Self::Rotate { .. } => "rotate",
            Self::Pause { .. } => "pause",
            Self::StopSuccess { .. } => "stop_success",
            Self::StopFailure { .. } => "stop_failure",
        }
    }

    /// On what, for people.
    pub fn what(&self) -> &str {
        match self {
            Self::Run { command, .. } => command,
            Self::Patch { path, .. } | Self::Write { path, .. } => path,
            Self::Commit { message, .. } => message,
            Self::Rotate { reason }
            | Self::Pause { reason }
            | Self::StopSuccess { reason }
            | Self::StopFailure { reason } => reason,
        }
    }

    /// What a failure of it does to the rest.
    pub fn on_error(&self) -> OnError {
        match self {
            Self::Run { on_error, .. } | Self::Patch { on_error, .. } | Self::Write { on_error, .. } => {
                *on_error
            }
            _ => OnError::Stop,
        }
    }
}
