//! Where a run stands, in one word.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a run stands. The words are those of files, screens and `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Status {
    /// It was asked for and has not begun.
    Queued,
    /// Its workspace is being made.
    Preparing,
    /// An agent works.
    Working,
    /// Checks run on what the agent left.
    Verifying,
    /// It waits for something that ends by itself: a limit, checks, a review.
    Waiting,
    /// It waits until a person lets it go on.
    Paused,
    /// It waits for a person's word.
    #[serde(rename = "needs you")]
    NeedsYou,
    /// The final check runs.
    Proving,
    /// The proven result is handed over.
    Publishing,
    /// Proven, and handed over.
    Done,
    /// Ended without success.
    Failed,
    /// Ended by a person.
    Stopped,
}

impl Status {
    /// Every status, in the order of a run's life.
    pub const ALL: [Self; 12] = [
        Self::Queued,
        Self::Preparing,
        Self::Working,
        Self::Verifying,
        Self::Waiting,
        Self::Paused,
        Self::NeedsYou,
        Self::Proving,
        Self::Publishing,
        Self::Done,
        Self::Failed,
        Self::Stopped,
    ];

    /// The word of files and screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Working => "working",
            Self::Verifying => "verifying",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::NeedsYou => "needs you",
            Self::Proving => "proving",
            Self::Publishing => "publishing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// Whether the run is over.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Stopped)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_json_is_the_word_on_screens() {
        for status in Status::ALL {
            let json = serde_json::to_value(status).unwrap();
            assert_eq!(json, status.as_str());
            assert_eq!(serde_json::from_value::<Status>(json).unwrap(), status);
        }
        assert_eq!(Status::NeedsYou.to_string(), "needs you");
    }
}
