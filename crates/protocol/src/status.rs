//! The status of a run as one word.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The status of a run. The words appear in files, screens and `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Status {
    /// Requested, but not started.
    Queued,
    /// Its workspace is being created.
    Preparing,
    /// An agent is working.
    Working,
    /// Checks run on the agent's work.
    Verifying,
    /// Waits for something that ends without you: a limit, checks, a review.
    Waiting,
    /// Paused until you resume it.
    Paused,
    /// Its process ended without a pause: killed, crashed, or the machine went down.
    Interrupted,
    /// Waits for your decision.
    #[serde(rename = "needs you")]
    NeedsYou,
    /// The final check runs.
    Proving,
    /// The proven result is being handed over.
    Publishing,
    /// Proven and handed over.
    Done,
    /// Ended without success.
    Failed,
    /// Ended by the user.
    Stopped,
}

impl Status {
    /// Every status, in the order of a run's life.
    pub const ALL: [Self; 13] = [
        Self::Queued,
        Self::Preparing,
        Self::Working,
        Self::Verifying,
        Self::Waiting,
        Self::Paused,
        Self::Interrupted,
        Self::NeedsYou,
        Self::Proving,
        Self::Publishing,
        Self::Done,
        Self::Failed,
        Self::Stopped,
    ];

    /// The word in files and on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Working => "working",
            Self::Verifying => "verifying",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Interrupted => "interrupted",
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
    fn status_word_is_the_same_in_json_and_on_screens() {
        for status in Status::ALL {
            let json = serde_json::to_value(status).unwrap();
            assert_eq!(json, status.as_str());
            assert_eq!(serde_json::from_value::<Status>(json).unwrap(), status);
        }
        assert_eq!(Status::NeedsYou.to_string(), "needs you");
    }
}
