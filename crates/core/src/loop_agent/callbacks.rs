//! What a caller wants to hear of a run, as one observer. All of it is called by the thread that drives the run, in the order in
//! which things happen; whoever has much to do with it hands it to a channel.

use super::result::LoopResult;
use super::turn::Turn;
use crate::handle::{RalphStatus, RunHandle};
use crate::observers::{LiveStatus, Observer};
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::layout::RunDir;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::outcome::RunError;
use std::sync::Arc;

/// Closures that are told one thing.
type Calls<T> = Vec<Arc<dyn Fn(&T) + Send + Sync>>;

/// Closures, each called in turn.
#[derive(Default, Clone)]
pub(super) struct Callbacks {
    pub(super) event: Calls<Event>,
    pub(super) token: Calls<str>,
    pub(super) update: Calls<RalphStatus>,
    pub(super) complete: Calls<LoopResult>,
    pub(super) error: Calls<RunError>,
}

impl Callbacks {
    /// Tells how the run ended.
    pub(super) fn ended(&self, result: &LoopResult) {
        if result.success {
            self.complete.iter().for_each(|call| call(result));
        }
        if let Some(error) = &result.run.error {
            self.error.iter().for_each(|call| call(error));
        }
    }
}

/// Hears a run for its callbacks and its streams.
pub(super) struct CallbackObserver {
    pub(super) callbacks: Callbacks,
    /// Wakes whoever awaits events.
    pub(super) wake: Box<dyn Fn() + Send>,
    pub(super) record: Arc<dyn Fn() -> Option<RunDir> + Send + Sync>,
    /// A closure that breaks suspends the run in good order, so that it can go on.
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

    fn live(&mut self, _: &RunState, _: &LiveStatus<'_>) {}

    fn output(&mut self, _: Stream, _: &[u8]) {}

    fn token(&mut self, text: &str) {
        self.turn.call(|| self.callbacks.token.iter().for_each(|call| call(text)));
    }
}
