//! How a session ended, and what the agent requests.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum SessionEnd {
    /// The agent finished.
    Completed,
    /// It finished without output or changes.
    Empty,
    /// The agent failed.
    Failed {
        /// As text.
        reason: String,
    },
    /// It exceeded its time limit.
    TimedOut,
    /// It was silent for too long.
    IdleTimedOut,
    /// A rate limit of the provider.
    RateLimited {
        /// When it ends, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reset_at: Option<Timestamp>,
        /// The provider's message.
        reason: String,
    },
    /// The provider is temporarily overloaded.
    Overloaded {
        /// As text.
        reason: String,
    },
    /// The provider's host is unreachable.
    Unreachable {
        /// As text.
        reason: String,
    },
    /// Not logged in, or the key was rejected.
    Auth {
        /// As text.
        reason: String,
    },
    /// No credit.
    Billing {
        /// As text.
        reason: String,
    },
    /// The prompt or the session's context is too long.
    ContextTooLong {
        /// As text.
        reason: String,
    },
    /// The model declined, or every action was denied.
    Refused {
        /// As text.
        reason: String,
    },
    /// The agent's process ended without the end event of its format.
    Unfinished {
        /// As text.
        reason: String,
    },
    /// The engine ended it.
    Stopped {
        /// Why.
        cause: StopCause,
    },
    /// The engine or its guard died while the session ran.
    Interrupted,
}

impl SessionEnd {
    /// A short word for lists.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Empty => "empty answer",
            Self::Failed { .. } => "agent failed",
            Self::TimedOut => "timed out",
            Self::IdleTimedOut => "silent too long",
            Self::RateLimited { .. } => "rate limited",
            Self::Overloaded { .. } => "provider overloaded",
            Self::Unreachable { .. } => "provider not reachable",
            Self::Auth { .. } => "not logged in",
            Self::Billing { .. } => "no credit",
            Self::ContextTooLong { .. } => "context too long",
            Self::Refused { .. } => "refused",
            Self::Unfinished { .. } => "ended without a result",
            Self::Stopped { .. } => "ended by ralph",
            Self::Interrupted => "interrupted",
        }
    }
    /// What the agent or provider said about it.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason }
            | Self::RateLimited { reason, .. }
            | Self::Overloaded { reason }
            | Self::Unreachable { reason }
            | Self::Auth { reason }
            | Self::Billing { reason }
            | Self::ContextTooLong { reason }
            | Self::Refused { reason }
            | Self::Unfinished { reason } => Some(reason),
            _ => None,
        }
    }
    /// Whether such a session counts against its agent.
    pub fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::Failed { .. }
                | Self::Empty
                | Self::TimedOut
                | Self::IdleTimedOut
                | Self::Unfinished { .. }
                | Self::Refused { .. }
        )
    }
    /// Whether such a session doesn't count as an iteration: it tried nothing that could be judged.
    pub fn is_void(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Overloaded { .. }
                | Self::Unreachable { .. }
                | Self::Auth { .. }
                | Self::Billing { .. }
                | Self::Interrupted
                | Self::Stopped {
                    cause: StopCause::Cancelled
                        | StopCause::Suspended
                        | StopCause::Skipped
                        | StopCause::Hopeless
                }
        )
    }
}

/// Why the engine ended a command early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum StopCause {
    /// The run is cancelled.
    Cancelled,
    /// The run is suspended and can be resumed.
    Suspended,
    /// The user requested a fresh session.
    Rotated,
    /// The user skips this agent.
    Skipped,
    /// The agent's output shows that continuing is pointless (a long rate limit).
    Hopeless,
    /// A budget or deadline ended during the session.
    Budget,
}

/// What an agent requests instead of continuing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// A fresh session.
    Rotate {
        /// Why.
        reason: String,
    },
    /// The user's decision.
    Pause {
        /// What about.
        reason: String,
    },
    /// It reports that the task is impossible.
    GiveUp {
        /// Why.
        reason: String,
    },
}
