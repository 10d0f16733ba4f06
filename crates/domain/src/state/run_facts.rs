//! Everything known of a run, as plain data.

use super::{
    AgentFacts, HandoverFacts, IterationFacts, NotificationFacts, PeopleFacts, ResultFacts, SpendingFacts,
    StuckFacts, WaitFacts, WorkFacts,
};
use jiff::Timestamp;
use ralph_loop_protocol::event::{Baseline, BaselineChecks};
use ralph_loop_protocol::id::{Digest, Seq};
use ralph_loop_protocol::lease::Epoch;
use ralph_loop_task::spec::RunSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything known of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The frozen definition.
    pub spec: RunSpec,
    /// Digest of `spec.json` as it was last journalled.
    pub spec_digest: Option<Digest>,
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
    /// How the checks ended at the start, before the first session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_checks: Option<BaselineChecks>,
    /// Marks of programs and settings of this machine that checks depend on, from the start.
    #[serde(default)]
    pub surroundings: BTreeMap<String, String>,
    /// Iterations: those that are over, and the one under way.
    #[serde(flatten)]
    pub iterations: IterationFacts,
    /// The work in the tree: what is recorded of it, claimed, met and checked.
    #[serde(flatten)]
    pub work: WorkFacts,
    /// The agents: what each used, who rests, who is out, who works with which model.
    #[serde(flatten)]
    pub agents: AgentFacts,
    /// Circling, and what is done about it.
    #[serde(flatten)]
    pub stuck: StuckFacts,
    /// What people said, and what is asked of them.
    #[serde(flatten)]
    pub people: PeopleFacts,
    /// Money, tokens, time and sandboxes, and which budgets were warned of.
    #[serde(flatten)]
    pub spending: SpendingFacts,
    /// The way to the end: the final check, and what came of it.
    #[serde(flatten)]
    pub result: ResultFacts,
    /// What is known of pushes, pull request, checks and reviews.
    #[serde(default)]
    pub handover: HandoverFacts,
    /// The wait under way.
    pub wait: Option<WaitFacts>,
    /// What people may want to be told of, and who was.
    #[serde(default)]
    pub telling: NotificationFacts,
}

impl RunFacts {
    /// The state before the first event.
    pub(super) fn new(spec: RunSpec) -> Self {
        let created = spec.created_at;
        Self {
            spec,
            spec_digest: None,
            seq: Seq(0),
            now: created,
            started_at: created,
            driver_pid: None,
            epoch: Epoch::default(),
            placed: false,
            spec_place: None,
            baseline: None,
            baseline_checks: None,
            surroundings: BTreeMap::new(),
            iterations: IterationFacts::default(),
            work: WorkFacts::default(),
            agents: AgentFacts::default(),
            stuck: StuckFacts::default(),
            people: PeopleFacts::default(),
            spending: SpendingFacts::default(),
            result: ResultFacts::default(),
            handover: HandoverFacts::default(),
            wait: None,
            telling: NotificationFacts::default(),
        }
    }
}
