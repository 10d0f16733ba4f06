//! The life cycle of a run's sandboxes in the journal.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use ralph_loop_domain::ports::{Dismissal, SandboxEvent};
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::outcome::EndReason;

impl Driver {
    /// Journals sandbox events since the last call.
    pub(crate) fn record_sandbox_events(&mut self) -> Result<(), DriveError> {
        let news = self.keeper.as_ref().map(|keeper| keeper.news()).unwrap_or_default();
        for news in news {
            match news {
                SandboxEvent::Ready(made) => self.ctx.record(EventBody::SandboxReady(made)).map(drop)?,
                SandboxEvent::Gone(gone) => self.ctx.record(EventBody::SandboxGone(gone)).map(drop)?,
                SandboxEvent::Notice(words) => {
                    let words = self.ctx.redactor.text(&words).into_owned();
                    self.ctx.notice(words)?;
                }
            }
        }
        Ok(())
    }

    /// Dismisses sandboxes at the end. A failed removal must not turn success into failure.
    pub(crate) fn dismiss_sandboxes(&mut self) {
        let Some(keeper) = &self.keeper else { return };
        let state = &self.ctx.state;
        let done = state.result.finished.as_ref().is_some_and(|end| {
            // An unsuccessful run must leave nothing unpushed.
            let pushed = state.handover.state.is_some() && state.handover.pushed == state.work.commit;
            end.reason == EndReason::Completed || pushed
        });
        keeper.dismiss(if done { Dismissal::Safe } else { Dismissal::Unfinished });
        self.record_sandbox_events().ok();
    }
}
