//! Receipts: what one iteration used, did and was judged to be (`receipt.json`).

use crate::event::{CheckResult, SessionEnd, Verdict};
use crate::id::{AgentName, CommitId, Digest, RunId, TreeId};
use crate::money::{Cost, TokenSum, Tokens, Usd};
use crate::protected::ProtectedChange;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The format that is written.
pub const VERSION: u32 = 1;

/// What one iteration used, did and was judged to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Receipt {
    /// Format version.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERSION)))]
    pub version: u32,
    /// The run.
    pub run_id: RunId,
    /// Number of the iteration.
    pub iteration: u32,
    /// Its try.
    pub attempt: u32,
    /// Who worked.
    pub agent: AgentName,
    /// With which model, as the agent says, else as it was asked for.
    pub model: Option<String>,
    /// Digest of the prompt.
    pub prompt: Digest,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was judged.
    pub ended_at: Timestamp,
    /// How long the session took.
    pub session_ms: u64,
    /// How the session ended.
    pub end: Option<SessionEnd>,
    /// Exit code, if there was one.
    pub exit_code: Option<i32>,
    /// Whether the final message held the promise.
    pub promised: bool,
    /// The final message in one line.
    pub message: String,
    /// Tokens of the session, where they are known.
    pub tokens: Option<Tokens>,
    /// Money of the session.
    #[serde(flatten)]
    pub cost: Cost,
    /// What reading from a cache saved.
    #[serde(default)]
    pub saved_usd: Option<Usd>,
    /// The tree that the iteration left.
    pub tree: Option<TreeId>,
    /// The work commit, where something changed.
    pub commit: Option<CommitId>,
    /// Files changed.
    pub files_changed: usize,
    /// Lines added.
    pub lines_added: u64,
    /// Lines removed.
    pub lines_removed: u64,
    /// Results of the verifiers that ran.
    pub checks: Vec<CheckResult>,
    /// Protected paths that were changed.
    pub protected_changed: Vec<ProtectedChange>,
    /// The judgement.
    pub verdict: Verdict,
    /// What is known of the run's cost up to now.
    pub total_cost_usd: Option<Usd>,
    /// An estimate of what the run's sandboxes have cost up to now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_compute_usd: Option<Usd>,
    /// Tokens of the run up to now.
    pub total_tokens: TokenSum,
}
