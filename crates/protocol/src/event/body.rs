//! What can happen to a run, by kind.

use super::parts::{self, CheckResult, CommitPart, FileChange, Notified, RefMove, Rung, Verdict};
use super::{
    ActionFinished, ActionStarted, ApprovalApplied, Ask, Baseline, BaselineChecks, ChecksSeen, Criticised,
    Diagnosed, EffectIntended, EgressRefused, Handed, HandoverFailed, Moved, OverlapFound, Placed, PrWritten,
    PromiseAsked, ProofApproved, Pushed, ReviewSeen, SandboxGone, SandboxReady, SessionEnd, SpecChanged,
    WentBack,
};
use crate::control::Letter;
use crate::id::{AgentName, CommitId, Digest, TreeId};
use crate::lease::DriverLease;
use crate::money::Usage;
use crate::money::budget::BudgetKind;
use crate::proof::level;
use crate::proof::protected::ProtectedChange;
use crate::role::Role;
use crate::stuck::signals;
use crate::{outcome, stuck};
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
        /// The task's title.
        title: String,
    },
    /// A process (again) drives the run.
    DriverStarted {
        /// Its process id.
        pid: u32,
        /// Bytes of a torn last line that were set aside.
        #[serde(default, skip_serializing_if = "parts::is_zero")]
        torn_bytes: u64,
        /// Its machine, epoch and version.
        #[serde(flatten)]
        lease: DriverLease,
    },
    /// The run's workspace was created.
    Placed(Placed),
    /// The workspace is ready.
    Prepared {
        /// The state at the start.
        baseline: Baseline,
        /// Fingerprints of local programs and settings that checks depend on.
        #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
        surroundings: std::collections::BTreeMap<String, String>,
        /// Check results before the first session, in a clean checkout of the original files.
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
        /// The agent.
        agent: AgentName,
        /// The model, if chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Digest of the prompt.
        prompt: Digest,
        /// Agents that were skipped, with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<String>,
        /// The role, in a pipeline of roles.
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
        /// Whether the final message contained the promise.
        promised: bool,
        /// The final message in one line.
        message: String,
        /// Tokens and cost.
        usage: Usage,
        /// How long it took.
        duration_ms: u64,
        /// The exit code, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Digest of `response.json`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<Digest>,
        /// Leftover processes that were ended.
        #[serde(default, skip_serializing_if = "parts::is_zero_u32")]
        survivors: u32,
        /// Tool uses that were denied.
        #[serde(default, skip_serializing_if = "parts::is_zero_u32")]
        denials: u32,
        /// Ids of criteria that the agent claims outside the task's file.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        claims: Vec<String>,
        /// What the agent requests instead of continuing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<Ask>,
        /// The agent's suggestion for the iteration's commit message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit_message: Option<String>,
        /// Commits of some of its files that it wants before that one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commit_parts: Vec<CommitPart>,
        /// Findings of a reviewer, tester or documenter, for the builder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        findings: Option<String>,
    },
    /// A managed action of a session begins.
    ActionStarted(ActionStarted),
    /// A managed action has ended.
    ActionFinished(ActionFinished),
    /// The sandbox refused a command access to a host.
    EgressRefused(EgressRefused),
    /// The run has a sandbox to work in.
    SandboxReady(SandboxReady),
    /// A sandbox of the run is gone or stopped.
    SandboxGone(SandboxGone),
    /// The tree is recorded.
    Checkpointed {
        /// Its iteration.
        iteration: u32,
        /// The tree.
        tree: TreeId,
        /// The work commit; absent without changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<CommitId>,
        /// Files changed, at most 200.
        files: Vec<FileChange>,
        /// The total number of changed files.
        files_total: usize,
        /// Lines added in all files.
        added: u64,
        /// Lines removed in all files.
        removed: u64,
        /// Files that were dirty at the start and are now edited.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dirty_touched: Vec<String>,
        /// Files in submodules that the session edited; they aren't part of the result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        in_submodules: Vec<String>,
        /// Recorded again in the same iteration, with the engine's marks or after a restart.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// The agent's files were copied into the user's tree.
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
        /// How many more differ, if the list is cut.
        #[serde(default, skip_serializing_if = "parts::is_zero_usize")]
        left_out: usize,
    },
    /// What the agent claims as done in the task's file. Claims are always checked.
    Claimed {
        /// Its iteration.
        iteration: u32,
        /// Ids of all current claims.
        ids: Vec<String>,
        /// Ids of the others, including stories that the agent added.
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
        /// The verdict.
        verdict: Verdict,
        /// The stuck signals and their score.
        signals: signals::Signals,
        /// Signature of the failure, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Digest>,
        /// What doesn't pass: names of required checks, or what the final check of the same files rejected.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failing: Vec<String>,
        /// Digest of `receipt.json`.
        receipt: Digest,
        /// What the stuck rules read from the output, for later iterations.
        #[serde(default, skip_serializing_if = "stuck::Evidence::is_empty")]
        evidence: Box<stuck::Evidence>,
    },
    /// A session ended without counting as an iteration.
    IterationVoided {
        /// Its number, which will be reused.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        iteration: u32,
        /// Why it doesn't count.
        reason: String,
    },
    /// An agent rests.
    CooldownSet {
        /// The agent.
        agent: AgentName,
        /// Until when.
        until: Timestamp,
        /// Why.
        reason: String,
    },
    /// An agent's rest ended early.
    CooldownCleared {
        /// The agent.
        agent: AgentName,
    },
    /// An agent was dropped from this run.
    AgentDropped {
        /// The agent.
        agent: AgentName,
        /// Why (login, billing).
        reason: String,
    },
    /// A wait begins. Waiting is neither an iteration nor stagnation.
    WaitStarted {
        /// What it waits for.
        reason: String,
        /// When it ends, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A wait is over.
    WaitEnded {
        /// How long it took.
        waited_ms: u64,
    },
    /// A budget is nearly used; or the time budget is, and a check or setup command was ended for it.
    BudgetWarning {
        /// The kind of budget.
        budget: BudgetKind,
        /// A sentence with numbers.
        message: String,
        /// Working time of what was ended, which no other event reports; 0 if nothing was.
        #[serde(default, skip_serializing_if = "parts::is_zero")]
        cut_ms: u64,
    },
    /// The run is stuck.
    Gutter {
        /// The iteration that showed it.
        iteration: u32,
        /// The score.
        loop_score: f64,
        /// The evidence, as text.
        evidence: Vec<String>,
        /// What the last sessions said that they did, the newest last.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tried: Vec<String>,
    },
    /// A sign of being stuck, not enough to count as stuck. The next session gets it as a hint.
    Stuck {
        /// The iteration that showed it.
        iteration: u32,
        /// Which kinds, each reported once until something improves.
        kinds: Vec<signals::StuckKind>,
        /// The score.
        loop_score: f64,
        /// The evidence, as text.
        evidence: Vec<String>,
        /// What was done, what failed and which files change repeatedly.
        #[serde(default, skip_serializing_if = "stuck::StuckDetails::is_empty")]
        context: stuck::StuckDetails,
    },
    /// A recovery step is tried.
    Mitigated {
        /// Which step.
        rung: Rung,
        /// What it means here.
        detail: String,
        /// The agent that is skipped until something improves.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        benched: Option<AgentName>,
        /// The agent that uses another model until something improves, and the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<[String; 2]>"))]
        substitute: Option<(AgentName, String)>,
    },
    /// The doctor has analyzed the run; the report is in `diagnostics.md`.
    Diagnosed(Diagnosed),
    /// A critic reviewed the last changes and failures; its objections go into the next prompt.
    Criticised(Criticised),
    /// A session was asked for the promise that it left out.
    PromiseAsked(PromiseAsked),
    /// Files were restored to an earlier tree of the run.
    WentBack(WentBack),
    /// The user intervened.
    ControlReceived {
        /// The control and its sender.
        #[serde(flatten)]
        letter: Letter,
        /// Bytes of the inbox read so far.
        inbox: u64,
    },
    /// A control couldn't be applied.
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
    /// Your approval sets the new baseline: refs and configuration as they are now.
    ApprovalApplied(ApprovalApplied),
    /// Refs moved that this run did not move.
    RefsMoved {
        /// The moved refs; if the list is cut, those that need approval come first.
        moves: Vec<RefMove>,
        /// How many more moved, if the list is cut.
        #[serde(default, skip_serializing_if = "parts::is_zero_usize")]
        left_out: usize,
    },
    /// The frozen spec, the config or the journal was edited.
    Tampered {
        /// What was edited, and how that was noticed.
        what: String,
    },
    /// Something lost was restored (after an agent's `git clean`).
    Restored {
        /// What.
        what: String,
    },
    /// The run waits for the user and its process ends.
    NeedsHuman {
        /// Why.
        reason: outcome::HumanReason,
        /// A message with what to do.
        message: String,
    },
    /// The final check starts.
    ProofStarted {
        /// The judged commit.
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
        /// Whether everything passed.
        passed: bool,
        /// Digest of `proof.json`.
        proof: Digest,
        /// What didn't pass.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<String>,
        /// How long it took.
        #[serde(default)]
        duration_ms: u64,
        /// What only you can fix, if that is why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// The strength of the result.
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
        /// Checks that didn't pass, with their last output.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<CheckResult>,
        /// The question that needs your approval, if only that prevents a pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Box<super::TestsQuestion>>,
    },
    /// You approve the result: the final check counts as passed.
    ProofApproved(ProofApproved),
    /// The evidence of a final check was lost or damaged, so the check is repeated.
    ProofVoided {
        /// What is wrong.
        reason: String,
    },
    /// The result is handed over.
    Published {
        /// The branch or ref with the result.
        branch: String,
        /// The commit.
        commit: CommitId,
        /// The pull request, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pr_url: Option<String>,
    },
    /// Branch and state were pushed.
    Pushed(Pushed),
    /// A pull request was opened or updated.
    PrWritten(PrWritten),
    /// The code host or the remote didn't do what was requested.
    HandoverFailed(HandoverFailed),
    /// The checks of the pushed commit were read.
    ChecksSeen(ChecksSeen),
    /// The review of the pull request was read.
    ReviewSeen(ReviewSeen),
    /// Other open pull requests touch the same files.
    OverlapFound(OverlapFound),
    /// The run continues elsewhere.
    Moved(Moved),
    /// A side effect is about to happen, by the only driver that may (in a fleet).
    EffectIntended(EffectIntended),
    /// A signal ended the process. The run can be resumed.
    Suspended {
        /// The signal.
        by: String,
    },
    /// The run is over.
    Finished {
        /// Why.
        reason: outcome::EndReason,
        /// One sentence.
        summary: String,
    },
    /// A notification was sent, or failed.
    Notified(Notified),
    /// A message for the user.
    Notice {
        /// The sentence.
        message: String,
    },
    /// An event of a newer version.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
