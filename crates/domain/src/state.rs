//! The state of a run: the fold of its events. Whatever a reader wants to know is here or in an artifact named here;
//! nothing in it comes from anywhere but the journal.
//!
//! The state is bounded: however long a run lasts, it remembers totals, the latest check results and a short window of
//! iterations. That is what keeps iteration 2,000 as cheap as iteration 20.

use crate::budget::{BudgetKind, Spent};
use crate::control::{Control, Letter};
use crate::event::{CheckResult, Event, EventBody, Rung, SessionEnd, Verdict};
use crate::id::{AgentName, CommitId, Digest, Seq, TreeId};
use crate::money::{CostBasis, Tokens, Usage, Usd};
use crate::outcome::{EndReason, HumanReason};
use crate::ports::Baseline;
use crate::protect::ProtectedChange;
use crate::select::Cooldown;
use crate::spec::RunSpec;
use crate::stuck::{Trace, WINDOW};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Finished iterations that are remembered in short form.
pub const HISTORY: usize = 20;
const LETTERS: usize = 64;
const NUDGES: usize = 16;
const TOUCHED: usize = 500;

/// Everything known of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
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
    /// The state at the start, once prepared.
    pub baseline: Option<Baseline>,
    /// Finished iterations.
    pub iterations: u32,
    /// Tries of the iteration that comes or runs now.
    pub attempts: u32,
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
    /// Files changed since the start (bounded).
    pub touched: BTreeSet<String>,
    /// The latest result of each verifier.
    pub checks: BTreeMap<String, CheckResult>,
    /// Money, tokens and time.
    pub totals: Totals,
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
    /// Finished iterations, the newest last.
    pub history: VecDeque<IterationSummary>,
    /// What the stuck rules see.
    pub traces: VecDeque<Trace>,
    /// Gutters in a row without progress between.
    pub gutters: u32,
    /// The last rung tried in this gutter.
    pub rung: Option<Rung>,
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
    /// A person is needed.
    pub needs_human: Option<NeedsHuman>,
    /// Something was noticed that needs a person, not yet asked.
    pub alarm: Option<NeedsHuman>,
    /// Promise and checks hold on this commit; the final check is due.
    pub candidate: bool,
    /// The final check of the last iteration.
    pub proof: Option<ProofFacts>,
    /// The tree on which a final check failed, and what failed: promising it again proves nothing.
    pub disproved: Option<(TreeId, Vec<String>)>,
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
}

/// The iteration under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Current {
    /// Its number.
    pub iteration: u32,
    /// Its try.
    pub attempt: u32,
    /// Who works.
    pub agent: AgentName,
    /// The model asked for.
    pub model: Option<String>,
    /// Digest of its prompt.
    pub prompt: Digest,
    /// Agents that were passed over.
    pub skipped: Vec<String>,
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
    /// Whether it promised.
    pub promised: bool,
    /// Its final message in one line.
    pub message: String,
    /// What it used.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
    /// Exit code.
    pub exit_code: Option<i32>,
}

/// What an iteration changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeFacts {
    /// The tree.
    pub tree: TreeId,
    /// The commit, where something changed.
    pub commit: Option<CommitId>,
    /// Changed files.
    pub files: usize,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// For the stuck rules.
    pub contents: Vec<(String, String)>,
}

/// Sums over the run's life; a resume never resets them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Money.
    pub cost: Usd,
    /// How it is known.
    pub basis: CostBasis,
    /// Tokens.
    pub tokens: Tokens,
    /// Working time: sessions, checks, proofs.
    pub working_ms: u64,
    /// Time spent waiting for limits.
    pub waited_ms: u64,
    /// Sessions, void ones included.
    pub sessions: u32,
}

/// One agent's part.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentTotals {
    /// Sessions.
    pub sessions: u32,
    /// Money.
    pub cost: Usd,
    /// How it is known.
    pub basis: CostBasis,
    /// Tokens.
    pub tokens: Tokens,
}

/// A finished iteration in short form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationSummary {
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
    pub cost: Option<Usd>,
    /// How long the session took.
    pub duration_ms: u64,
    /// The score.
    pub loop_score: f64,
    /// Tests, summed over verifiers that report them.
    pub tests: Option<crate::test_report::TestCounts>,
    /// Work commit, where something changed.
    pub commit: Option<CommitId>,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// A gutter that awaits its mitigation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gutter {
    /// The score.
    pub loop_score: f64,
    /// What was seen.
    pub evidence: Vec<String>,
}

/// What a person is needed for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedsHuman {
    /// Why.
    pub reason: HumanReason,
    /// In words.
    pub message: String,
}

/// The final check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofFacts {
    /// The commit it judged.
    pub commit: CommitId,
    /// Whether everything held.
    pub passed: bool,
    /// Whether it ran in a clean checkout.
    pub clean: bool,
    /// What did not hold.
    pub failed: Vec<String>,
    /// Digest of `proof.json`, once finished.
    pub proof: Option<Digest>,
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
    /// In one sentence.
    pub summary: String,
    /// When.
    pub at: Timestamp,
}

/// A wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFacts {
    /// For what.
    pub reason: String,
    /// Until when.
    pub until: Option<Timestamp>,
    /// Since when.
    pub since: Timestamp,
}

impl RunState {
    /// The state before the first event.
    pub fn new(spec: RunSpec) -> Self {
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
            baseline: None,
            iterations: 0,
            attempts: 0,
            empty_answers: 0,
            overloads: 0,
            current: None,
            tree: None,
            work: None,
            touched: BTreeSet::new(),
            checks: BTreeMap::new(),
            totals: Totals::default(),
            by_agent: BTreeMap::new(),
            cooldowns: BTreeMap::new(),
            dropped: BTreeMap::new(),
            last_agent: None,
            skip: BTreeSet::new(),
            models: BTreeMap::new(),
            nudges: Vec::new(),
            history: VecDeque::new(),
            traces: VecDeque::new(),
            gutters: 0,
            rung: None,
            gutter: None,
            warned: BTreeSet::new(),
            paused_by: None,
            stop_by: None,
            cancel_by: None,
            needs_human: None,
            alarm: None,
            candidate: false,
            proof: None,
            disproved: None,
            published: None,
            finished: None,
            wait: None,
            inbox: 0,
            letters: VecDeque::new(),
        }
    }

    /// Time goes on without an event.
    pub fn tick(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    /// What is used of the budgets.
    pub fn spent(&self) -> Spent {
        Spent {
            iterations: self.iterations,
            time: Duration::from_millis(self.totals.working_ms),
            cost: self.totals.cost,
            tokens: self.totals.tokens.total(),
        }
    }

    /// Working time that is left, the deadline included.
    pub fn time_left(&self) -> Duration {
        let budgets = &self.spec.settings.budgets;
        let left = budgets.max_wall_time.saturating_sub(self.spent().time);
        match budgets.deadline {
            Some(deadline) => {
                left.min(Duration::try_from(deadline.duration_since(self.now)).unwrap_or_default())
            }
            None => left,
        }
    }

    /// Time since the start, waits included.
    pub fn elapsed(&self) -> Duration {
        let end = self.finished.as_ref().map_or(self.now, |f| f.at);
        Duration::try_from(end.duration_since(self.started_at)).unwrap_or_default()
    }

    /// The model for an agent: what a person chose, else what the configuration says.
    pub fn model_for(&self, agent: &AgentName) -> Option<String> {
        self.models
            .get(agent.as_str())
            .or_else(|| self.models.get(""))
            .cloned()
            .or_else(|| self.spec.settings.agent(agent).and_then(|a| a.model.clone()))
    }

    /// The status word of the design language.
    pub fn status(&self) -> &'static str {
        if let Some(end) = &self.finished {
            return match end.reason {
                EndReason::Completed => "done",
                EndReason::Stopped | EndReason::Cancelled => "stopped",
                _ => "failed",
            };
        }
        if self.needs_human.is_some() {
            return "needs you";
        }
        if self.baseline.is_none() {
            return "preparing";
        }
        if self.wait.is_some() {
            return if self.paused_by.is_some() { "paused" } else { "waiting" };
        }
        match &self.current {
            Some(current) if current.stage == Stage::Working => "working",
            Some(_) => "verifying",
            None if self.proof.as_ref().is_some_and(|p| p.passed) => "publishing",
            None if self.candidate => "proving",
            None => "working",
        }
    }

    /// Whether a control was already carried out.
    pub fn has_letter(&self, id: &str) -> bool {
        self.letters.iter().any(|letter| letter.id == id)
    }

    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        self.seq = event.seq;
        self.now = self.now.max(event.at);
        let at = event.at;
        match &event.body {
            EventBody::RunCreated { spec, .. } => {
                self.started_at = at;
                self.spec_digest = Some(spec.clone());
            }
            EventBody::DriverStarted { pid, .. } => {
                self.driver_pid = Some(*pid);
                self.wait = None;
            }
            EventBody::Prepared { baseline } => {
                self.tree = Some(baseline.tree.clone());
                self.baseline = Some(baseline.clone());
            }
            EventBody::IterationStarted { iteration, attempt, agent, model, prompt, skipped } => {
                self.attempts = *attempt;
                self.last_agent = Some(agent.clone());
                self.skip.clear();
                self.current = Some(Current {
                    iteration: *iteration,
                    attempt: *attempt,
                    agent: agent.clone(),
                    model: model.clone(),
                    prompt: prompt.clone(),
                    skipped: skipped.clone(),
                    started_at: at,
                    stage: Stage::Working,
                    session: None,
                    change: None,
                    checked: Vec::new(),
                    protected: Vec::new(),
                });
            }
            EventBody::SessionEnded { end, promised, message, usage, duration_ms, exit_code, .. } => {
                self.session_ended(SessionFacts {
                    end: end.clone(),
                    promised: *promised,
                    message: message.clone(),
                    usage: usage.clone(),
                    duration_ms: *duration_ms,
                    exit_code: *exit_code,
                });
            }
            EventBody::Checkpointed { tree, commit, files, files_total, added, removed, .. } => {
                self.tree = Some(tree.clone());
                if commit.is_some() {
                    self.work = commit.clone();
                }
                let room = TOUCHED.saturating_sub(self.touched.len());
                self.touched.extend(files.iter().map(|f| f.path.clone()).take(room));
                if let Some(current) = &mut self.current {
                    current.stage = Stage::Checkpointed;
                    current.change = Some(ChangeFacts {
                        tree: tree.clone(),
                        commit: commit.clone(),
                        files: *files_total,
                        added: *added,
                        removed: *removed,
                        contents: Trace::files_of(files),
                    });
                }
            }
            EventBody::CheckFinished { result, .. } => {
                self.totals.working_ms += result.duration_ms;
                if let Some(current) = &mut self.current {
                    current.checked.push(result.name.clone());
                }
                self.checks.insert(result.name.clone(), result.clone());
            }
            EventBody::ProtectedChanged { changes, .. } => {
                if let Some(current) = &mut self.current {
                    current.protected.clone_from(changes);
                }
            }
            EventBody::IterationEnded { iteration, verdict, signals, failure, .. } => {
                self.iteration_ended(*iteration, *verdict, signals.loop_score, failure.clone(), at);
            }
            EventBody::IterationVoided { .. } => self.current = None,
            EventBody::CooldownSet { agent, until, reason } => {
                let rest = Cooldown { until: *until, reason: reason.clone(), observed_at: at };
                self.cooldowns.insert(agent.clone(), rest);
            }
            EventBody::CooldownCleared { agent } => {
                self.cooldowns.remove(agent);
            }
            EventBody::AgentDropped { agent, reason } => {
                self.dropped.insert(agent.clone(), reason.clone());
            }
            EventBody::WaitStarted { reason, until } => {
                self.wait = Some(WaitFacts { reason: reason.clone(), until: *until, since: at });
            }
            EventBody::WaitEnded { waited_ms } => {
                if self.wait.take().is_some_and(|wait| wait.until.is_some()) {
                    self.totals.waited_ms += waited_ms;
                }
            }
            EventBody::BudgetWarning { budget, .. } => {
                self.warned.insert(*budget);
            }
            EventBody::Gutter { loop_score, evidence, .. } => {
                self.gutters += 1;
                self.gutter = Some(Gutter { loop_score: *loop_score, evidence: evidence.clone() });
            }
            EventBody::Mitigated { rung, detail } => {
                self.rung = Some(*rung);
                self.gutter = None;
                // The fresh session gets a chance of its own: what came before does not count against it.
                self.traces.clear();
                if *rung == Rung::Rotate {
                    self.nudges.push(detail.clone());
                }
            }
            EventBody::ControlReceived { letter, inbox } => {
                self.inbox = *inbox;
                self.control(letter, at);
            }
            EventBody::SpecChanged { version, spec, .. } => {
                self.spec.spec_version = *version;
                self.spec_digest = Some(spec.clone());
                self.edit_pending = false;
            }
            EventBody::ApprovalApplied { config, spec } => {
                self.spec.config_digest.clone_from(config);
                self.spec_digest = Some(spec.clone());
                self.approval_pending = false;
            }
            EventBody::RefsMoved { moves } => {
                let names: Vec<&str> =
                    moves.iter().filter(|m| m.needs_person).map(|m| m.name.as_str()).collect();
                if !names.is_empty() {
                    self.alarm = Some(NeedsHuman {
                        reason: HumanReason::RefsMoved,
                        message: format!("{} moved during the session", names.join(", ")),
                    });
                }
            }
            EventBody::Tampered { what } => {
                self.alarm = Some(NeedsHuman { reason: HumanReason::Tampered, message: what.clone() });
            }
            EventBody::NeedsHuman { reason, message } => {
                self.alarm = None;
                self.needs_human = Some(NeedsHuman { reason: *reason, message: message.clone() });
            }
            EventBody::ProofStarted { commit, clean } => {
                self.proof = Some(ProofFacts {
                    commit: commit.clone(),
                    passed: false,
                    clean: *clean,
                    failed: Vec::new(),
                    proof: None,
                });
            }
            EventBody::ProofFinished { commit, tree, passed, proof, failed, duration_ms } => {
                self.candidate = false;
                self.totals.working_ms += duration_ms;
                if !passed {
                    self.disproved = Some((tree.clone(), failed.clone()));
                }
                let clean = self.proof.as_ref().is_some_and(|p| p.clean);
                self.proof = Some(ProofFacts {
                    commit: commit.clone(),
                    passed: *passed,
                    clean,
                    failed: failed.clone(),
                    proof: Some(proof.clone()),
                });
            }
            EventBody::ProofVoided { .. } => {
                self.proof = None;
                self.candidate = true;
            }
            EventBody::Published { branch, commit, pr_url } => {
                self.published = Some(Published {
                    branch: branch.clone(),
                    commit: commit.clone(),
                    pr_url: pr_url.clone(),
                });
            }
            EventBody::Finished { reason, summary } => {
                self.current = None;
                self.wait = None;
                self.finished = Some(Finished { reason: *reason, summary: summary.clone(), at });
            }
            EventBody::ControlRefused { .. }
            | EventBody::Restored { .. }
            | EventBody::Notice { .. }
            | EventBody::Unknown => {}
        }
    }

    fn session_ended(&mut self, session: SessionFacts) {
        self.totals.working_ms += session.duration_ms;
        self.totals.sessions += 1;
        let cost = session.usage.cost.unwrap_or_default();
        let tokens = session.usage.tokens.unwrap_or_default();
        // An interrupted session may have cost something nobody can know, but it does not make the rest a guess.
        let counts = session.end != SessionEnd::Interrupted;
        self.totals.cost += cost;
        self.totals.tokens += tokens;
        if counts {
            self.totals.basis = self.totals.basis.max(session.usage.basis);
        }
        match &session.end {
            SessionEnd::Empty => self.empty_answers += 1,
            end if !end.is_void() => self.empty_answers = 0,
            _ => {}
        }
        match &session.end {
            SessionEnd::Overloaded { .. } => self.overloads += 1,
            SessionEnd::Interrupted => {}
            _ => self.overloads = 0,
        }
        if let Some(current) = &mut self.current {
            let totals = self.by_agent.entry(current.agent.clone()).or_default();
            totals.sessions += 1;
            totals.cost += cost;
            totals.tokens += tokens;
            if counts {
                totals.basis = totals.basis.max(session.usage.basis);
            }
            current.stage = Stage::Worked;
            current.session = Some(session);
        }
    }

    fn iteration_ended(
        &mut self,
        iteration: u32,
        verdict: Verdict,
        score: f64,
        failure: Option<Digest>,
        at: Timestamp,
    ) {
        self.iterations = iteration;
        self.attempts = 0;
        self.empty_answers = 0;
        self.nudges.clear();
        self.candidate = verdict == Verdict::Candidate;
        self.proof = None;
        let Some(current) = self.current.take() else { return };
        let tests = current.checked.iter().filter_map(|name| self.checks.get(name)?.tests).reduce(|a, b| {
            crate::test_report::TestCounts { passed: a.passed + b.passed, failed: a.failed + b.failed }
        });
        let change = current.change;
        let (files, added, removed) = change.as_ref().map_or((0, 0, 0), |c| (c.files, c.added, c.removed));
        let session = current.session;
        self.history.push_back(IterationSummary {
            iteration,
            agent: current.agent,
            verdict,
            end: session.as_ref().map_or(SessionEnd::Interrupted, |s| s.end.clone()),
            message: session.as_ref().map(|s| s.message.clone()).unwrap_or_default(),
            files,
            added,
            removed,
            cost: session.as_ref().and_then(|s| s.usage.cost),
            duration_ms: session.as_ref().map_or(0, |s| s.duration_ms),
            loop_score: score,
            tests,
            commit: change.as_ref().and_then(|c| c.commit.clone()),
            ended_at: at,
        });
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        if let Some(change) = change {
            self.traces.push_back(Trace {
                iteration,
                tree: change.tree,
                failure,
                lines: added + removed,
                changed: files > 0,
                files: change.contents,
            });
            if self.traces.len() > WINDOW {
                self.traces.pop_front();
            }
        }
        // Real progress closes the gutter: the window is full again, and nothing in it points to circling.
        if score == 0.0 && self.traces.len() >= self.spec.settings.stuck_detection.threshold as usize {
            self.gutters = 0;
            self.rung = None;
        }
    }

    fn control(&mut self, letter: &Letter, at: Timestamp) {
        match &letter.control {
            Control::Pause => self.paused_by = Some(letter.from.clone()),
            Control::Resume => {
                self.paused_by = None;
                if self.needs_human.as_ref().is_some_and(|n| !n.reason.needs_approval()) {
                    self.person_answered();
                }
            }
            Control::Approve => {
                self.approval_pending = true;
                self.person_answered();
            }
            Control::Stop => self.stop_by = Some(letter.from.clone()),
            Control::Cancel => self.cancel_by = Some(letter.from.clone()),
            Control::Skip { agent } => {
                let agent = agent.clone().or_else(|| self.current.as_ref().map(|c| c.agent.clone()));
                self.skip.extend(agent);
            }
            Control::Cooldown { agent, seconds } => {
                if *seconds == 0 {
                    self.cooldowns.remove(agent);
                    self.dropped.remove(agent);
                } else {
                    let until =
                        at + jiff::SignedDuration::from_secs((*seconds).min(10 * 365 * 86_400) as i64);
                    let reason = format!("rest asked for by {}", letter.from);
                    self.cooldowns.insert(agent.clone(), Cooldown { until, reason, observed_at: at });
                }
            }
            Control::Model { model, agent } => {
                let key = agent.as_ref().map_or_else(String::new, |a| a.as_str().to_owned());
                match model {
                    Some(model) => self.models.insert(key, model.clone()),
                    None => self.models.remove(&key),
                };
            }
            Control::Edit { task } => {
                self.spec.task.text.clone_from(task);
                self.edit_pending = true;
                self.candidate = false;
            }
            Control::Nudge { text } => {
                self.nudges.push(text.clone());
                if self.nudges.len() > NUDGES {
                    self.nudges.remove(0);
                }
            }
            Control::Rotate | Control::Note { .. } | Control::Guardrail { .. } => {}
        }
        self.letters.push_back(letter.clone());
        if self.letters.len() > LETTERS {
            self.letters.pop_front();
        }
    }

    /// A person looked at what the run asked about: it may go on, and the ladder starts again at its first rung.
    fn person_answered(&mut self) {
        self.needs_human = None;
        self.alarm = None;
        self.rung = None;
        self.traces.clear();
        self.gutter = None;
    }
}
