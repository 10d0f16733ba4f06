//! Everything known of a run, as plain data.

use super::{
    AgentTotals, Compute, Current, Findings, Finished, Gutter, HandoverFacts, IterationSummary, NeedsHuman,
    ProofFacts, Published, Telling, Totals, WaitFacts,
};
use crate::budget::BudgetKind;
use crate::control::Letter;
use crate::event::{Baseline, CheckResult, Rung};
use crate::id::{AgentName, CommitId, Digest, Seq, TreeId};
use crate::lease::Epoch;
use crate::select::Cooldown;
use crate::spec::RunSpec;
use crate::stuck::{StuckKind, Trace};
use jiff::Timestamp;
use ralph_protocol::proof::ScoreFacts;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

/// Everything known of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The frozen definition.
    pub spec: RunSpec,
    /// Digest of `spec.json` as it was last journalled.
    pub spec_digest: Option<Digest>,
    /// The task was edited, but the new spec is not written yet.
    pub edit_pending: bool,
    /// A person approved something that is not the baseline yet.
    pub approval_pending: bool,
    /// The last event folded in.
    pub seq: Seq,
    /// The latest time known: of the last event, or of a later tick.
    pub now: Timestamp,
    /// When the run began.
    pub started_at: Timestamp,
    /// The process that drives it, or drove it last.
    pub driver_pid: Option<u32>,
    /// How many drivers there were, counted up by each that starts.
    #[serde(default)]
    pub epoch: Epoch,
    /// Whether the place that the run works in is made. (Runs of older versions were journalled after that.)
    #[serde(default)]
    pub placed: bool,
    /// Workspace, branch and pushed branch as the spec itself names them, once they became others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_place: Option<(PathBuf, Option<String>, Option<String>)>,
    /// The state at the start, once prepared.
    pub baseline: Option<Baseline>,
    /// Marks of programs and settings of this machine that checks depend on, from the start.
    #[serde(default)]
    pub surroundings: BTreeMap<String, String>,
    /// Finished iterations.
    pub iterations: u32,
    /// Tries of the iteration that comes or runs now.
    pub attempts: u32,
    /// Tries of this iteration that were cut off by a dying engine or guard.
    pub interruptions: u32,
    /// Empty answers in a row.
    pub empty_answers: u32,
    /// Overloaded answers in a row.
    pub overloads: u32,
    /// The iteration under way.
    pub current: Option<Current>,
    /// The latest recorded tree.
    pub tree: Option<TreeId>,
    /// The latest work commit.
    pub work: Option<CommitId>,
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
    /// The branch that the user has moved meanwhile, so that it was left there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_kept: Option<String>,
    /// The latest result of each verifier.
    pub checks: BTreeMap<String, CheckResult>,
    /// Money, tokens and time.
    pub totals: Totals,
    /// The run's sandboxes, and what they cost.
    #[serde(default)]
    pub compute: Compute,
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
    /// Hints for the next prompt.
    pub nudges: Vec<String>,
    /// How many of them the session under way was given.
    pub nudges_read: usize,
    /// Finished iterations, the newest last.
    pub history: VecDeque<IterationSummary>,
    /// What the stuck rules see.
    pub traces: VecDeque<Trace>,
    /// Gutters in a row without progress between.
    pub gutters: u32,
    /// What the score did over the whole run.
    #[serde(default)]
    pub scores: ScoreFacts,
    /// The last rung tried in this gutter.
    pub rung: Option<Rung>,
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
    pub findings: Vec<Findings>,
    /// Failed sessions in a row, by agent.
    #[serde(default)]
    pub failing: BTreeMap<AgentName, u32>,
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
    /// Budgets that were warned of.
    pub warned: BTreeSet<BudgetKind>,
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
    /// The last session said that the task cannot be done.
    #[serde(default)]
    pub gave_up: bool,
    /// Something was noticed that needs a person, not yet asked.
    pub alarm: Option<NeedsHuman>,
    /// Promise and checks hold on this commit; the final check is due.
    pub candidate: bool,
    /// The final check of the last iteration.
    pub proof: Option<ProofFacts>,
    /// The tree on which a final check failed, and what failed: promising it again proves nothing.
    pub disproved: Option<(TreeId, Vec<String>)>,
    /// What is known of pushes, pull request, checks and reviews.
    #[serde(default)]
    pub handover: HandoverFacts,
    /// What only a person can mend, from the last final check, and how many in a row said so.
    #[serde(default)]
    pub setup_hint: Option<(String, u32)>,
    /// Where the result was handed over.
    pub published: Option<Published>,
    /// The end.
    pub finished: Option<Finished>,
    /// The wait under way.
    pub wait: Option<WaitFacts>,
    /// Bytes of the inbox that were read.
    pub inbox: u64,
    /// Ids of the latest controls, so that none is carried out twice.
    pub letters: VecDeque<Letter>,
    /// What people may want to be told of, and who was.
    #[serde(default)]
    pub telling: Telling,
}

impl RunFacts {
    /// The state before the first event.
    pub(super) fn new(spec: RunSpec) -> Self {
        let created = spec.created_at;
        Self {
            spec,
            spec_digest: None,
            edit_pending: false,
            approval_pending: false,
            seq: Seq(0),
            now: created,
            started_at: created,
            driver_pid: None,
            epoch: Epoch::default(),
            placed: false,
            spec_place: None,
            baseline: None,
            surroundings: BTreeMap::new(),
            iterations: 0,
            attempts: 0,
            interruptions: 0,
            empty_answers: 0,
            overloads: 0,
            current: None,
            tree: None,
            work: None,
            claims: BTreeSet::new(),
            claimed_in_words: BTreeSet::new(),
            unclaimed: BTreeSet::new(),
            met: BTreeSet::new(),
            touched: BTreeSet::new(),
            kept_back: Vec::new(),
            branch_kept: None,
            checks: BTreeMap::new(),
            totals: Totals::default(),
            compute: Compute::default(),
            by_agent: BTreeMap::new(),
            cooldowns: BTreeMap::new(),
            dropped: BTreeMap::new(),
            last_agent: None,
            skip: BTreeSet::new(),
            models: BTreeMap::new(),
            nudges: Vec::new(),
            nudges_read: 0,
            history: VecDeque::new(),
            traces: VecDeque::new(),
            gutters: 0,
            scores: ScoreFacts::default(),
            rung: None,
            climbed: BTreeSet::new(),
            rung_at: 0,
            noticed: BTreeSet::new(),
            benched: None,
            substitute: None,
            findings: Vec::new(),
            failing: BTreeMap::new(),
            doctor_asked: false,
            diagnosed_at: None,
            criticised_at: None,
            gutter: None,
            warned: BTreeSet::new(),
            paused_by: None,
            stop_by: None,
            cancel_by: None,
            suspended_by: None,
            needs_human: None,
            question: None,
            gave_up: false,
            alarm: None,
            candidate: false,
            proof: None,
            disproved: None,
            handover: HandoverFacts::default(),
            setup_hint: None,
            published: None,
            finished: None,
            wait: None,
            inbox: 0,
            letters: VecDeque::new(),
            telling: Telling::default(),
        }
    }
}
