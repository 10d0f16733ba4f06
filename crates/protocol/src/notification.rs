//! Notifications for users who aren't watching.

use crate::id::RunId;
use crate::money::Cost;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A reason to notify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Occasion {
    /// A run starts.
    Start,
    /// The user is needed: approval, a question, a pause.
    NeedsHuman,
    /// A run is stuck.
    Gutter,
    /// A run waits for a rate limit.
    LimitWait,
    /// Proven and handed over.
    Success,
    /// Ended without success.
    Failure,
}

impl Occasion {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Start, Self::NeedsHuman, Self::Gutter, Self::LimitWait, Self::Success, Self::Failure];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::NeedsHuman => "needs_human",
            Self::Gutter => "gutter",
            Self::LimitWait => "limit_wait",
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notification {
    /// Stays the same when a notification is sent again, so that receivers recognize duplicates.
    pub id: String,
    /// When it happened.
    pub at: Timestamp,
    /// What it is about.
    pub occasion: Occasion,
    /// The run.
    pub run_id: RunId,
    /// The task's title.
    pub title: String,
    /// One or two sentences.
    pub text: String,
    /// What to do now, as a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The pull request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_url: Option<String>,
    /// Iterations so far.
    pub iterations: u32,
    /// Money so far.
    #[serde(flatten)]
    pub cost: Cost,
}
