//! What a run shows while it works, on its way to whoever watches from another process; and resting until somebody
//! sends a word. None of it can fail a run.

use crate::context::Context;
use ralph_loop_journal::live::{LiveBody, LivePosition, LiveStream};
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

    /// A piece of text, without secrets.
    pub fn show_text(&mut self, stream: &LiveStream, clean: &[u8]) {
        if !clean.is_empty() {
            self.live.text(self.position(), stream, clean);
        }
    }

    /// Something that is whole at once, without secrets and in bounds.
    pub fn show(&mut self, body: &LiveBody) {
        self.live.note(self.position(), body);
        self.observer.shown(&self.state, body);
    }

    /// Lets this much time pass, or less where somebody puts a letter into the inbox meanwhile.
    pub fn rest(&mut self, length: Duration) {
        self.live.flush();
        match &self.waker {
            Some(waker) => self.clock.pause_by(length, &mut |length| waker.wait(length)),
            None => self.clock.pause(length),
        }
    }
}
