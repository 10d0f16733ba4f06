//! What a run does to the outside world.

use serde::{Deserialize, Serialize};

/// Something that is about to be done to the outside world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectIntended {
    /// What.
    pub effect: Effect,
    /// Which one, so that it is recognised as the same when it is done again.
    pub key: String,
}

/// Something that is seen outside the run. Each can be done twice without harm: the code host or the receiver knows it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Effect {
    /// Branch and state go to the remote. Known again by the ids of the commits.
    Push,
    /// The pull request is opened or written anew. Known again by its branch.
    PullRequest,
    /// An issue is answered. Known again by a mark in the comment.
    Comment,
    /// People are told. May come twice, with the same key.
    Notification,
}

impl Effect {
    /// After "about to".
    pub fn words(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::PullRequest => "write the pull request",
            Self::Comment => "answer the issue",
            Self::Notification => "tell people",
        }
    }
}
