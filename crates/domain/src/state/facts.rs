//! The parts of a run's state.

use crate::repo::protect::ProtectedChange;
use jiff::Timestamp;
use ralph_loop_protocol::event::TestsQuestion;
use ralph_loop_protocol::event::{CheckResult, SessionEnd, Verdict};
use ralph_loop_protocol::id::{AgentName, CommitId, Digest, TreeId};
pub use ralph_loop_protocol::money::AgentTotals;
use ralph_loop_protocol::money::{Cost, CostBasis, TokenSum, Usage, Usd, short_cost};
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use ralph_loop_protocol::proof::level::{ProofLevel, Watching};
use ralph_loop_task::config::Role;
use serde::{Deserialize, Serialize};

/// The current iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Current {
    /// Its number.
    pub iteration: u32,
    /// Its try.
    pub attempt: u32,
    /// The agent.
    pub agent: AgentName,
    /// The requested model.
    pub model: Option<String>,
    /// Digest of its prompt.
    pub prompt: Digest,
    /// Skipped agents.
    pub skipped: Vec<String>,
    /// The role.
    #[serde(default)]
    pub role: Option<Role>,
    /// When it began.
    pub started_at: Timestamp,
    /// How far it is.
    pub stage: Stage,
    /// The session, once over.
    pub session: Option<SessionFacts>,
    /// What the checkpoint found.
    pub change: Option<ChangeFacts>,
    /// Verifiers that ran in this iteration.
    pub checked: Vec<String>,
    /// Protected paths that were changed.
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

/// How far an iteration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The session runs.
    Working,
    /// The session is over.
    Worked,
    /// The tree is recorded.
    Checkpointed,
}

/// A finished session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionFacts {
    /// How it ended.
    pub end: SessionEnd,
    /// Whether it contained the promise.
    pub promised: bool,
    /// Its final message in one line.
    pub message: String,
    /// What it used.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
    /// Exit code.
    pub exit_code: Option<i32>,
    /// The agent's suggestion for the iteration's commit message.
    #[serde(default)]
    pub commit_message: Option<String>,
}

/// Findings of a session in another role, for the builder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleFindings {
    /// Its iteration.
    pub iteration: u32,
    /// Its role.
    pub role: Role,
    /// As text.
    pub text: String,
}

/// What an iteration changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeFacts {
    /// The tree.
    pub tree: TreeId,
    /// The commit, if anything changed.
    pub commit: Option<CommitId>,
    /// Changed files.
    pub files: usize,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// For the stuck rules.
    pub contents: Vec<(String, String)>,
    /// For the stuck rules: changed lines of each of `contents`.
    #[serde(default)]
    pub sizes: Vec<u64>,
}

/// Totals over the run's life; a resume never resets them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Money.
    #[serde(flatten, with = "short_cost")]
    pub cost: Cost,
    /// Tokens.
    pub tokens: TokenSum,
    /// Savings by caches.
    #[serde(default)]
    pub saved: Usd,
    /// Working time: sessions, checks, proofs.
    pub working_ms: u64,
    /// Time spent waiting for limits.
    pub waited_ms: u64,
    /// Sessions, including void ones.
    pub sessions: u32,
}

/// A finished iteration in short form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationSummary {
    /// Number.
    pub iteration: u32,
    /// The agent.
    pub agent: AgentName,
    /// The verdict.
    pub verdict: Verdict,
    /// How the session ended.
    pub end: SessionEnd,
    /// Its final message in one line.
    pub message: String,
    /// Changed files.
    pub files: usize,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// The known cost; read it with [`Self::cost`].
    #[serde(rename = "cost")]
    pub known_cost: Option<Usd>,
    /// How the cost is known.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub cost_basis: CostBasis,
    /// How long the session took.
    pub duration_ms: u64,
    /// The score.
    pub loop_score: f64,
    /// What didn't pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// Tests, summed over verifiers that report them.
    pub tests: Option<ralph_loop_protocol::proof::test_counts::TestCounts>,
    /// The work commit, if anything changed.
    pub commit: Option<CommitId>,
    /// When it ended.
    pub ended_at: Timestamp,
}

impl IterationSummary {
    /// What its session cost.
    pub fn cost(&self) -> Cost {
        self.known_cost.map_or(Cost::UNKNOWN, |sum| Cost::new(sum, self.cost_basis))
    }
}

/// A gutter that awaits its recovery step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gutter {
    /// The score.
    pub loop_score: f64,
    /// The evidence.
    pub evidence: Vec<String>,
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedsHuman {
    /// Why.
    pub reason: HumanReason,
    /// As text.
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

/// The final check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofFacts {
    /// The judged commit.
    pub commit: CommitId,
    /// Whether everything passed.
    pub passed: bool,
    /// Whether it ran in a clean checkout.
    pub clean: bool,
    /// What didn't pass.
    pub failed: Vec<String>,
    /// Digest of `proof.json`, once finished.
    pub proof: Option<Digest>,
    /// The strength of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ProofLevel>,
    /// Whether the checks were watched.
    #[serde(default, skip_serializing_if = "Watching::is_not_watched")]
    pub watched: Watching,
    /// Why the level isn't higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level_reason: Option<String>,
    /// What failed without the work and passes with it, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub difference: Vec<String>,
    /// Changes of the harness, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harness: Vec<String>,
    /// Checks that didn't pass in it.
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
        ProofLevel::headline(self.level.filter(|_| self.passed), by)
    }
}

/// Where the result is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Branch or ref.
    pub branch: String,
    /// Commit.
    pub commit: CommitId,
    /// Pull request.
    pub pr_url: Option<String>,
}

/// The end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Why.
    pub reason: EndReason,
    /// One sentence.
    pub summary: String,
    /// When.
    pub at: Timestamp,
}

/// A wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFacts {
    /// What it waits for.
    pub reason: String,
    /// When it ends.
    pub until: Option<Timestamp>,
    /// When it began.
    pub since: Timestamp,
}
