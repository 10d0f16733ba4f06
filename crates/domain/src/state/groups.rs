//! What is known of a run, by what it is about. In the files of a run these facts stand side by side: the names of the
//! groups are not written.

use super::{
    AgentTotals, Compute, Current, Finished, Gutter, IterationSummary, NeedsHuman, ProofFacts, Published,
    RoleFindings, Totals,
};
use crate::select::Cooldown;
use crate::stuck::{StuckKind, Trace};
use ralph_loop_protocol::control::Letter;
use ralph_loop_protocol::event::{CheckResult, Rung};
use ralph_loop_protocol::id::{AgentName, CommitId, TreeId};
use ralph_loop_protocol::money::{Cost, TokenSum, short_cost};
use ralph_loop_protocol::proof::ScoreFacts;
use ralph_loop_task::budget::BudgetKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Iterations: those that are over, and the one under way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct IterationFacts {
    /// Finished iterations.
    #[serde(rename = "iterations")]
    pub count: u32,
    /// Tries of the iteration that comes or runs now.
    pub attempts: u32,
    /// Tries of this iteration that were cut off by a dying engine or guard.
    pub interruptions: u32,
    /// Empty answers in a row.
    pub empty_answers: u32,
    /// Sessions in a row, over all iterations, that answered nothing and changed nothing.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub empty_sessions: u32,
    /// Overloaded answers in a row, and hosts that could not be reached.
    pub overloads: u32,
    /// The iteration under way.
    pub current: Option<Current>,
    /// Finished iterations, the newest last.
    pub history: VecDeque<IterationSummary>,
}

/// The work in the tree: what is recorded of it, claimed, met and checked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkFacts {
    /// The latest recorded tree.
    pub tree: Option<TreeId>,
    /// The latest work commit.
    #[serde(rename = "work")]
    pub commit: Option<CommitId>,
    /// Criteria that the agent says are done.
    pub claims: BTreeSet<String>,
    /// Criteria that agents claimed in words, not in the task file.
    #[serde(default)]
    pub claimed_in_words: BTreeSet<String>,
    /// Criteria in the task file that nobody claims, stories that the agent added included.
    pub unclaimed: BTreeSet<String>,
    /// Criteria that are met, by the engine's own checks.
    pub met: BTreeSet<String>,
    /// Files changed since the start (bounded).
    pub touched: BTreeSet<String>,
    /// Files that the user has changed, too, so that the agent's were not handed back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_back: Vec<String>,
    /// Files in submodules that sessions have edited: they are not part of the result. A few of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub in_submodules: BTreeSet<String>,
    /// The last record is of a session that a person's cancel had cut: it was not handed over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The branch that the user has moved meanwhile, so that it was left there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_kept: Option<String>,
    /// The files with the best number so far, where the run is to improve one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestFiles>,
    /// The latest result of each verifier.
    pub checks: BTreeMap<String, CheckResult>,
}

/// The files with the best number so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BestFiles {
    /// The iteration that made them.
    pub iteration: u32,
    /// The tree.
    pub tree: TreeId,
    /// The number, in thousandths.
    pub value: i64,
    /// Whether more of it is better.
    pub rises: bool,
    /// Its name.
    pub label: String,
    /// How far repeated measurements of it lie apart, in thousandths.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub noise: i64,
}

impl BestFiles {
    /// How much better than this one a value is, in thousandths; nothing where the difference is within the noise of either.
    pub fn gain(&self, value: i64, noise: i64) -> i64 {
        let gain = if self.rises { value - self.value } else { self.value - value };
        if gain.abs() <= noise.max(self.noise) { 0 } else { gain }
    }
}

/// The agents: what each used, who rests, who is out, who works with which model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentFacts {
    /// The same by agent.
    pub by_agent: BTreeMap<AgentName, AgentTotals>,
    /// Agents that rest.
    pub cooldowns: BTreeMap<AgentName, Cooldown>,
    /// Agents that take no further part, with the reason.
    pub dropped: BTreeMap<AgentName, String>,
    /// Who worked last.
    pub last_agent: Option<AgentName>,
    /// Left out of the next turn.
    pub skip: BTreeSet<AgentName>,
    /// Models chosen by a person; the empty name stands for every agent.
    pub models: BTreeMap<String, String>,
    /// Names among `models` whose choice holds for one iteration.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub models_once: BTreeSet<String>,
    /// The one of them that the iteration under way uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_used: Option<String>,
    /// Rate limits in a row that named no end, by agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limited: BTreeMap<AgentName, u32>,
    /// Failed sessions in a row, by agent.
    #[serde(default)]
    pub failing: BTreeMap<AgentName, u32>,
}

/// Circling, and what is done about it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StuckFacts {
    /// What the stuck rules see.
    pub traces: VecDeque<Trace>,
    /// Gutters in a row without progress between.
    pub gutters: u32,
    /// What the score did over the whole run.
    #[serde(default)]
    pub scores: ScoreFacts,
    /// The last rung tried in this gutter.
    pub rung: Option<Rung>,
    /// Iterations, since anything else got better, whose only progress was a number that a check prints.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub number_credits: u32,
    /// What is missing around the checks, and how many iterations in a row have left it so.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub environment: Option<(String, u32)>,
    /// Every rung tried in this gutter.
    #[serde(default)]
    pub climbed: BTreeSet<Rung>,
    /// Finished iterations when the last rung was tried.
    #[serde(default)]
    pub rung_at: u32,
    /// Conditions that were told since something last got better.
    #[serde(default)]
    pub noticed: BTreeSet<StuckKind>,
    /// The agent that sits out this gutter.
    #[serde(default)]
    pub benched: Option<AgentName>,
    /// The agent that works with another model in this gutter, and the model.
    #[serde(default)]
    pub substitute: Option<(AgentName, String)>,
    /// What sessions in other roles left for the builder.
    #[serde(default)]
    pub findings: Vec<RoleFindings>,
    /// The last session said that the task cannot be done.
    #[serde(default)]
    pub gave_up: bool,
    /// A person asked for the doctor.
    #[serde(default)]
    pub doctor_asked: bool,
    /// Finished iterations when the doctor last read the run.
    #[serde(default)]
    pub diagnosed_at: Option<u32>,
    /// Finished iterations when a critic last spoke in this gutter.
    #[serde(default)]
    pub criticised_at: Option<u32>,
    /// A gutter was noticed and awaits its mitigation.
    pub gutter: Option<Gutter>,
}

/// What people said, and what is asked of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PeopleFacts {
    /// The task was edited, but the new spec is not written yet.
    pub edit_pending: bool,
    /// A person approved something that is not the baseline yet.
    pub approval_pending: bool,
    /// Who accepted tests that the run changed, before the proof says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_approved_by: Option<String>,
    /// A person had a word for the next session instead of accepting the changed tests; `resume` goes on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tests_rejected: bool,
    /// Hints for the next prompt.
    pub nudges: Vec<String>,
    /// How many of them the session under way was given.
    pub nudges_read: usize,
    /// A person paused the run.
    pub paused_by: Option<String>,
    /// A person wants it to end after the session.
    pub stop_by: Option<String>,
    /// It is to end now.
    pub cancel_by: Option<String>,
    /// Who ended the last process without ending the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_by: Option<String>,
    /// A person is needed.
    pub needs_human: Option<NeedsHuman>,
    /// An agent asks for a person; it is passed on once the iteration is judged.
    #[serde(default)]
    pub question: Option<NeedsHuman>,
    /// Checks that are run again before the next session, because a person mended what they need.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub recheck: BTreeSet<String>,
    /// Something was noticed that needs a person, not yet asked.
    pub alarm: Option<NeedsHuman>,
    /// Bytes of the inbox that were read.
    pub inbox: u64,
    /// Ids of the latest controls, so that none is carried out twice.
    pub letters: VecDeque<Letter>,
}

/// What the doctor and critics used; it is part of the totals.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct HelperTotals {
    /// How often one was asked.
    pub calls: u32,
    /// Money.
    #[serde(flatten, with = "short_cost")]
    pub cost: Cost,
    /// Tokens.
    pub tokens: TokenSum,
}

/// Money, tokens, time and sandboxes, and which budgets were warned of.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SpendingFacts {
    /// Money, tokens and time.
    pub totals: Totals,
    /// What the doctor and critics used of it.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub helpers: HelperTotals,
    /// The run's sandboxes, and what they cost.
    #[serde(default)]
    pub compute: Compute,
    /// Budgets that were warned of.
    pub warned: BTreeSet<BudgetKind>,
    /// Whether a check or a set-up command was ended because the time is used up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
}

/// The way to the end: the final check, and what came of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ResultFacts {
    /// Promise and checks hold on this commit; the final check is due.
    pub candidate: bool,
    /// The task was edited while the final check ran: what it finds is about the task as it was.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub outdated: bool,
    /// The final check of the last iteration.
    pub proof: Option<ProofFacts>,
    /// The tree on which a final check failed, and what failed: promising it again proves nothing.
    pub disproved: Option<(TreeId, Vec<String>)>,
    /// The checks that did not pass in that final check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<CheckResult>,
    /// What only a person can fix, from the last final check, and how many in a row said so.
    #[serde(default)]
    pub setup_hint: Option<(String, u32)>,
    /// Where the result was handed over.
    pub published: Option<Published>,
    /// The end.
    pub finished: Option<Finished>,
}
