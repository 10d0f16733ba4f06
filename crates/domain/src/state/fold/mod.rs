//! The fold: how each event changes the facts. Nothing else changes them, except the time.

mod ending;
mod help;
mod iteration;
mod proof;
mod standing;

pub use proof::proof_failure;

use super::{RunFacts, WaitFacts};
use ralph_loop_protocol::event::{Event, EventBody};

impl RunFacts {
    pub(super) fn apply(&mut self, event: &Event) {
        self.spending.compute.apply(event);
        self.seq = event.seq;
        self.now = self.now.max(event.at);
        self.note_occasion(event);
        let at = event.at;
        match &event.body {
            // The run and its driver.
            EventBody::RunCreated { spec, .. } => self.created(spec, at),
            EventBody::DriverStarted { pid, lease, .. } => self.driven_by(*pid, lease),
            EventBody::Placed(news) => self.placed_in(news),
            EventBody::Prepared { baseline, surroundings, checks } => {
                self.prepared(baseline, surroundings, checks.as_ref());
                // The start is the first candidate.
                if self.work.best.is_none() {
                    self.note_best(0, checks.as_ref().and_then(|checks| checks.metric.as_ref()));
                }
            }
            EventBody::Moved(news) => self.moved(news),
            EventBody::SpecChanged(news) => self.spec_changed(news.version, &news.spec),
            EventBody::ApprovalApplied(news) => self.approval_applied(news.config.as_ref(), &news.spec),
            EventBody::Suspended { by } => self.people.suspended_by = Some(by.clone()),
            EventBody::Finished { reason, summary } => self.over(*reason, summary, at),
            EventBody::IterationStarted { .. } => self.iteration_started(&event.body, at),
            EventBody::SessionEnded { .. } => self.session_over(&event.body),
            EventBody::Checkpointed { .. } => self.checkpointed(&event.body),
            EventBody::HandedBack(handed) => {
                self.work.kept_back.clone_from(&handed.conflicts);
                self.work.branch_kept.clone_from(&handed.branch_kept);
            }
            EventBody::CheckFinished { result, .. } => self.check_finished(result),
            EventBody::ProtectedChanged { changes, .. } => {
                if let Some(current) = &mut self.iterations.current {
                    current.protected.clone_from(changes);
                }
            }
            EventBody::Claimed { ids, open, .. } => {
                self.work.claims = ids.iter().cloned().collect();
                self.work.unclaimed = open.iter().cloned().collect();
            }
            EventBody::Ticked { met, .. } => self.work.met = met.iter().cloned().collect(),
            EventBody::IterationEnded { iteration, verdict, signals, failure, evidence, failing, .. } => {
                self.keep_trace(failure.clone(), (**evidence).clone());
                self.note_environment(evidence.environment.as_deref());
                // A number measured by a changed check doesn't count.
                if self.iterations.current.as_ref().is_none_or(|current| current.protected.is_empty()) {
                    self.note_best(*iteration, evidence.metric.as_ref());
                }
                self.iteration_ended(*iteration, *verdict, signals, at);
                if let Some(last) =
                    self.iterations.history.back_mut().filter(|last| last.iteration == *iteration)
                {
                    last.failing.clone_from(failing);
                }
            }
            EventBody::IterationVoided { .. } => self.iterations.current = None,
            EventBody::CooldownSet { agent, until, reason } => self.rests(agent, *until, reason, at),
            EventBody::CooldownCleared { agent } => drop(self.agents.cooldowns.remove(agent)),
            EventBody::AgentDropped { agent, reason } => {
                self.agents.dropped.insert(agent.clone(), reason.clone());
            }
            EventBody::WaitStarted { reason, until } => {
                self.wait = Some(WaitFacts { reason: reason.clone(), until: *until, since: at });
            }
            EventBody::WaitEnded { waited_ms } => self.waited(*waited_ms),
            EventBody::BudgetWarning { budget, cut_ms, .. } => {
                self.spending.warned.insert(*budget);
                self.spending.totals.working_ms += cut_ms;
                self.spending.cut_short |= *cut_ms > 0;
            }
            EventBody::Gutter { loop_score, evidence, .. } => self.circles(*loop_score, evidence),
            EventBody::Stuck { kinds, evidence, context, .. } => self.shows_signs(kinds, evidence, context),
            EventBody::Mitigated { rung, detail, benched, substitute } => {
                self.mitigated(*rung, detail, benched.as_ref(), substitute.as_ref());
            }
            EventBody::Diagnosed(news) => self.diagnosed(news),
            EventBody::Criticised(news) => self.criticised(news),
            EventBody::PromiseAsked(news) => self.promise_asked(news),
            EventBody::WentBack(news) => self.went_back(news),
            EventBody::ControlReceived { letter, inbox } => {
                self.people.inbox = *inbox;
                self.control(letter, at);
            }
            EventBody::ControlRefused { inbox, .. } => self.people.inbox = self.people.inbox.max(*inbox),
            EventBody::RefsMoved { moves, left_out } => self.refs_moved(moves, *left_out),
            EventBody::Tampered { what } => self.tampered(what),
            EventBody::NeedsHuman { reason, message } => self.asks(*reason, message),
            EventBody::ProofStarted { commit, clean } => self.proof_started(commit, *clean),
            EventBody::ProofFinished { .. } => self.proof_finished(&event.body),
            EventBody::ProofApproved(news) => self.proof_approved(&news.commit, &news.proof, &news.by),
            EventBody::ProofVoided { .. } => {
                self.people.tests_approved_by = None;
                self.result.proof = None;
                self.result.candidate = true;
            }
            EventBody::Published { branch, commit, pr_url } => {
                self.published(branch, commit, pr_url.as_deref());
            }
            EventBody::Pushed(news) => self.pushed(news),
            EventBody::PrWritten(news) => self.pr_written(news),
            EventBody::HandoverFailed(news) => self.handover_failed(news),
            EventBody::ChecksSeen(news) => self.checks_seen(news, at),
            EventBody::ReviewSeen(news) => self.review_seen(news, at),
            EventBody::OverlapFound(news) => self.overlap_found(news),
            EventBody::EffectIntended(_)
            | EventBody::ActionStarted(_)
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
}
