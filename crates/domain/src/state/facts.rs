//! The parts of a run's state.

use crate::repo::protect::ProtectedChange;
use jiff::Timestamp;
use ralph_loop_protocol::event::TestsQuestion;
use ralph_loop_protocol::event::{CheckResult, CommitPart, SessionEnd, Verdict};
use ralph_loop_protocol::id::{AgentName, CommitId, Digest, TreeId};
pub use ralph_loop_protocol::money::AgentTotals;
use ralph_loop_protocol::money::{Cost, CostBasis, TokenSum, Usage, Usd, short_cost};
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use ralph_loop_protocol::proof::level::{ProofLevel, Watching};
use ralph_loop_task::config::Role;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Current {
    pub iteration: u32,
    pub attempt: u32,
    pub agent: AgentName,
    pub model: Option<String>,
    pub prompt: Digest,
    pub skipped: Vec<String>,
    #[serde(default)]
    pub role: Option<Role>,
    pub started_at: Timestamp,
    pub stage: Stage,
    pub session: Option<SessionFacts>,
    pub change: Option<ChangeFacts>,
    pub checked: Vec<String>,
    pub protected: Vec<ProtectedChange>,
    /// The task was edited after its session had begun, so its claims are about the old task.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub outdated: bool,
}

impl Current {
    /// Whether its session promised that the present task is done.
    pub fn promises(&self) -> bool {
        !self.outdated && self.session.as_ref().is_some_and(|session| session.promised)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Working,
    Worked,
    Checkpointed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionFacts {
    pub end: SessionEnd,
    pub promised: bool,
    pub message: String,
    pub usage: Usage,
    pub duration_ms: u64,
    pub exit_code: Option<i32>,
    /// The agent's suggestion for the iteration's commit message.
    #[serde(default)]
    pub commit_message: Option<String>,
    /// Commits of some of its files that it wants before that one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commit_parts: Vec<CommitPart>,
}

/// Findings of a session in another role, for the builder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleFindings {
    pub iteration: u32,
    pub role: Role,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeFacts {
    pub tree: TreeId,
    /// The commit, if anything changed.
    pub commit: Option<CommitId>,
    pub files: usize,
    pub added: u64,
    pub removed: u64,
    pub contents: Vec<(String, String)>,
    /// For the stuck rules: changed lines of each of `contents`.
    #[serde(default)]
    pub sizes: Vec<u64>,
}

/// Totals over the run's life; a resume never resets them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    #[serde(flatten, with = "short_cost")]
    pub cost: Cost,
    pub tokens: TokenSum,
    #[serde(default)]
    pub saved: Usd,
    /// Working time: sessions, checks, proofs.
    pub working_ms: u64,
    pub waited_ms: u64,
    /// Sessions, including void ones.
    pub sessions: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationSummary {
    pub iteration: u32,
    pub agent: AgentName,
    pub verdict: Verdict,
    pub end: SessionEnd,
    pub message: String,
    pub files: usize,
    pub added: u64,
    pub removed: u64,
    /// The known cost; read it with [`Self::cost`].
    #[serde(rename = "cost")]
    pub known_cost: Option<Usd>,
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub cost_basis: CostBasis,
    pub duration_ms: u64,
    pub loop_score: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// Tests, summed over verifiers that report them.
    pub tests: Option<ralph_loop_protocol::proof::test_counts::TestCounts>,
    /// The work commit, if anything changed.
    pub commit: Option<CommitId>,
    pub ended_at: Timestamp,
}

impl IterationSummary {
    pub fn cost(&self) -> Cost {
        self.known_cost.map_or(Cost::UNKNOWN, |sum| Cost::new(sum, self.cost_basis))
    }
}

/// A gutter that awaits its recovery step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gutter {
    pub loop_score: f64,
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedsHuman {
    pub reason: HumanReason,
    pub message: String,
}

impl NeedsHuman {
    /// How you answer, as commands on the run.
    pub fn answer(&self, run: &str) -> String {
        match self.reason {
            // A final check said so; settings are frozen, and so is the base commit.
            HumanReason::Setup if self.message.contains("new run") => {
                format!(
                    "do that, then run the task again with `--new`; `ralph show {run} --proof` shows what failed"
                )
            }
            HumanReason::Setup => {
                format!(
                    "do that, then `ralph resume {run}` checks again; `ralph show {run} --checks` shows what failed"
                )
            }
            HumanReason::RefsMoved | HumanReason::Tampered => {
                format!("look at it, then `ralph approve {run}` and `ralph resume {run}`")
            }
            HumanReason::TestsChanged => format!(
                "`ralph approve {run}` and `ralph resume {run}` accept the result; `ralph nudge \"…\" --run {run}` and \
                 `ralph resume {run}` have the next session improve it"
            ),
            HumanReason::Publish => format!("fix that, then `ralph resume {run}` tries again"),
            HumanReason::Checks | HumanReason::Review => format!("`ralph resume {run}` looks again"),
            HumanReason::Overlap => format!("agree with their authors, then `ralph resume {run}` continues"),
            HumanReason::Stuck | HumanReason::AgentAsks => {
                format!("`ralph nudge \"…\" --run {run}` gives a hint, `ralph resume {run}` continues")
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofFacts {
    pub commit: CommitId,
    pub passed: bool,
    pub clean: bool,
    pub failed: Vec<String>,
    /// Digest of `proof.json`, once finished.
    pub proof: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ProofLevel>,
    #[serde(default, skip_serializing_if = "Watching::is_not_watched")]
    pub watched: Watching,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level_reason: Option<String>,
    /// What failed without the work and passes with it, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub difference: Vec<String>,
    /// Changes of the harness, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harness: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<CheckResult>,
    /// The question to the user, if only that prevents a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Box<TestsQuestion>>,
    /// Who accepted the changed tests, if anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

impl ProofFacts {
    /// The headline, the same on every surface.
    pub fn headline(&self) -> String {
        let by = self.approved_by.as_deref();
        let by = self.question.as_ref().map_or(by, |asked| asked.accepted(self.level, by));
        ProofLevel::headline(self.level.filter(|_| self.passed), by, self.level_reason.as_deref())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    pub branch: String,
    pub commit: CommitId,
    pub pr_url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    pub reason: EndReason,
    pub summary: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFacts {
    pub reason: String,
    pub until: Option<Timestamp>,
    pub since: Timestamp,
}
