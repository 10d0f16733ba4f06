//! The action contract: what a model may request. Published as `schemas/actions.schema.json`.

use std::time::Duration;

pub(super) const SCHEMA: &str = include_str!("../../schemas/actions.schema.json");

pub(super) const ACTIONS_MAX: usize = 200;
/// Longest summary, message or reason, in characters.
pub(super) const WORDS_MAX: usize = 2000;
pub(super) const COMMAND_SECONDS_MAX: u64 = 3600;
pub(super) const COMMAND_SECONDS: u64 = 900;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    pub summary: String,
    /// In order of execution.
    pub actions: Vec<Action>,
    /// What the model claims.
    pub claims: Claims,
}

/// A model's claims. They are always checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    pub checkboxes_checked: Vec<String>,
    pub milestones_completed: Vec<String>,
}

/// Whether the rest runs after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The rest is skipped.
    #[default]
    Stop,
    Continue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Run {
        command: String,
        /// Folder below the workspace; default: the session's.
        cwd: Option<String>,
        timeout: Duration,
        on_error: OnError,
    },
    Patch {
        path: String,
        patch: String,
        on_error: OnError,
    },
    Write {
        path: String,
        /// Its content, or the text to append.
        content: String,
        /// Append instead of replacing.
        append: bool,
        on_error: OnError,
    },
    /// Sets the message of this iteration's commit.
    Commit {
        /// The message.
        message: String,
        /// If there are any, a separate commit of only these, before the iteration's own.
        paths: Vec<String>,
    },
    /// Requests a fresh session.
    Rotate {
        reason: String,
    },
    /// Asks the user.
    Pause {
        /// What about.
        reason: String,
    },
    /// Claims that everything is done.
    StopSuccess {
        /// Why it thinks so.
        reason: String,
    },
    /// Reports that the task is impossible.
    StopFailure {
        /// Why.
        reason: String,
    },
}

impl Action {
    /// The action's name in the contract.
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

    /// Its target, for display.
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

    pub fn on_error(&self) -> OnError {
        match self {
            Self::Run { on_error, .. } | Self::Patch { on_error, .. } | Self::Write { on_error, .. } => {
                *on_error
            }
            _ => OnError::Stop,
        }
    }
}
