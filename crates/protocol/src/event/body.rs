//! What can happen to a run, kind by kind.

use super::parts::{self, CheckResult, FileChange, Notified, RefMove, Rung, Verdict};
use super::{
    ActionFinished, ActionStarted, ApprovalApplied, Ask, Baseline, BaselineChecks, ChecksSeen, Criticised,
    Diagnosed, EffectIntended, EgressRefused, Handed, HandoverFailed, Moved, OverlapFound, Placed, PrWritten,
    ProofApproved, Pushed, ReviewSeen, SandboxGone, SandboxReady, SessionEnd, SpecChanged, WentBack,
};
use crate::id::{AgentName, CommitId, Digest, TreeId};
use crate::{budget::BudgetKind, control::Letter, lease::DriverLease, money::Usage};
use crate::{level, outcome, protected::ProtectedChange, role::Role, signals, stuck};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventBody {
    /// The run exists; its spec is frozen.
    RunCreated {
        /// Digest of `spec.json`.
        spec: Digest,
        /// Short name of the task.
        title: String,
    },
    /// A process (again) drives the run.
    DriverStarted {
        /// Its process id.
        pid: u32,
        /// Bytes of a torn last line that were set aside.
        #[serde(default, skip_serializing_if = "parts::is_zero")]
        torn_bytes: u64,
        /// Where it stands, which one of the run it is, and what it was built from.
        #[serde(flatten)]
        lease: DriverLease,
    },
    /// The place that the run works in is made.
    Placed(Placed),
    /// The workspace is ready.
    Prepared {
        /// The state at the start.
        baseline: Baseline,
        /// Marks of programs and settings of this machine that checks depend on.
        #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
        surroundings: std::collections::BTreeMap<String, String>,
        /// How the checks ended before the first session, in a clean checkout of the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checks: Option<BaselineChecks>,
    },
    /// A fresh session starts.
    IterationStarted {
        /// Number, from 1.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        iteration: u32,
        /// Try, from 1.
        attempt: u32,
        /// Who works.
        agent: AgentName,
        /// With which model, where one was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Digest of the prompt.
        prompt: Digest,
        /// Agents that were passed over, with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<String>,
        /// In which role, where a pipeline of roles is set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
    },
    /// The session is over.
    SessionEnded {
        /// Its iteration.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        iteration: u32,
        /// How it ended.
        end: SessionEnd,
        /// Whether the final message held the promise.
        promised: bool,
        /// The final message in one line.
        message: String,
        /// Tokens and cost.
        usage: Usage,
        /// How long it took.
        duration_ms: u64,
        /// Exit code, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Digest of `response.json`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<Digest>,
        /// Processes left behind and ended.
        #[serde(default, skip_serializing_if = "parts::is_zero_u32")]
        survivors: u32,
        /// Tool uses that were denied.
        #[serde(default, skip_serializing_if = "parts::is_zero_u32")]
        denials: u32,
        /// Ids of criteria that the agent says are met, where it says so outside the task's file.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        claims: Vec<String>,
        /// What the agent asks for instead of going on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<Ask>,
        /// The message the agent would like for the iteration's commit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit_message: Option<String>,
        /// What a reviewer, tester or documenter found, for the builder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        findings: Option<String>,
    },
    /// A managed action of a session begins.
    ActionStarted(ActionStarted),
    /// It is over.
    ActionFinished(ActionFinished),
    /// The sandbox refused a host to a command.
    EgressRefused(EgressRefused),
    /// The run has a sandbox to work in.
    SandboxReady(SandboxReady),
    /// A sandbox of the run is no more, or rests.
    SandboxGone(SandboxGone),
    /// The tree is recorded.
    Checkpointed {
        /// Its iteration.
        iteration: u32,
        /// The tree.
        tree: TreeId,
        /// The work commit; absent where nothing changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
        /// Files changed, at most 200.
        files: Vec<FileChange>,
        /// How many changed in all.
        files_total: usize,
        /// Lines added, of all files.
        added: u64,
        /// Lines removed, of all files.
        removed: u64,
        /// Files that were dirty at the start and are now edited.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dirty_touched: Vec<String>,
        /// Files in submodules that the session has edited: they are not part of the result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        in_submodules: Vec<String>,
        /// Recorded again in the same iteration, with the engine's own marks or after a restart.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// The agent's files went into the user's own tree.
    HandedBack(Handed),
    /// One verifier has run.
    CheckFinished {
        /// Its iteration.
        iteration: u32,
        /// The result.
        result: CheckResult,
    },
    /// Protected paths differ from the start.
    ProtectedChanged {
        /// Its iteration.
        iteration: u32,
        /// What differs.
        changes: Vec<ProtectedChange>,
        /// How many more differ, where the list is cut.
        #[serde(default, skip_serializing_if = "parts::is_zero_usize")]
        left_out: usize,
    },
    /// What the agent says is done, in the task's own file. A claim is checked, never believed.
    Claimed {
        /// Its iteration.
        iteration: u32,
        /// Ids of all criteria that are claimed now.
        ids: Vec<String>,
        /// Ids of those that are not, stories that the agent added included.
        #[serde(default)]
        open: Vec<String>,
    },
    /// The engine marked criteria in the task file.
    Ticked {
        /// Its iteration.
        iteration: u32,
        /// Ids of all criteria that are met now.
        met: Vec<String>,
    },
    /// The iteration is judged and its receipt written.
    IterationEnded {
        /// Its number.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        iteration: u32,
        /// The judgement.
        verdict: Verdict,
        /// The stuck signals and their score.
        signals: signals::Signals,
        /// Signature of the failure that was seen, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Digest>,
        /// What does not pass: names of required checks, or what the final check of the same files did not accept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failing: Vec<String>,
        /// Digest of `receipt.json`.
        receipt: Digest,
        /// What the stuck rules read from the outputs, for the iterations to come.
        #[serde(default, skip_serializing_if = "stuck::Evidence::is_empty")]
        evidence: Box<stuck::Evidence>,
    },
    /// A session ended without counting as an iteration.
    IterationVoided {
        /// Its number, which will be used again.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        iteration: u32,
        /// Why it does not count.
        reason: String,
    },
    /// An agent rests.
    CooldownSet {
        /// Who.
        agent: AgentName,
        /// Until when.
        until: Timestamp,
        /// Why.
        reason: String,
    },
    /// An agent's rest ended early.
    CooldownCleared {
        /// Who.
        agent: AgentName,
    },
    /// An agent takes no further part in this run.
    AgentDropped {
        /// Who.
        agent: AgentName,
        /// Why (login, billing).
        reason: String,
    },
    /// A wait begins. Waiting is neither an iteration nor stagnation.
    WaitStarted {
        /// For what.
        reason: String,
        /// Until when, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A wait is over.
    WaitEnded {
        /// How long it took.
        waited_ms: u64,
    },
    /// A budget is nearly used; or the time is, and a check or a set-up command was ended for it.
    BudgetWarning {
        /// Which.
        budget: BudgetKind,
        /// In words with numbers.
        message: String,
        /// Working time of what was ended, which no other event tells of; 0 where nothing was.
        #[serde(default, skip_serializing_if = "parts::is_zero")]
        cut_ms: u64,
    },
    /// The run circles.
    Gutter {
        /// The iteration that showed it.
        iteration: u32,
        /// The score.
        loop_score: f64,
        /// The evidence, in words.
        evidence: Vec<String>,
    },
    /// A sign of being stuck, not yet enough for a gutter. The next session is told.
    Stuck {
        /// The iteration that showed it.
        iteration: u32,
        /// Which conditions, each told once until something gets better.
        kinds: Vec<signals::StuckKind>,
        /// The score.
        loop_score: f64,
        /// The evidence, in words.
        evidence: Vec<String>,
        /// What was done, what failed and which files cycle.
        #[serde(default, skip_serializing_if = "stuck::StuckDetails::is_empty")]
        context: stuck::StuckDetails,
    },
    /// A recovery step is tried.
    Mitigated {
        /// Which.
        rung: Rung,
        /// What that means here.
        detail: String,
        /// The agent that sits out until something gets better.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        benched: Option<AgentName>,
        /// The agent that works with another model until something gets better, and the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<[String; 2]>"))]
        substitute: Option<(AgentName, String)>,
    },
    /// The doctor has read the run; the report is in `diagnostics.md`.
    Diagnosed(Diagnosed),
    /// A critic looked at the last changes and failures; its objections go into the next prompt.
    Criticised(Criticised),
    /// Files were brought back to an earlier tree of the run.
    WentBack(WentBack),
    /// A person intervened.
    ControlReceived {
        /// What and who.
        #[serde(flatten)]
        letter: Letter,
        /// Bytes of the inbox read so far.
        inbox: u64,
    },
    /// A control could not be carried out.
    ControlRefused {
        /// Its id.
        id: String,
        /// Why.
        reason: String,
        /// Bytes of the inbox read so far.
        #[serde(default)]
        inbox: u64,
    },
    /// The task has a new version.
    SpecChanged(SpecChanged),
    /// What a person approved is the new baseline: refs as they are, the configuration as it is.
    ApprovalApplied(ApprovalApplied),
    /// Refs moved that this run did not move.
    RefsMoved {
        /// Which; where the list is cut, those that a person must look at first.
        moves: Vec<RefMove>,
        /// How many more moved, where the list is cut.
        #[serde(default, skip_serializing_if = "parts::is_zero_usize")]
        left_out: usize,
    },
    /// The frozen spec, the config or the journal was edited.
    Tampered {
        /// What was edited, and how it was noticed.
        what: String,
    },
    /// Something that was lost has been put back (an agent's `git clean`).
    Restored {
        /// What.
        what: String,
    },
    /// The run waits for a person and its process ends.
    NeedsHuman {
        /// Why.
        reason: outcome::HumanReason,
        /// In words, with what to do.
        message: String,
    },
    /// The final check starts.
    ProofStarted {
        /// The commit it judges.
        commit: CommitId,
        /// Whether it runs in a clean checkout.
        clean: bool,
    },
    /// The final check is over.
    ProofFinished {
        /// The commit.
        commit: CommitId,
        /// The tree.
        tree: TreeId,
        /// Whether everything held.
        passed: bool,
        /// Digest of `proof.json`.
        proof: Digest,
        /// What did not hold.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<String>,
        /// How long it took.
        #[serde(default)]
        duration_ms: u64,
        /// What only a person can fix, where that is why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// What the result is worth.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<level::ProofLevel>,
        /// Why the level isn't higher.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level_reason: Option<String>,
        /// What failed without the work and passes with it, one line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        difference: Vec<String>,
        /// Whether the checks were watched.
        #[serde(default)]
        watched: level::Watching,
        /// Changes of the harness, one line each; `proof.json` has all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        harness: Vec<String>,
        /// Checks that did not pass in it, with what they printed last.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<CheckResult>,
        /// The question that needs your approval, if only that prevents a pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Box<super::TestsQuestion>>,
    },
    /// You approve the result: the final check counts as passed.
    ProofApproved(ProofApproved),
    /// The evidence of a final check was lost or damaged: the check is made again.
    ProofVoided {
        /// What was found.
        reason: String,
    },
    /// The result is handed over.
    Published {
        /// The branch or ref that holds it.
        branch: String,
        /// The commit.
        commit: CommitId,
        /// The pull request, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pr_url: Option<String>,
    },
    /// Branch and state are on the remote.
    Pushed(Pushed),
    /// A pull request was opened or changed.
    PrWritten(PrWritten),
    /// The code host or the remote did not do what was asked.
    HandoverFailed(HandoverFailed),
    /// The checks of the pushed commit were looked at.
    ChecksSeen(ChecksSeen),
    /// The review of the pull request was looked at.
    ReviewSeen(ReviewSeen),
    /// Other open pull requests touch the same files.
    OverlapFound(OverlapFound),
    /// The run goes on elsewhere.
    Moved(Moved),
    /// Something is about to be done to the outside world, by the one driver that may (in a fleet).
    EffectIntended(EffectIntended),
    /// A signal ended the process. The run can be resumed.
    Suspended {
        /// Which one, in words.
        by: String,
    },
    /// The run is over.
    Finished {
        /// Why.
        reason: outcome::EndReason,
        /// In one sentence.
        summary: String,
    },
    /// Somebody was told, or could not be.
    Notified(Notified),
    /// Something a person may want to know.
    Notice {
        /// The sentence.
        message: String,
    },
    /// An event of a newer version.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
