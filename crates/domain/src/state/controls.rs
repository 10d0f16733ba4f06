//! What a person's word does to the state.

use super::{LETTERS, RunFacts};
use crate::control::{BudgetChange, Control, Letter};
use crate::select::Cooldown;
use jiff::Timestamp;

impl RunFacts {
    pub(super) fn control(&mut self, letter: &Letter, at: Timestamp) {
        match &letter.control {
            Control::Pause => self.paused_by = Some(letter.from.clone()),
            Control::Resume => {
                self.paused_by = None;
                self.handover.try_again();
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
            Control::Budget(change) => self.change_budgets(change, at),
            Control::Nudge { text } => {
                self.nudge(text.clone());
            }
            Control::Diagnose => self.doctor_asked = true,
            Control::Approve | Control::Rotate | Control::Note { .. } | Control::Guardrail { .. } => {}
        }
        self.letters.push_back(letter.clone());
        if self.letters.len() > LETTERS {
            self.letters.pop_front();
        }
    }

    /// New limits. A run that one of them had ended goes on, if there is room now.
    fn change_budgets(&mut self, change: &BudgetChange, at: Timestamp) {
        let budgets = self.spec.settings.budgets.changed(change, at);
        self.spec.settings.budgets = budgets;
        self.warned.clear();
        let ended_by_budget = self.finished.as_ref().is_some_and(|end| end.reason.is_budget());
        if ended_by_budget && budgets.exhausted(self.spent()).is_none() {
            self.finished = None;
            self.stop_by = None;
            self.totals.waited_ms = 0;
            self.handover.reopened();
        }
    }

    /// A person looked at what the run asked about: it may go on, and the ladder starts again at its first rung.
    fn person_answered(&mut self) {
        self.needs_human = None;
        self.alarm = None;
        self.leave_gutter();
        self.traces.clear();
        self.gutter = None;
    }
}
