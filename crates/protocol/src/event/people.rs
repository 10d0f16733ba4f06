//! User decisions during a run.

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

/// The new baseline after an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalApplied {
    /// Digest of the repo's configuration now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Digest>,
    /// Digest of `spec.json`.
    pub spec: Digest,
}

/// Changed tests were accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofApproved {
    /// The commit.
    pub commit: CommitId,
    /// Digest of the updated `proof.json`.
    pub proof: Digest,
    /// Who approved.
    pub by: String,
}
