//! Combines all observers of a run.

use jiff::Timestamp;
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::live::LivePayload;
use ralph_loop_protocol::event::Event;
use std::time::Duration;

/// Watches a run as it happens: a terminal, a server, a test.
pub trait Observer: Send {
    /// An event was journaled.
    fn event(&mut self, state: &RunState, event: &Event);
    /// Called several times a second while something runs.
    fn live(&mut self, state: &RunState, live: &SessionProgress<'_>);
    /// Redacted agent output.
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// A piece of redacted model text.
    fn token(&mut self, text: &str) {
        let _ = text;
    }
    /// A complete item of a session, such as a tool call with its result; redacted and bounded.
    fn shown(&mut self, state: &RunState, what: &LivePayload) {
        let _ = (state, what);
    }
    /// The run is about to be suspended: whether the user wants to end it permanently instead.
    fn ends_for_good(&mut self) -> bool {
        false
    }
    /// A named point between two effects. Tests end the process here.
    fn boundary(&mut self, name: &str) {
        let _ = name;
    }
}

/// Current activity, for a status line.
#[derive(Debug, Clone, Copy)]
pub struct SessionProgress<'a> {
    /// The current time.
    pub now: Timestamp,
    /// Duration of the current activity.
    pub elapsed: Duration,
    /// Time since the last output.
    pub silent: Option<Duration>,
    /// The agent's activity in one line, or the check's name.
    pub activity: &'a str,
}

/// Calls each observer in order.
pub(crate) struct Observers(Vec<Box<dyn Observer>>);

impl Observers {
    pub fn new(all: Vec<Box<dyn Observer>>) -> Self {
        Self(all)
    }

    pub fn add(&mut self, more: Vec<Box<dyn Observer>>) {
        self.0.extend(more);
    }

    pub fn into_all(self) -> Vec<Box<dyn Observer>> {
        self.0
    }

    pub fn event(&mut self, state: &RunState, event: &Event) {
        self.0.iter_mut().for_each(|one| one.event(state, event));
    }

    pub fn live(&mut self, state: &RunState, live: &SessionProgress<'_>) {
        self.0.iter_mut().for_each(|one| one.live(state, live));
    }

    pub fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.0.iter_mut().for_each(|one| one.output(stream, bytes));
    }

    pub fn token(&mut self, text: &str) {
        self.0.iter_mut().for_each(|one| one.token(text));
    }

    pub fn shown(&mut self, state: &RunState, what: &LivePayload) {
        self.0.iter_mut().for_each(|one| one.shown(state, what));
    }

    pub fn ends_for_good(&mut self) -> bool {
        self.0.iter_mut().any(|one| one.ends_for_good())
    }

    pub fn boundary(&mut self, name: &str) {
        self.0.iter_mut().for_each(|one| one.boundary(name));
    }
}
