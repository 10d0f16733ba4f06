//! Receipts: usage, changes and verdict of one iteration (`receipt.json`).

use crate::event::{CheckResult, SessionEnd, Verdict};
use crate::id::{AgentName, CommitId, Digest, RunId, TreeId};
use crate::money::{Cost, TokenSum, Tokens, Usd};
use crate::proof::protected::ProtectedChange;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The written format version.
pub const VERSION: u32 = 1;

/// Usage, changes and verdict of one iteration.
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
    /// The agent.
    pub agent: AgentName,
    /// The model reported by the agent, else the requested one.
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
    /// The exit code, if any.
    pub exit_code: Option<i32>,
    /// Whether the final message contained the promise.
    pub promised: bool,
    /// The final message in one line.
    pub message: String,
    /// Tokens of the session, if known.
    pub tokens: Option<Tokens>,
    /// Money of the session.
    #[serde(flatten)]
    pub cost: Cost,
    /// Savings by cache reads.
    #[serde(default)]
    pub saved_usd: Option<Usd>,
    /// The tree after the iteration.
    pub tree: Option<TreeId>,
    /// The work commit, if anything changed.
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
    /// The verdict.
    pub verdict: Verdict,
    /// The known part of the run's cost so far.
    pub total_cost_usd: Option<Usd>,
    /// An estimate of the sandboxes' cost so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_compute_usd: Option<Usd>,
    /// Tokens of the run so far.
    pub total_tokens: TokenSum,
}
