//! What happens between a run and its code host.

use crate::id::{CommitId, Digest};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Branch and state were pushed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pushed {
    /// The number of finished iterations.
    pub iteration: u32,
    /// The branch.
    pub branch: String,
    /// Its commit; absent if only the state was pushed.
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
    /// The user must decide about changed tests.
    Asked,
    /// The run ended without success.
    Stopped,
}

/// A pull request was opened or updated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrWritten {
    /// Its number.
    pub number: u64,
    /// Its web page.
    pub url: String,
    /// Whether it is a draft.
    pub draft: bool,
    /// Why.
    pub why: PrOccasion,
    /// Criteria met so far.
    #[serde(default)]
    pub met: usize,
}

/// The code host or the remote didn't do what was requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandoverFailed {
    /// What was tried, and why it failed.
    pub reason: String,
    /// How to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When it is retried; absent if only the user can help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
}

/// The combined state of a commit's checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum ChecksState {
    /// There are none.
    None,
    /// Some are not finished.
    Pending,
    /// All passed.
    Passed,
    /// At least one failed.
    Failed,
}

/// The checks of the pushed commit were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChecksSeen {
    /// The commit.
    pub commit: CommitId,
    /// Their state.
    pub state: ChecksState,
    /// How many there are.
    #[serde(default)]
    pub seen: usize,
    /// Names of those that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// Their output, for the next session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
    /// When they are read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// The state of a pull request's review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum ReviewOutcome {
    /// No decision yet.
    Waiting,
    /// Approved.
    Approved,
    /// Changes were requested.
    ChangesRequested,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
}

/// The review was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewSeen {
    /// Its state.
    pub state: ReviewOutcome,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Ids of reviews and comments that this answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<u64>,
    /// The review comments, for the next session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feedback: String,
    /// When it is read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// Another open pull request on the same files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverlapWith {
    /// Its number.
    pub number: u64,
    /// Its web page.
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
    /// The pull requests; empty if there are none any more.
    pub prs: Vec<OverlapWith>,
    /// Whether the user must decide.
    #[serde(default)]
    pub pause: bool,
}

/// Where a run works, once created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placed {
    /// The folder of the agent's files.
    pub workspace: std::path::PathBuf,
    /// The branch that the run commits on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The remote branch that the run pushes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_branch: Option<String>,
    /// Digest of the `.ralph/config.json` that came with the repo into the run's own workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Digest>,
}

/// The run continues elsewhere: on another machine, in another folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// Digest of the new `spec.json`.
    pub spec: Digest,
    /// The original state, as the new workspace has it.
    pub baseline: super::Baseline,
    /// Where it was fetched from.
    pub from: String,
}
