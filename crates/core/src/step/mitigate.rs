//! Mitigate: one rung of the ladder. This is its first form: a fresh session that is told what was tried, then a person.

use crate::driver::Driver;
use crate::error::DriveError;
use ralph_domain::event::{EventBody, Rung};
use ralph_domain::outcome::HumanReason;

impl Driver {
    pub(crate) fn mitigate(&mut self, rung: Rung) -> Result<(), DriveError> {
        self.ctx.boundary("mitigate.before");
        let state = &self.ctx.state;
        let evidence = state.gutter.as_ref().map(|g| g.evidence.join("; ")).unwrap_or_default();
        let tried: Vec<String> = state
            .history
            .iter()
            .rev()
            .take(3)
            .filter(|i| !i.message.is_empty())
            .map(|i| format!("iteration {} ({}): {}", i.iteration, i.agent, i.message))
            .collect();
        match rung {
            Rung::Rotate => {
                let mut detail = format!(
                    "The loop is circling: {evidence}. Do not repeat what was tried. Find out why it fails before you change anything, and take another approach."
                );
                if !tried.is_empty() {
                    detail.push_str(&format!(" Tried and failed: {}.", tried.join("; ")));
                }
                self.ctx.record(EventBody::Mitigated { rung, detail })?;
            }
            Rung::Pause => {
                self.ctx.record(EventBody::Mitigated { rung, detail: evidence.clone() })?;
                let message = format!("circling, and a fresh session did not help: {evidence}");
                self.ctx.record(EventBody::NeedsHuman { reason: HumanReason::Stuck, message })?;
            }
        }
        self.ctx.flush()?;
        self.ctx.boundary("mitigate.after");
        Ok(())
    }
}
