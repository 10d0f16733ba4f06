//! The facts of a run, grouped by topic. In a run's files they are flat: group names aren't written.

use super::{
    AgentTotals, Compute, Current, Finished, Gutter, IterationSummary, NeedsHuman, ProofFacts, Published,
    RoleFindings, Totals,
};
use crate::model::select::Cooldown;
use crate::stuck::{StuckKind, Trace};
use ralph_loop_protocol::control::Letter;
use ralph_loop_protocol::event::{CheckResult, Rung};
use ralph_loop_protocol::id::{AgentName, CommitId, TreeId};
use ralph_loop_protocol::money::{Cost, TokenSum, short_cost};
use ralph_loop_protocol::proof::ScoreFacts;
use ralph_loop_task::budget::BudgetKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Iterations: finished ones, and the current one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct IterationFacts {
    #[serde(rename = "iterations")]
    pub count: u32,
    pub attempts: u32,
    /// Tries of this iteration that were interrupted because the engine or the guard died.
    pub interruptions: u32,
    /// Empty answers in a row.
    pub empty_answers: u32,
    /// Sessions in a row, over all iterations, without answer and change.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub empty_sessions: u32,
    /// Overloaded answers or unreachable hosts in a row.
    pub overloads: u32,
    pub current: Option<Current>,
    /// Finished iterations, the newest last.
    pub history: VecDeque<IterationSummary>,
}

/// The work in the tree: recorded, claimed, met and checked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkFacts {
    pub tree: Option<TreeId>,
    #[serde(rename = "work")]
    pub commit: Option<CommitId>,
    pub claims: BTreeSet<String>,
    /// Criteria that agents claimed in messages instead of the task file.
    #[serde(default)]
    pub claimed_in_words: BTreeSet<String>,
    /// Criteria in the task file without a claim, including stories that the agent added.
    pub unclaimed: BTreeSet<String>,
    /// Criteria that are met, according to the engine's checks.
    pub met: BTreeSet<String>,
    /// Files changed since the start (bounded).
    pub touched: BTreeSet<String>,
    /// Files that the user has changed as well, so that the agent's weren't handed back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_back: Vec<String>,
    /// Files in submodules that sessions have edited; they aren't part of the result. Bounded.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub in_submodules: BTreeSet<String>,
    /// The last record is of a session that the user canceled: it wasn't handed over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The branch that stayed, because the user has moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_kept: Option<String>,
    /// The files with the best number so far, if the run should improve one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestFiles>,
    pub checks: BTreeMap<String, CheckResult>,
}

/// The files with the best number so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BestFiles {
    pub iteration: u32,
    pub tree: TreeId,
    /// The number, in thousandths.
    pub value: i64,
    pub rises: bool,
    pub label: String,
    /// The spread of repeated measurements, in thousandths.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub noise: i64,
}

impl BestFiles {
    /// How much better a value is than this one, in thousandths; 0 if the difference is within the noise of either.
    pub fn gain(&self, value: i64, noise: i64) -> i64 {
        let gain = if self.rises { value - self.value } else { self.value - value };
        if gain.abs() <= noise.max(self.noise) { 0 } else { gain }
    }
}

/// The agents: usage, rests, dropped agents, chosen models.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentFacts {
    pub by_agent: BTreeMap<AgentName, AgentTotals>,
    pub cooldowns: BTreeMap<AgentName, Cooldown>,
    pub dropped: BTreeMap<AgentName, String>,
    pub last_agent: Option<AgentName>,
    pub skip: BTreeSet<AgentName>,
    /// Models chosen by the user; the empty name means every agent.
    pub models: BTreeMap<String, String>,
    /// Names in `models` whose choice applies to one iteration.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub models_once: BTreeSet<String>,
    /// The one that the current iteration uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_used: Option<String>,
    /// Rate limits in a row without an end, by agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limited: BTreeMap<AgentName, u32>,
    /// Failed sessions in a row, by agent.
    #[serde(default)]
    pub failing: BTreeMap<AgentName, u32>,
    /// Whether any session of the run got an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
    /// Agents whose last session of this driver couldn't reach its provider, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreached: BTreeMap<AgentName, String>,
}

/// Being stuck, and the recovery from it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StuckFacts {
    pub traces: VecDeque<Trace>,
    /// Gutters in a row without progress in between.
    pub gutters: u32,
    #[serde(default)]
    pub scores: ScoreFacts,
    /// The last rung tried in this gutter.
    pub rung: Option<Rung>,
    /// Iterations since the last other progress in which only a number printed by a check improved.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub number_credits: u32,
    /// What the checks lack, and how many iterations in a row haven't fixed it.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub environment: Option<(String, u32)>,
    #[serde(default)]
    pub climbed: BTreeSet<Rung>,
    /// Finished iterations when the last rung was tried.
    #[serde(default)]
    pub rung_at: u32,
    /// Conditions that were reported since the last progress.
    #[serde(default)]
    pub noticed: BTreeSet<StuckKind>,
    #[serde(default)]
    pub benched: Option<AgentName>,
    /// The agent that uses another model in this gutter, and the model.
    #[serde(default)]
    pub substitute: Option<(AgentName, String)>,
    /// Findings of sessions in other roles, for the builder.
    #[serde(default)]
    pub findings: Vec<RoleFindings>,
    /// The last session reported that the task is impossible.
    #[serde(default)]
    pub gave_up: bool,
    #[serde(default)]
    pub doctor_asked: bool,
    /// The number of iterations when the doctor last ran.
    #[serde(default)]
    pub diagnosed_at: Option<u32>,
    /// The number of iterations when a critic last ran in this gutter.
    #[serde(default)]
    pub criticised_at: Option<u32>,
    /// A gutter that awaits its recovery step.
    pub gutter: Option<Gutter>,
}

/// User input, and questions to the user.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PeopleFacts {
    /// The task was edited, but the new spec is not written yet.
    pub edit_pending: bool,
    /// The user approved something that isn't the baseline yet.
    pub approval_pending: bool,
    /// Who accepted changed tests, before the proof says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_approved_by: Option<String>,
    /// The user gave a hint for the next session instead of accepting the changed tests; `resume` continues with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tests_rejected: bool,
    pub nudges: Vec<String>,
    /// How many of them the active session got.
    pub nudges_read: usize,
    pub paused_by: Option<String>,
    /// The user wants it to end after the session.
    pub stop_by: Option<String>,
    /// The user wants it to end now.
    pub cancel_by: Option<String>,
    /// Who ended the last process without ending the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_by: Option<String>,
    pub needs_human: Option<NeedsHuman>,
    /// An agent's question to the user, shown after the verdict.
    #[serde(default)]
    pub question: Option<NeedsHuman>,
    /// Checks to repeat before the next session, because the user fixed what they need.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub recheck: BTreeSet<String>,
    /// An unasked question about something noticed.
    pub alarm: Option<NeedsHuman>,
    /// Bytes of the inbox that were read.
    pub inbox: u64,
    /// Ids of the latest controls, so that none is applied twice.
    pub letters: VecDeque<Letter>,
}

/// Usage by the doctor and critics; part of the totals.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct HelperTotals {
    pub calls: u32,
    #[serde(flatten, with = "short_cost")]
    pub cost: Cost,
    pub tokens: TokenSum,
}

/// Money, tokens, time and sandboxes, and which budget warnings were given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SpendingFacts {
    pub totals: Totals,
    /// Usage by the doctor and critics, included above.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub helpers: HelperTotals,
    #[serde(default)]
    pub compute: Compute,
    pub warned: BTreeSet<BudgetKind>,
    /// Whether a check or setup command was ended because the time is used up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
}

/// The end of the run: the final check and its result.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ResultFacts {
    /// Promise and checks hold on this commit; the final check is due.
    pub candidate: bool,
    /// The task was edited during the final check, whose result is about the old task.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub outdated: bool,
    /// The final check of the last iteration.
    pub proof: Option<ProofFacts>,
    /// The tree on which a final check failed, and what failed: promising it again proves nothing.
    pub disproved: Option<(TreeId, Vec<String>)>,
    /// The checks that didn't pass in that final check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<CheckResult>,
    /// What only the user can fix, from the last final check, and how often in a row.
    #[serde(default)]
    pub setup_hint: Option<(String, u32)>,
    pub published: Option<Published>,
    pub finished: Option<Finished>,
}
