//! What a person decided while a run was on its way.

use crate::id::{CommitId, Digest};
use serde::{Deserialize, Serialize};

/// A new version of the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpecChanged {
    /// Its version.
    pub version: u32,
    /// Digest of `spec.json`.
    pub spec: Digest,
    /// Digest of the task's text.
    pub task: Digest,
}

/// What counts as the baseline from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalApplied {
    /// Digest of the repo's configuration now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Digest>,
    /// Digest of `spec.json`.
    pub spec: Digest,
}

/// Tests that the run changed, accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofApproved {
    /// The commit.
    pub commit: CommitId,
    /// Digest of `proof.json`, which says so now.
    pub proof: Digest,
    /// Who.
    pub by: String,
}
