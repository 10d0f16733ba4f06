//! Side effects of a run.

use serde::{Deserialize, Serialize};

/// A side effect is about to happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectIntended {
    /// The kind.
    pub effect: Effect,
    /// Identifies it, so that a repeat is recognized.
    pub key: String,
}

/// A side effect outside the run. Each can be repeated without harm, because the code host or the receiver recognizes
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Effect {
    /// Push of branch and state. Recognized by the commit ids.
    Push,
    /// Opening or updating the pull request. Recognized by its branch.
    PullRequest,
    /// A comment on an issue. Recognized by a mark in it.
    Comment,
    /// A notification. May be sent twice, with the same key.
    Notification,
}

impl Effect {
    /// Text to follow "about to".
    pub fn words(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::PullRequest => "write the pull request",
            Self::Comment => "answer the issue",
            Self::Notification => "tell people",
        }
    }
}
