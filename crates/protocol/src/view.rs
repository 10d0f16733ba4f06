//! A run as it stands: everything that a screen, a page or a program shows of it, computed once.
//!
//! It is made from the run's state and a few facts of the moment (who drives it, the time). Whoever presents it adds ages and
//! colours, never a fact.

use crate::budget::BudgetKind;
use crate::event::{CheckResult, SessionEnd, Verdict};
use crate::id::{AgentName, CommitId, RunId, Seq};
use crate::level::{ProofLevel, Watching};
use crate::money::{Cost, TokenSum, Usd};
use crate::outcome::{EndReason, HumanReason};
use crate::role::Role;
use crate::status::Status;
use crate::test_counts::TestCounts;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A run as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunView {
    /// The run.
    pub run_id: RunId,
    /// The task in a few words.
    pub title: String,
    /// Where it stands.
    pub status: Status,
    /// What it does at this moment, in one sentence.
    pub now: String,
    /// What a person can do next, as a command; absent where nothing is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether a process drives it.
    pub driven: bool,
    /// Unfinished, and neither a process nor a person's answer is at work on it.
    pub orphaned: bool,
    /// The last event that is in it.
    pub seq: Seq,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When something last happened.
    pub last_event_at: Timestamp,
    /// Wall time since the start, waits included.
    pub elapsed_seconds: f64,
    /// Time spent at work: sessions, checks, final checks.
    pub working_seconds: f64,
    /// The session under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentView>,
    /// The wait under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitView>,
    /// The question for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<NeedsView>,
    /// The criteria of the task, in its order.
    pub criteria: Vec<CriterionView>,
    /// The checks, in the order of the configuration.
    pub checks: Vec<CheckView>,
    /// The setup that failed before the first session, where no final check has got past it since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_failed: Option<SetupView>,
    /// The budgets.
    pub budgets: Vec<BudgetView>,
    /// The run ends at this instant, where one is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Money, tokens, sandboxes.
    pub spent: SpentView,
    /// Who may work.
    pub agents: Vec<AgentView>,
    /// Finished iterations, of which the latest are in `history`.
    pub iterations: u32,
    /// The latest finished iterations, the newest last.
    pub history: Vec<IterationView>,
    /// The score of the last iteration.
    pub loop_score: f64,
    /// The best number so far, where the run is to improve one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestNumber>,
    /// The branch that holds the work, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The ref that holds the work: of its branch, or one of the engine's own.
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
    /// The folder of the run's files, as its user knows it.
    pub workspace: PathBuf,
    /// The user's folder that it was started from.
    pub origin: PathBuf,
}

/// The best number so far of a run that is to improve one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BestNumber {
    /// The check that measures it.
    pub name: String,
    /// The number; the median where it was measured several times.
    pub value: f64,
    /// How far the measurements lie apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// The request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Whether more of it is better.
    pub rises: bool,
    /// The iteration that reached it; 0 is the start.
    pub iteration: u32,
}

impl BestNumber {
    /// In words: `bench 61 ±0.8, target at most 50 (iteration 3)`.
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

/// The session under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurrentView {
    /// Number of the iteration.
    pub iteration: u32,
    /// Its try.
    pub attempt: u32,
    /// Who works.
    pub agent: AgentName,
    /// With which model, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// In which role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// When it began.
    pub started_at: Timestamp,
}

/// A wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitView {
    /// For what.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when, where that is known.
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
    /// How it is answered, as commands.
    pub next: String,
    /// What there is to know for the answer, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// A criterion of the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CriterionView {
    /// Unique in its task.
    pub id: String,
    /// What must be true, in the words of the task.
    pub text: String,
    /// The milestone it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone: Option<String>,
    /// How it is checked.
    pub check: String,
    /// Whether an agent says that it is met.
    pub claimed: bool,
    /// Whether the engine's own checks say so.
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
    /// What is run, in one line.
    pub command: String,
    /// Whether it must pass.
    pub required: bool,
    /// Its last result; absent before its first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<CheckResult>,
    /// Whether that result is of the tree as it was recorded last.
    pub current_tree: bool,
    /// What the final check said of that tree, where it did not accept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<CheckRefusal>,
}

/// Why a check that may have passed in the workspace does not count: the final check did not accept the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckRefusal {
    /// Its result in the final check, where it did not pass there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CheckResult>,
    /// Why the final check did not accept the tree, where that was not this check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// A setup that failed in a clean checkout of the original files, so no check ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupView {
    /// The command.
    pub command: String,
    /// The last lines that it printed.
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
    /// Which.
    pub budget: BudgetKind,
    /// Used: iterations, seconds, USD or tokens; `null` if nothing is known of it.
    pub used: Option<f64>,
    /// The limit in the same unit.
    pub limit: f64,
    /// The share that is used, 1 being all of it.
    pub share: f64,
}

/// What a run has used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpentView {
    /// Money.
    #[serde(flatten)]
    pub cost: Cost,
    /// What reading from caches saved.
    pub saved_usd: Usd,
    /// An estimate of what the run's sandboxes cost; not part of `cost_usd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_usd: Option<Usd>,
    /// Tokens.
    pub tokens: TokenSum,
    /// Sessions, those that do not count included.
    pub sessions: u32,
    /// Sandboxes that exist, as far as is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandboxes: Vec<SandboxView>,
}

/// A sandbox of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxView {
    /// Who made it.
    pub provider: String,
    /// The provider's id.
    pub id: String,
    /// Whether it rests.
    pub rests: bool,
}

/// Who may work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentView {
    /// The name.
    pub name: AgentName,
    /// The requested model, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it stands.
    pub standing: AgentStanding,
    /// When its rest ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why it rests or takes no further part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its sessions.
    pub sessions: u32,
    /// What they cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// Their tokens.
    pub tokens: TokenSum,
}

/// How an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum AgentStanding {
    /// It may work.
    Free,
    /// It works.
    Working,
    /// It rests.
    Resting,
    /// It takes no further part in this run.
    Dropped,
}

/// A finished iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationView {
    /// Number.
    pub iteration: u32,
    /// Who worked.
    pub agent: AgentName,
    /// The judgement.
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
    /// Work commit, where something changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// The pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrView {
    /// Its number; absent where only its address is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Where people read it.
    pub url: String,
    /// Not yet for review.
    pub draft: bool,
}

/// The final check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofView {
    /// The commit it judges.
    pub commit: CommitId,
    /// Whether it is over.
    pub over: bool,
    /// Whether everything held.
    pub passed: bool,
    /// Whether it runs in a clean checkout.
    pub clean: bool,
    /// What did not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// The result in the words of every surface.
    pub headline: String,
    /// What the result is worth, once it has passed.
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
    /// In one sentence.
    pub summary: String,
    /// When.
    pub at: Timestamp,
}
