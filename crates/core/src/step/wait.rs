//! Wait: for a rate limit or the user, in small steps so that controls are read. Waiting is neither an
//! iteration nor stagnation.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::observers::SessionProgress;
use crate::step::recorder::POLL;
use jiff::Timestamp;
use ralph_loop_domain::decide::{Step, decide};
use ralph_loop_domain::handover::Gate;
use ralph_loop_protocol::event::EventBody;

impl Driver {
    pub(crate) fn wait(&mut self, reason: &str, until: Option<Timestamp>) -> Result<(), DriveError> {
        let begun = self.ctx.clock.elapsed();
        self.ctx.record(EventBody::WaitStarted { reason: reason.to_owned(), until })?;
        self.ctx.flush()?;
        self.ctx.boundary("wait.started");
        let mut news = None;
        loop {
            let now = self.ctx.clock.now();
            self.ctx.state.tick(now);
            self.ctx.read_inbox()?;
            if self.ctx.suspend_by.is_some() || self.ctx.cancel.is_idle_requested() {
                break;
            }
            // A control, or the end of the wait, may change the next step.
            match decide(&self.ctx.state) {
                Step::Wait { until: still, .. } if still == until => {}
                _ => break,
            }
            if let Some(gate) = self.ctx.state.handover.gate.map(|facts| facts.gate)
                && self.ctx.cancel.take_refresh()
            {
                news = Some(gate);
                break;
            }
            let live = SessionProgress {
                now,
                elapsed: self.ctx.clock.elapsed() - begun,
                silent: None,
                activity: reason,
            };
            self.ctx.observer.live(&self.ctx.state, &live);
            self.ctx.rest(POLL);
        }
        let waited_ms = (self.ctx.clock.elapsed() - begun).as_millis() as u64;
        self.ctx.record(EventBody::WaitEnded { waited_ms })?;
        match news {
            Some(Gate::Checks) => self.read_checks(),
            Some(Gate::Review) => self.read_review(),
            None => Ok(()),
        }
    }
}
