//! The fold: what each event does to the state. Nothing else ever changes it, but for the time.

use super::{
    ChangeFacts, Current, Finished, Gutter, HISTORY, IterationSummary, LETTERS, NUDGES, NeedsHuman,
    ProofFacts, Published, RunState, SessionFacts, Stage, TOUCHED, WaitFacts,
};
use crate::control::{Control, Letter};
use crate::event::{Event, EventBody, Rung, SessionEnd, Verdict};
use crate::id::Digest;
use crate::outcome::HumanReason;
use crate::ports::Ask;
use crate::select::Cooldown;
use crate::stuck::{Evidence, Signals, Trace, WINDOW};
use jiff::Timestamp;

impl RunState {
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
                self.question = None;
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
            EventBody::ControlRefused { inbox, .. } => self.inbox = self.inbox.max(*inbox),
            EventBody::ActionStarted { .. }
            | EventBody::ActionFinished { .. }
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

    /// An agent would rather not go on. A question goes to a person; "it cannot be done" must be said twice in a row,
    /// by sessions that know nothing of each other but this.
    fn asked(&mut self, ask: Option<&Ask>) {
        let Some(agent) = self.current.as_ref().map(|c| c.agent.clone()) else { return };
        let said_before = std::mem::take(&mut self.gave_up);
        let message = match ask {
            None | Some(Ask::Rotate { .. }) => return,
            Some(Ask::Pause { reason }) => format!("{agent} asks: {reason}"),
            Some(Ask::GiveUp { reason }) if said_before => {
                format!("two sessions in a row say that it cannot be done; {agent}: {reason}")
            }
            Some(Ask::GiveUp { reason }) => {
                self.gave_up = true;
                self.nudges.push(format!(
                    "The last session ({agent}) said that the task cannot be done: {reason}. Find out whether that \
                     is so. If you find a way, take it; if you come to the same end, say so."
                ));
                return;
            }
        };
        self.question = Some(NeedsHuman { reason: HumanReason::AgentAsks, message });
    }

    /// Remembers what the stuck rules need of the iteration that ends; the window stays short.
    fn keep_trace(&mut self, failure: Option<Digest>, evidence: Evidence) {
        let trace = self.current.as_ref().and_then(|c| Trace::of(self, c, failure, evidence));
        self.traces.extend(trace);
        if self.traces.len() > WINDOW {
            self.traces.pop_front();
        }
    }

    fn iteration_ended(&mut self, iteration: u32, verdict: Verdict, signals: &Signals, at: Timestamp) {
        self.iterations = iteration;
        self.attempts = 0;
        self.interruptions = 0;
        self.empty_answers = 0;
        // What came during the session is for the next one.
        let read = self.nudges_read.min(self.nudges.len());
        self.nudges.drain(..read);
        self.nudges_read = 0;
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
            loop_score: signals.loop_score,
            tests,
            commit: change.as_ref().and_then(|c| c.commit.clone()),
            ended_at: at,
        });
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        // Real progress closes the gutter: the window is full again, and nothing in it points to circling.
        if signals.loop_score == 0.0
            && self.traces.len() >= self.spec.settings.stuck_detection.threshold as usize
        {
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
            // An answer without a question is nobody's: an agent may have written it into the inbox beforehand.
            Control::Approve if self.needs_human.is_some() => {
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
                self.spec.take_edit(task);
                self.checks.retain(|name, _| self.spec.settings.verifiers.iter().any(|v| v.name == *name));
                self.edit_pending = true;
                self.candidate = false;
            }
            Control::Nudge { text } => {
                self.nudges.push(text.clone());
                if self.nudges.len() > NUDGES {
                    self.nudges.remove(0);
                    self.nudges_read = self.nudges_read.saturating_sub(1);
                }
            }
            Control::Approve | Control::Rotate | Control::Note { .. } | Control::Guardrail { .. } => {}
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
