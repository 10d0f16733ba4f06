//! Everybody who watches a run, as one.

use crate::context::{Live, Observer};
use ralph_domain::event::Event;
use ralph_domain::ports::Stream;
use ralph_domain::state::RunState;

/// Tells each observer in turn, in the order they were handed over.
pub(crate) struct Observers(Vec<Box<dyn Observer>>);

impl Observers {
    pub fn new(all: Vec<Box<dyn Observer>>) -> Self {
        Self(all)
    }

    pub fn event(&mut self, state: &RunState, event: &Event) {
        self.0.iter_mut().for_each(|one| one.event(state, event));
    }

    pub fn live(&mut self, state: &RunState, live: &Live<'_>) {
        self.0.iter_mut().for_each(|one| one.live(state, live));
    }

    pub fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.0.iter_mut().for_each(|one| one.output(stream, bytes));
    }

    pub fn token(&mut self, text: &str) {
        self.0.iter_mut().for_each(|one| one.token(text));
    }

    /// Whether one of them wants to end the run for good that is about to be suspended.
    pub fn ends_for_good(&mut self) -> bool {
        self.0.iter_mut().any(|one| one.ends_for_good())
    }

    pub fn boundary(&mut self, name: &str) {
        self.0.iter_mut().for_each(|one| one.boundary(name));
    }
}
