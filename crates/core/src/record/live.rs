//! A run's live output for other processes, and waiting for controls. Failures never fail a run.

use crate::context::Context;
use ralph_loop_journal::live::{LivePayload, LivePosition, LiveStream};
use std::time::Duration;

impl Context {
    fn position(&self) -> LivePosition {
        LivePosition {
            at: self.clock.now(),
            elapsed: self.clock.elapsed(),
            seq: self.journal.seq(),
            iteration: self.state.iterations.current.as_ref().map_or(0, |c| c.iteration),
        }
    }

    /// Shows a piece of redacted text.
    pub fn show_text(&mut self, stream: &LiveStream, clean: &[u8]) {
        if !clean.is_empty() {
            self.live.text(self.position(), stream, clean);
        }
    }

    /// Shows a complete, redacted and bounded item.
    pub fn show(&mut self, body: &LivePayload) {
        self.live.note(self.position(), body);
        self.observer.shown(&self.state, body);
    }

    /// Waits for `length`, or less if a control arrives.
    pub fn rest(&mut self, length: Duration) {
        self.live.flush();
        match &self.waker {
            Some(waker) => self.clock.pause_by(length, &mut |length| waker.wait(length)),
            None => self.clock.pause(length),
        }
    }
}
