//! Combines a caller's callbacks into one observer. They run in order on the driving thread; slow callbacks
//! should hand over to a channel.

use super::result::LoopResult;
use super::turn::Turn;
use crate::handle::{RalphStatus, RunHandle};
use crate::observers::{Observer, SessionProgress};
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::outcome::RunError;
use std::sync::Arc;

type Calls<T> = Vec<Arc<dyn Fn(&T) + Send + Sync>>;

#[derive(Default, Clone)]
pub(super) struct Callbacks {
    pub(super) event: Calls<Event>,
    pub(super) token: Calls<str>,
    pub(super) update: Calls<RalphStatus>,
    pub(super) complete: Calls<LoopResult>,
    pub(super) error: Calls<RunError>,
}

impl Callbacks {
    /// Reports the result.
    pub(super) fn ended(&self, result: &LoopResult) {
        if result.success {
            self.complete.iter().for_each(|call| call(result));
        }
        if let Some(error) = &result.run.error {
            self.error.iter().for_each(|call| call(error));
        }
    }
}

/// Forwards a run to callbacks and streams.
pub(super) struct CallbackObserver {
    pub(super) callbacks: Callbacks,
    /// Wakes event streams.
    pub(super) wake: Box<dyn Fn() + Send>,
    pub(super) record: Arc<dyn Fn() -> Option<RunDir> + Send + Sync>,
    /// A panicking closure suspends the run cleanly, so that it can be resumed.
    pub(super) turn: Turn,
}

impl Observer for CallbackObserver {
    fn event(&mut self, _: &RunState, event: &Event) {
        self.turn.call(|| self.callbacks.event.iter().for_each(|call| call(event)));
        let over = matches!(event.body, EventBody::IterationEnded { .. } | EventBody::Finished { .. });
        if over
            && !self.callbacks.update.is_empty()
            && let Some(record) = (self.record)()
            && let Ok(status) = RunHandle::new(record, "library").status()
        {
            self.turn.call(|| self.callbacks.update.iter().for_each(|call| call(&status)));
        }
        (self.wake)();
    }

    fn live(&mut self, _: &RunState, _: &SessionProgress<'_>) {}

    fn output(&mut self, _: Stream, _: &[u8]) {}

    fn token(&mut self, text: &str) {
        self.turn.call(|| self.callbacks.token.iter().for_each(|call| call(text)));
    }
}
