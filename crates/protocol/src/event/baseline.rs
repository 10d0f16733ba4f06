//! The state that a run starts from.

use crate::id::{CommitId, TreeId};
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
    /// How many were dirty in all, where the list is cut.
    #[serde(default)]
    pub dirty_total: usize,
    /// Files too large for the snapshot, left alone.
    #[serde(default)]
    pub left_out: Vec<String>,
}
