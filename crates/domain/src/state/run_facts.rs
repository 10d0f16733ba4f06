//! All facts about a run, as plain data.

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    pub spec: RunSpec,
    /// Digest of `spec.json` as last journaled.
    pub spec_digest: Option<Digest>,
    pub seq: Seq,
    /// The latest known time: of the last event, or of a later tick.
    pub now: Timestamp,
    pub started_at: Timestamp,
    /// The driving process, or the last one.
    pub driver_pid: Option<u32>,
    #[serde(default)]
    pub epoch: Epoch,
    /// Whether the run's workspace exists. (Runs of older versions were journaled after that.)
    #[serde(default)]
    pub placed: bool,
    /// Workspace, branch and pushed branch in the spec, once they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_place: Option<(PathBuf, Option<String>, Option<String>)>,
    pub baseline: Option<Baseline>,
    /// Check results at the start, before the first session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_checks: Option<BaselineChecks>,
    /// The checks at the start lacked something of the environment: they run again before the first session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline_due: bool,
    /// The run continues on another machine: the checks run there on the original files before anything is proven.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub machine_changed: bool,
    /// Fingerprints of local programs and settings that checks depend on, from the start on this machine.
    #[serde(default)]
    pub surroundings: BTreeMap<String, String>,
    /// Iterations: finished ones, and the current one.
    #[serde(flatten)]
    pub iterations: IterationFacts,
    /// The work in the tree: recorded, claimed, met and checked.
    #[serde(flatten)]
    pub work: WorkFacts,
    /// The agents: usage, rests, dropped agents, chosen models.
    #[serde(flatten)]
    pub agents: AgentFacts,
    #[serde(flatten)]
    pub stuck: StuckFacts,
    #[serde(flatten)]
    pub people: PeopleFacts,
    /// Money, tokens, time and sandboxes, and which budget warnings were given.
    #[serde(flatten)]
    pub spending: SpendingFacts,
    /// The end of the run: the final check and its result.
    #[serde(flatten)]
    pub result: ResultFacts,
    /// The state of pushes, pull request, checks and reviews.
    #[serde(default)]
    pub handover: HandoverFacts,
    pub wait: Option<WaitFacts>,
    #[serde(default)]
    pub telling: NotificationFacts,
}

impl RunFacts {
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
            baseline_due: false,
            machine_changed: false,
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
