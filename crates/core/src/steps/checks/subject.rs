//! What a final check looks at, and what it has found so far.

use ralph_loop_domain::ports::Baseline;
use ralph_loop_domain::repo::protect::ProtectedChange;
use ralph_loop_proof::harness::Harness;
use ralph_loop_proof::state::{ProofState, Tree, Verdict};
use ralph_loop_protocol::id::{CommitId, TreeId};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// What is to be proven.
#[derive(Clone)]
pub(crate) struct Subject {
    /// What is handed over.
    pub(crate) commit: CommitId,
    /// What is checked out: the commit, possibly with your uncommitted changes.
    pub(crate) checked: CommitId,
    /// The original tree.
    pub(crate) start: CommitId,
    pub(crate) tree: TreeId,
    pub(crate) baseline: Baseline,
    pub(crate) logs: PathBuf,
    /// Your uncommitted changes in it.
    pub(crate) beside: Vec<String>,
    /// Files of earlier runs that are neither proven nor approved; you shouldn't commit them unseen.
    pub(crate) left: BTreeSet<String>,
}

/// A proof in progress.
pub(crate) struct Finding {
    pub(crate) state: ProofState,
    pub(crate) harness: Harness,
    pub(crate) verdict: Verdict,
    /// Output of failed checks.
    pub(crate) output: String,
    /// What only you can fix.
    pub(crate) hint: Option<String>,
    /// How long each tree took, with its setup.
    pub(crate) took: Vec<(Tree, Duration)>,
    /// Changed protected paths.
    pub(crate) protected: Vec<ProtectedChange>,
}
