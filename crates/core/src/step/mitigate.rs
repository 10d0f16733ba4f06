//! Mitigate: performs one recovery step.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use ralph_loop_domain::recovery::{self, Fallback};
use ralph_loop_protocol::event::{EventBody, Rung};
use ralph_loop_protocol::outcome::HumanReason;

impl Driver {
    pub(crate) fn mitigate(&mut self, rung: Rung) -> Result<(), DriveError> {
        self.ctx.boundary("mitigate.before");
        let detail = recovery::words(&self.ctx.state, rung);
        let (mut benched, mut substitute) = (None, None);
        match rung {
            Rung::Nudge | Rung::Rotate => {}
            Rung::Fallback => match recovery::fallback(&self.ctx.state) {
                Some(Fallback::Model { agent, model }) => substitute = Some((agent, model)),
                Some(Fallback::Agent { benched: agent, .. }) => benched = Some(agent),
                None => {}
            },
            // Runs the doctor again if a crash interrupted it before its report was journaled.
            Rung::Doctor if self.ctx.state.stuck.diagnosed_at != Some(self.ctx.state.iterations.count) => {
                self.diagnose()?
            }
            Rung::Doctor | Rung::Pause => {}
        }
        self.ctx.record(EventBody::Mitigated { rung, detail: detail.clone(), benched, substitute })?;
        if rung == Rung::Pause {
            let message = format!("stuck, and no recovery step helped: {detail}");
            self.ctx.record(EventBody::NeedsHuman { reason: HumanReason::Stuck, message })?;
        }
        self.ctx.flush()?;
        self.ctx.boundary("mitigate.after");
        Ok(())
    }
}
