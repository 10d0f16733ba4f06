//! What people are told while nobody watches.

use crate::id::RunId;
use crate::money::Cost;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What people are told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Occasion {
    /// A run starts.
    Start,
    /// A person is needed: approval, a question, a pause.
    NeedsHuman,
    /// A run circles.
    Gutter,
    /// A run waits for a limit to end.
    LimitWait,
    /// Proven, handed over.
    Success,
    /// Ended without success.
    Failure,
}

impl Occasion {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Start, Self::NeedsHuman, Self::Gutter, Self::LimitWait, Self::Success, Self::Failure];

    /// As the configuration writes it.
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

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notification {
    /// The same for the same occasion, however often it is sent: who gets it twice can tell.
    pub id: String,
    /// When it happened.
    pub at: Timestamp,
    /// What it is about.
    pub occasion: Occasion,
    /// The run.
    pub run_id: RunId,
    /// The task in a few words.
    pub title: String,
    /// What happened, in one or two sentences.
    pub text: String,
    /// What can be done now, as a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The pull request, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_url: Option<String>,
    /// Iterations so far.
    pub iterations: u32,
    /// Money so far.
    #[serde(flatten)]
    pub cost: Cost,
}
