//! What happens between a run and its code host.

use crate::id::{CommitId, Digest};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Branch and state are on the remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pushed {
    /// Finished iterations when it was pushed.
    pub iteration: u32,
    /// The branch.
    pub branch: String,
    /// Its commit; absent where only the state was pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The commit of the state ref.
    pub state: CommitId,
}

/// Why a pull request was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum PrOccasion {
    /// The first push.
    Opened,
    /// More criteria are met.
    Progress,
    /// Proven.
    Proven,
    /// A person is asked about changed tests.
    Asked,
    /// The run ended without success.
    Stopped,
}

/// A pull request was opened or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrWritten {
    /// Its number.
    pub number: u64,
    /// Where people read it.
    pub url: String,
    /// Not yet for review.
    pub draft: bool,
    /// Why.
    pub why: PrOccasion,
    /// Criteria met by then.
    #[serde(default)]
    pub met: usize,
}

/// The code host or the remote did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandoverFailed {
    /// What was tried, and why it failed.
    pub reason: String,
    /// What fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When it is tried again; absent where only a person can help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
}

/// How all checks of a commit stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum ChecksState {
    /// There are none.
    None,
    /// Some are not finished.
    Pending,
    /// All are fine.
    Passed,
    /// At least one failed.
    Failed,
}

/// The checks of the pushed commit were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChecksSeen {
    /// The commit.
    pub commit: CommitId,
    /// How they stand.
    pub state: ChecksState,
    /// How many there are.
    #[serde(default)]
    pub seen: usize,
    /// Names of those that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// What they printed, for the next session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
    /// When they are looked at again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// How the review of a pull request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum ReviewOutcome {
    /// Nobody has decided.
    Waiting,
    /// Approved.
    Approved,
    /// Changes are asked for.
    ChangesRequested,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
}

/// The review was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewSeen {
    /// How it stands.
    pub state: ReviewOutcome,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Ids of reviews and comments that are answered with this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<u64>,
    /// What people wrote, for the next session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
    /// When it is looked at again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// Another open pull request on the same files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverlapWith {
    /// Its number.
    pub number: u64,
    /// Where people read it.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The files that both touch, at most ten.
    pub files: Vec<String>,
}

/// Other open pull requests touch the same files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverlapFound {
    /// Which; empty where there are none any more.
    pub prs: Vec<OverlapWith>,
    /// Whether the user must decide.
    #[serde(default)]
    pub pause: bool,
}

/// Where a run works, once that is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placed {
    /// The folder of the agent's files.
    pub workspace: std::path::PathBuf,
    /// The branch that the run commits on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch on the other side, where the run pushes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_branch: Option<String>,
    /// Digest of the `.ralph/config.json` that the repo brought into a place of the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Digest>,
}

/// The run continues elsewhere: on another machine, in another folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// Digest of the new `spec.json`.
    pub spec: Digest,
    /// The state at the start, as the new place knows it.
    pub baseline: super::Baseline,
    /// From where it was fetched.
    pub from: String,
}
