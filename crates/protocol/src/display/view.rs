//! The state of a run for display: everything that a screen, a page or a program shows of it, computed once.
//!
//! It is built from the run's state and a few current facts (its driver, the time). Surfaces add ages and colors,
//! never facts.

use crate::event::{CheckResult, SessionEnd, Verdict};
use crate::id::{AgentName, CommitId, RunId, Seq};
use crate::money::budget::BudgetKind;
use crate::money::{Cost, TokenSum, Usd};
use crate::outcome::{EndReason, HumanReason};
use crate::proof::level::{ProofLevel, Watching};
use crate::proof::test_counts::TestCounts;
use crate::role::Role;
use crate::status::Status;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The current state of a run, for display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunView {
    /// The run.
    pub run_id: RunId,
    /// The task's title.
    pub title: String,
    /// The status.
    pub status: Status,
    /// What it is doing, in one sentence.
    pub now: String,
    /// What you can do next, as a command; absent if nothing needs doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether a process drives it.
    pub driven: bool,
    /// Whether it is unfinished, without a driver and without a pending question.
    pub orphaned: bool,
    /// The last event included.
    pub seq: Seq,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When something last happened.
    pub last_event_at: Timestamp,
    /// Wall time since the start, including waits.
    pub elapsed_seconds: f64,
    /// Time spent at work: sessions, checks, final checks.
    pub working_seconds: f64,
    /// The active session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentView>,
    /// The current wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitView>,
    /// The question for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<NeedsView>,
    /// The criteria of the task, in order.
    pub criteria: Vec<CriterionView>,
    /// The checks, in the order of the configuration.
    pub checks: Vec<CheckView>,
    /// The setup that failed before the first session, until a final check has passed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_failed: Option<SetupView>,
    /// The budgets.
    pub budgets: Vec<BudgetView>,
    /// When the run must end, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Money, tokens, sandboxes.
    pub spent: SpentView,
    /// The agents.
    pub agents: Vec<AgentView>,
    /// The number of finished iterations; `history` has the latest.
    pub iterations: u32,
    /// The latest finished iterations, the newest last.
    pub history: Vec<IterationView>,
    /// The score of the last iteration.
    pub loop_score: f64,
    /// The best number so far, if the run should improve one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestNumber>,
    /// The branch with the work, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The ref with the work: its branch's, or one of the engine's.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub work_ref: Option<String>,
    /// The pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<PrView>,
    /// The final check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofView>,
    /// The end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<FinishedView>,
    /// The folder of the run's files, as the user knows it.
    pub workspace: PathBuf,
    /// The user's folder that it was started from.
    pub origin: PathBuf,
}

/// The best number so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BestNumber {
    /// The check that measures it.
    pub name: String,
    /// The number; the median of several measurements.
    pub value: f64,
    /// The spread of the measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// The requested target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Whether higher is better.
    pub rises: bool,
    /// The iteration that reached it; 0 is the start.
    pub iteration: u32,
}

impl BestNumber {
    /// As text: `bench 61 ±0.8, target at most 50 (iteration 3)`.
    pub fn words(&self) -> String {
        let noise = self.noise.map_or_else(String::new, |noise| format!(" ±{noise}"));
        let word = if self.rises { "at least" } else { "at most" };
        let target = self.target.map_or_else(String::new, |target| format!(", target {word} {target}"));
        let when = match self.iteration {
            0 => "at the start".to_owned(),
            iteration => format!("iteration {iteration}"),
        };
        format!("{} {}{noise}{target} ({when})", self.name, self.value)
    }
}

/// The active session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurrentView {
    /// Number of the iteration.
    pub iteration: u32,
    /// Its try.
    pub attempt: u32,
    /// The agent.
    pub agent: AgentName,
    /// The model, if chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// When it began.
    pub started_at: Timestamp,
}

/// A wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitView {
    /// What it waits for.
    pub reason: String,
    /// When it began.
    pub since: Timestamp,
    /// When it ends, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Who paused it, if anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
}

/// The question for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeedsView {
    /// Why.
    pub reason: HumanReason,
    /// As text.
    pub message: String,
    /// The commands that answer it.
    pub next: String,
    /// What you need to know for the answer, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// A criterion of the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CriterionView {
    /// Unique in its task.
    pub id: String,
    /// What must be true, in the task's words.
    pub text: String,
    /// The milestone it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone: Option<String>,
    /// How it is checked.
    pub check: String,
    /// Whether an agent claims that it is met.
    pub claimed: bool,
    /// Whether the engine's checks confirm it.
    pub met: bool,
    /// The last result of its check, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<CheckResult>,
}

/// A check and its last result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckView {
    /// Its name: the id of a criterion, or the name of a verifier.
    pub name: String,
    /// The command, in one line.
    pub command: String,
    /// Whether it must pass.
    pub required: bool,
    /// Its last result; absent before its first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<CheckResult>,
    /// Whether that result is for the latest recorded tree.
    pub current_tree: bool,
    /// What the final check said about that tree, if it rejected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<CheckRefusal>,
}

/// Why a check that may have passed in the workspace doesn't count: the final check rejected the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckRefusal {
    /// Its result in the final check, if it failed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CheckResult>,
    /// Why the final check rejected the tree, if this check wasn't the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// A setup that failed in a clean checkout of the original files, so no check ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupView {
    /// The command.
    pub command: String,
    /// Its last output lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// Its log, relative to the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// How much of a budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetView {
    /// The kind of budget.
    pub budget: BudgetKind,
    /// Used: iterations, seconds, USD or tokens; `null` if unknown.
    pub used: Option<f64>,
    /// The limit in the same unit.
    pub limit: f64,
    /// The used share; 1 is all of it.
    pub share: f64,
}

/// What a run has used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpentView {
    /// Money.
    #[serde(flatten)]
    pub cost: Cost,
    /// Savings by caches.
    pub saved_usd: Usd,
    /// An estimate of the sandboxes' cost; not part of `cost_usd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_usd: Option<Usd>,
    /// Tokens.
    pub tokens: TokenSum,
    /// Sessions, including voided ones.
    pub sessions: u32,
    /// Known existing sandboxes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandboxes: Vec<SandboxView>,
}

/// A sandbox of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxView {
    /// The provider.
    pub provider: String,
    /// The provider's id.
    pub id: String,
    /// Whether it is stopped.
    pub rests: bool,
}

/// An agent of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentView {
    /// The name.
    pub name: AgentName,
    /// The requested model, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its state.
    pub standing: AgentStanding,
    /// When its rest ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why it rests or was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its sessions.
    pub sessions: u32,
    /// Their cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// Their tokens.
    pub tokens: TokenSum,
}

/// An agent's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum AgentStanding {
    /// Available.
    Free,
    /// Working.
    Working,
    /// Resting.
    Resting,
    /// Dropped from this run.
    Dropped,
}

/// A finished iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationView {
    /// Its number.
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
    /// Money.
    #[serde(flatten)]
    pub cost: Cost,
    /// How long the session took.
    pub duration_ms: u64,
    /// The score.
    pub loop_score: f64,
    /// Tests, summed over the checks that report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// The work commit, if anything changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// The pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrView {
    /// Its number; absent if only its URL is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its web page.
    pub url: String,
    /// Whether it is a draft.
    pub draft: bool,
}

/// The final check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofView {
    /// The judged commit.
    pub commit: CommitId,
    /// Whether it is finished.
    pub over: bool,
    /// Whether everything passed.
    pub passed: bool,
    /// Whether it runs in a clean checkout.
    pub clean: bool,
    /// What didn't pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// The headline, the same on every surface.
    pub headline: String,
    /// The strength of the result, if it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ProofLevel>,
    /// Whether the checks were watched.
    #[serde(default)]
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
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FinishedView {
    /// Why.
    pub reason: EndReason,
    /// One sentence.
    pub summary: String,
    /// When.
    pub at: Timestamp,
}
