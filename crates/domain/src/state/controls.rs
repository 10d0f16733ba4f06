//! How user controls change the state.

use super::{LETTERS, RunFacts};
use crate::model::select::Cooldown;
use jiff::Timestamp;
use ralph_loop_protocol::control::{BudgetChange, Control, Letter, PublishChange};
use ralph_loop_protocol::outcome::HumanReason;
use ralph_loop_task::config::Publish;

impl RunFacts {
    pub(super) fn control(&mut self, letter: &Letter, at: Timestamp) {
        match &letter.control {
            Control::Pause => self.people.paused_by = Some(letter.from.clone()),
            Control::Resume => {
                self.people.paused_by = None;
                self.handover.try_again();
                if let Some(need) = self.people.needs_human.take_if(|need| !need.reason.needs_approval()) {
                    if need.reason == HumanReason::Setup {
                        self.look_again();
                    }
                    self.person_answered();
                } else if self.people.tests_rejected && self.asks_about_tests() {
                    self.tests_rejected();
                }
            }
            // Only the tests are accepted: anything else is a separate question.
            Control::Approve if self.asks_about_tests() => {
                self.people.tests_approved_by = Some(letter.from.clone());
                let alarm = self.people.alarm.take();
                self.person_answered();
                self.people.alarm = alarm;
            }
            // An answer without a question is ignored: an agent may have written it into the inbox beforehand.
            Control::Approve if self.people.needs_human.is_some() => {
                self.people.approval_pending = true;
                self.person_answered();
            }
            Control::Stop => self.people.stop_by = Some(letter.from.clone()),
            Control::Cancel => self.people.cancel_by = Some(letter.from.clone()),
            Control::Skip { agent } => {
                let agent =
                    agent.clone().or_else(|| self.iterations.current.as_ref().map(|c| c.agent.clone()));
                self.agents.skip.extend(agent);
            }
            Control::Cooldown { agent, seconds } => {
                if *seconds == 0 {
                    self.agents.cooldowns.remove(agent);
                    self.agents.dropped.remove(agent);
                } else {
                    let until =
                        at + jiff::SignedDuration::from_secs((*seconds).min(10 * 365 * 86_400) as i64);
                    let reason = format!("cooldown asked for by {}", letter.from);
                    self.agents.cooldowns.insert(agent.clone(), Cooldown { until, reason, observed_at: at });
                }
            }
            Control::Model { model, agent, always } => {
                let key = agent.as_ref().map_or_else(String::new, |a| a.as_str().to_owned());
                // A choice during a session is for the next one, whatever that session uses.
                self.agents.model_used = self.agents.model_used.take().filter(|used| *used != key);
                self.agents.models_once.remove(&key);
                if model.is_some() && !always {
                    self.agents.models_once.insert(key.clone());
                }
                match model {
                    Some(model) => self.agents.models.insert(key, model.clone()),
                    None => self.agents.models.remove(&key),
                };
            }
            Control::Edit { task } => {
                self.spec.take_edit(task);
                self.work
                    .checks
                    .retain(|name, _| self.spec.settings.verifiers.iter().any(|v| v.name == *name));
                self.people.edit_pending = true;
                self.result.candidate = false;
                // Promise and proof are about the old task.
                if let Some(current) = &mut self.iterations.current {
                    current.outdated = true;
                }
                if self.result.finished.is_none() && self.result.proof.take().is_some() {
                    self.result.outdated = true;
                }
                // A new task settles questions about the work on the old one.
                if self.asks_about_tests() {
                    let alarm = self.people.alarm.take();
                    self.person_answered();
                    self.people.alarm = alarm;
                }
            }
            Control::Budget(change) => self.change_budgets(change, at),
            Control::Publish(change) => self.publish(change),
            Control::Nudge { text } => {
                self.nudge(text.clone());
                self.people.tests_rejected |= self.asks_about_tests();
            }
            Control::Note { .. } | Control::Guardrail { .. } => {
                self.people.tests_rejected |= self.asks_about_tests();
            }
            Control::Diagnose => self.stuck.doctor_asked = true,
            Control::Approve | Control::Rotate => {}
        }
        self.people.letters.push_back(letter.clone());
        if self.people.letters.len() > LETTERS {
            self.people.letters.pop_front();
        }
    }

    /// Sets new limits. A run that one of them had ended resumes if there is room now.
    fn change_budgets(&mut self, change: &BudgetChange, at: Timestamp) {
        let budgets = self.spec.settings.budgets.changed(change, at);
        self.spec.settings.budgets = budgets;
        self.spending.warned.clear();
        self.spending.cut_short = false;
        let ended_by_budget = self.result.finished.as_ref().is_some_and(|end| end.reason.is_budget());
        if ended_by_budget && budgets.exhausted(self.spent()).is_none() {
            self.result.finished = None;
            self.people.stop_by = None;
            self.spending.totals.waited_ms = 0;
            self.handover.reopened();
        }
    }

    /// A run that has ended continues, only to hand over what it has.
    fn publish(&mut self, change: &PublishChange) {
        let handover = &mut self.spec.settings.handover;
        handover.publish = if change.pr { Publish::Pr } else { Publish::Push };
        handover.branch = Some(change.branch.clone());
        let pr = &mut handover.pr;
        pr.draft = change.draft.or(pr.draft);
        for (now, new) in [
            (&mut pr.base, &change.base),
            (&mut pr.title_template, &change.title),
            (&mut pr.body_template, &change.body),
        ] {
            if new.is_some() {
                now.clone_from(new);
            }
        }
        self.result.published = None;
        self.result.finished = None;
        self.handover.reopened();
    }

    /// What the checks need may exist now: the existing work is checked again before another session.
    fn look_again(&mut self) {
        // The user may have installed a program that was missing at the start.
        self.surroundings.retain(|name, mark| !mark.is_empty() || name.starts_with("~/"));
        if self.spending.totals.sessions == 0 {
            // Only the start exists: its checks are repeated.
            return;
        }
        let refused =
            self.result.disproved.take_if(|(tree, _)| Some(&*tree) == self.work.tree.as_ref()).is_some();
        if refused {
            self.result.candidate = true;
            // If it fails for the same reason, no money is spent in between.
            self.result.setup_hint = self.result.setup_hint.take().map(|(hint, _)| (hint, 1));
            return;
        }
        let tree = self.work.tree.as_ref();
        let passes = |name: &&String| {
            self.work.checks.get(*name).is_some_and(|result| result.passed && Some(&result.tree) == tree)
        };
        let required = self.spec.settings.required_verifiers.iter();
        self.people.recheck = required.filter(|name| !passes(name)).cloned().collect();
    }

    fn asks_about_tests(&self) -> bool {
        self.people.needs_human.as_ref().is_some_and(|need| need.reason == HumanReason::TestsChanged)
    }

    fn tests_rejected(&mut self) {
        let alarm = self.people.alarm.take();
        self.person_answered();
        self.people.alarm = alarm;
        self.people.tests_rejected = false;
        let proof = self.result.proof.as_ref();
        let changed = proof.and_then(|proof| proof.question.as_ref()).map(|question| {
            let names: Vec<&str> =
                question.changed.iter().map(|change| change.path.as_str()).take(20).collect();
            names.join(", ")
        });
        self.nudge(format!(
            "A person looked at the changed tests and does not accept them. Bring these back as they were at the start, and \
             make the work pass with them: {}.",
            changed.unwrap_or_default()
        ));
    }

    /// The user answered the run's question: it may continue, and the recovery steps start from the first.
    fn person_answered(&mut self) {
        self.people.needs_human = None;
        self.people.alarm = None;
        self.iterations.empty_sessions = 0;
        self.leave_gutter();
        self.stuck.traces.clear();
        self.stuck.gutter = None;
    }
}
