//! The fold: what each event does to the state. Nothing else ever changes it, but for the time.

use super::{
    ChangeFacts, Current, Finished, Gutter, HISTORY, IterationSummary, NeedsHuman, ProofFacts, Published,
    RunState, SessionFacts, Stage, TOUCHED, WaitFacts,
};
use crate::event::{Criticised, Diagnosed, Event, EventBody, Rung, SessionEnd, Verdict};
use crate::outcome::HumanReason;
use crate::select::Cooldown;
use crate::stuck::{Signals, Trace};
use jiff::Timestamp;

/// Final checks in a row that fail for a reason that no agent can mend.
const HINTS_MAX: u32 = 2;

impl RunState {
    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        self.compute.apply(event);
        self.seq = event.seq;
        self.now = self.now.max(event.at);
        let at = event.at;
        self.note_occasion(event);
        match &event.body {
            EventBody::RunCreated { spec, .. } => {
                self.started_at = at;
                self.spec_digest = Some(spec.clone());
            }
            EventBody::DriverStarted { pid, lease, .. } => {
                self.driver_pid = Some(*pid);
                // Drivers of older versions did not count; each was one.
                let next = self.epoch.next();
                self.epoch = lease.epoch.map_or(next, |epoch| epoch.max(next));
                self.wait = None;
            }
            EventBody::Prepared { baseline, surroundings } => {
                self.surroundings.clone_from(surroundings);
                self.tree = Some(baseline.tree.clone());
                self.baseline = Some(baseline.clone());
            }
            EventBody::IterationStarted { iteration, attempt, agent, model, prompt, skipped, role } => {
                self.attempts = *attempt;
                self.nudges_read = self.nudges.len();
                self.last_agent = Some(agent.clone());
                self.skip.clear();
                self.current = Some(Current {
                    iteration: *iteration,
                    attempt: *attempt,
                    agent: agent.clone(),
                    model: model.clone(),
                    prompt: prompt.clone(),
                    skipped: skipped.clone(),
                    role: *role,
                    started_at: at,
                    stage: Stage::Working,
                    session: None,
                    change: None,
                    checked: Vec::new(),
                    protected: Vec::new(),
                });
            }
            EventBody::SessionEnded {
                end,
                promised,
                message,
                usage,
                duration_ms,
                exit_code,
                claims,
                ask,
                commit_message,
                findings,
                denials,
                ..
            } => {
                self.session_ended(SessionFacts {
                    end: end.clone(),
                    promised: *promised,
                    message: message.clone(),
                    usage: usage.clone(),
                    duration_ms: *duration_ms,
                    exit_code: *exit_code,
                    commit_message: commit_message.clone(),
                    denials: *denials,
                });
                self.take_findings(findings.as_deref());
                self.claimed_in_words.extend(claims.iter().cloned());
                self.asked(ask.as_ref());
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
                    // Recorded again with the engine's own marks: the agent's change is what the first record says.
                    if let Some(change) = current.change.as_mut().filter(|c| c.files > 0) {
                        change.tree = tree.clone();
                        change.commit.clone_from(commit);
                        return;
                    }
                    current.change = Some(ChangeFacts {
                        tree: tree.clone(),
                        commit: commit.clone(),
                        files: *files_total,
                        added: *added,
                        removed: *removed,
                        contents: Trace::files_of(files),
                        sizes: Trace::sizes_of(files),
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
            EventBody::Claimed { ids, open, .. } => {
                self.claims = ids.iter().cloned().collect();
                self.unclaimed = open.iter().cloned().collect();
            }
            EventBody::Ticked { met, .. } => self.met = met.iter().cloned().collect(),
            EventBody::IterationEnded { iteration, verdict, signals, failure, evidence, .. } => {
                self.keep_trace(failure.clone(), evidence.clone());
                self.iteration_ended(*iteration, *verdict, signals, at);
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
                // Waits for the code host have limits of their own.
                let proven = self.proof.as_ref().is_some_and(|proof| proof.passed);
                if self.wait.take().is_some_and(|wait| wait.until.is_some()) && !proven {
                    self.totals.waited_ms += waited_ms;
                }
            }
            EventBody::BudgetWarning { budget, .. } => {
                self.warned.insert(*budget);
            }
            EventBody::Gutter { loop_score, evidence, .. } => {
                if self.rung.is_none() {
                    self.gutters += 1;
                    self.scores.gutters += 1;
                }
                self.gutter = Some(Gutter { loop_score: *loop_score, evidence: evidence.clone() });
            }
            EventBody::Stuck { kinds, evidence, .. } => {
                self.noticed.extend(kinds.iter().copied());
                self.nudge(format!(
                    "A sign of going in circles: {}. Make sure that this session does something else.",
                    evidence.join("; ")
                ));
            }
            EventBody::Mitigated { rung, detail, benched, substitute } => {
                self.rung = Some(*rung);
                self.climbed.insert(*rung);
                self.rung_at = self.iterations;
                self.gutter = None;
                if benched.is_some() {
                    self.benched.clone_from(benched);
                }
                if substitute.is_some() {
                    self.substitute.clone_from(substitute);
                }
                if matches!(rung, Rung::Nudge | Rung::Rotate | Rung::Fallback) {
                    self.nudge(detail.clone());
                }
            }
            EventBody::Diagnosed(Diagnosed { iteration, summary, usage, .. }) => {
                self.diagnosed_at = Some(*iteration);
                self.doctor_asked = false;
                self.spent_beside(usage);
                if !summary.is_empty() {
                    self.nudge(format!("A doctor read the record of this run: {summary}"));
                }
            }
            EventBody::Criticised(Criticised { iteration, objections, usage, by }) => {
                self.criticised_at = Some(*iteration);
                self.spent_beside(usage);
                if !objections.is_empty() {
                    self.nudge(format!("A critic ({by}) looked at the last changes: {objections}"));
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
                self.question = None;
                if *reason == HumanReason::Setup {
                    self.setup_hint = self.setup_hint.take().map(|(hint, _)| (hint, 0));
                }
                self.needs_human = Some(NeedsHuman { reason: *reason, message: message.clone() });
            }
            EventBody::ProofStarted { commit, clean } => {
                self.proof = Some(ProofFacts {
                    commit: commit.clone(),
                    passed: false,
                    clean: *clean,
                    failed: Vec::new(),
                    proof: None,
                    weakened: 0,
                });
            }
            EventBody::ProofFinished { commit, tree, passed, proof, failed, duration_ms, weakened, hint } => {
                self.candidate = false;
                self.take_hint(hint.as_deref());
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
                    weakened: *weakened,
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
            EventBody::Pushed(news) => self.pushed(news),
            EventBody::PrWritten(news) => self.pr_written(news),
            EventBody::HandoverFailed(news) => self.handover_failed(news),
            EventBody::ChecksSeen(news) => self.checks_seen(news, at),
            EventBody::ReviewSeen(news) => self.review_seen(news, at),
            EventBody::OverlapFound(news) => self.overlap_found(news),
            EventBody::Moved(news) => {
                self.baseline = Some(news.baseline.clone());
                self.spec_digest = Some(news.spec.clone());
                // Letters of the old place stay there.
                self.inbox = 0;
            }
            EventBody::Finished { reason, summary } => {
                self.current = None;
                self.wait = None;
                self.finished = Some(Finished { reason: *reason, summary: summary.clone(), at });
            }
            EventBody::HandedBack(handed) => {
                self.kept_back.clone_from(&handed.conflicts);
                self.branch_kept.clone_from(&handed.branch_kept);
            }
            EventBody::ControlRefused { inbox, .. } => self.inbox = self.inbox.max(*inbox),
            EventBody::ActionStarted(_)
            | EventBody::ActionFinished(_)
            | EventBody::EgressRefused(_)
            | EventBody::SandboxReady(_)
            | EventBody::SandboxGone(_)
            | EventBody::Restored { .. }
            | EventBody::Notice { .. }
            | EventBody::Notified(_)
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
        self.totals.saved += session.usage.saved.unwrap_or_default();
        self.totals.tokens += tokens;
        if counts {
            self.totals.basis = self.totals.basis.max(session.usage.basis);
        }
        match &session.end {
            SessionEnd::Empty => self.empty_answers += 1,
            end if !end.is_void() => self.empty_answers = 0,
            _ => {}
        }
        if session.end == SessionEnd::Interrupted {
            self.interruptions += 1;
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

    fn iteration_ended(&mut self, iteration: u32, verdict: Verdict, signals: &Signals, at: Timestamp) {
        self.iterations = iteration;
        self.scores.last = signals.loop_score;
        self.scores.max = self.scores.max.max(signals.loop_score);
        self.attempts = 0;
        self.interruptions = 0;
        self.empty_answers = 0;
        // What came during the session is for the next one.
        let read = self.nudges_read.min(self.nudges.len());
        self.nudges.drain(..read);
        self.nudges_read = 0;
        self.candidate = verdict == Verdict::Candidate;
        self.proof = None;
        // The files that a final check refused for a reason of the user's, handed in again as they are.
        if self.disproved.as_ref().is_some_and(|(tree, _)| Some(tree) == self.tree.as_ref())
            && let Some((_, times)) = &mut self.setup_hint
        {
            *times += 1;
            self.ask_for_setup();
        }
        let Some(current) = self.current.take() else { return };
        let tests = current.checked.iter().filter_map(|name| self.checks.get(name)?.tests).reduce(|a, b| {
            crate::test_report::TestCounts { passed: a.passed + b.passed, failed: a.failed + b.failed }
        });
        let change = current.change;
        let (files, added, removed) = change.as_ref().map_or((0, 0, 0), |c| (c.files, c.added, c.removed));
        let session = current.session;
        if let Some(session) = &session {
            match crate::ladder::is_failure(&session.end) {
                true => *self.failing.entry(current.agent.clone()).or_default() += 1,
                false => drop(self.failing.remove(&current.agent)),
            }
        }
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
            loop_score: signals.loop_score,
            tests,
            commit: change.as_ref().and_then(|c| c.commit.clone()),
            ended_at: at,
        });
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        // Real progress closes the gutter: something got better, or the window is full again and nothing in it points to
        // circling.
        let quiet = signals.loop_score == 0.0
            && self.traces.len() >= self.spec.settings.stuck_detection.threshold as usize;
        if signals.progress.is_some() || quiet {
            self.gutters = 0;
            self.leave_gutter();
        }
    }

    /// A hint that comes a second time in a row is a question: no agent can do what it asks for.
    fn take_hint(&mut self, hint: Option<&str>) {
        let times = self.setup_hint.take().map_or(0, |(_, times)| times);
        self.setup_hint = hint.map(|hint| (hint.to_owned(), times + 1));
        self.ask_for_setup();
    }

    fn ask_for_setup(&mut self) {
        if let Some((hint, times)) = &self.setup_hint
            && *times >= HINTS_MAX
        {
            self.question = Some(NeedsHuman { reason: HumanReason::Setup, message: hint.clone() });
        }
    }

    /// Money and tokens of a call that is no session.
    fn spent_beside(&mut self, usage: &crate::money::Usage) {
        self.totals.cost += usage.cost.unwrap_or_default();
        self.totals.saved += usage.saved.unwrap_or_default();
        self.totals.tokens += usage.tokens.unwrap_or_default();
        self.totals.basis = self.totals.basis.max(usage.basis);
    }
}
