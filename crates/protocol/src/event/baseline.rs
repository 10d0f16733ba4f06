//! The state that a run starts from.

use super::parts::CheckResult;
use crate::id::{CommitId, TreeId};
use crate::proof::level::Watching;
use crate::stuck::MeasuredNumber;
use serde::{Deserialize, Serialize};

/// The state at the start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baseline {
    /// The commit that `HEAD` named.
    pub head: CommitId,
    /// The branch, unless detached.
    pub branch: Option<String>,
    /// The snapshot commit.
    pub start: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// Files that were dirty or untracked.
    #[serde(default)]
    pub dirty: Vec<String>,
    /// The total number of dirty files, if the list is cut.
    #[serde(default)]
    pub dirty_total: usize,
    /// Files too large for the snapshot.
    #[serde(default)]
    pub left_out: Vec<String>,
}

/// Check results before the first session, in a clean checkout of the original snapshot, after setup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineChecks {
    /// Each check that was run.
    pub results: Vec<CheckResult>,
    /// Checks that failed twice, and not because of the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub red: Vec<String>,
    /// Whether they were watched.
    #[serde(default)]
    pub watched: Watching,
    /// The setup command that failed there, so that no check was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_failed: Option<String>,
    /// Its last output lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup_lines: Vec<String>,
    /// Its log, relative to the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_log: Option<String>,
    /// Whether the results come from an earlier run on the same files with the same checks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// The original value of the number to improve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<MeasuredNumber>,
}
