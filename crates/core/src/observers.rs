//! Everybody who watches a run, as one.

use jiff::Timestamp;
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::live::LiveBody;
use ralph_loop_protocol::event::Event;
use std::time::Duration;

/// Watches a run as it happens: a terminal, a server, a test. A run may have several.
pub trait Observer: Send {
    /// Something was journalled.
    fn event(&mut self, state: &RunState, event: &Event);
    /// Called several times a second while something runs.
    fn live(&mut self, state: &RunState, live: &LiveStatus<'_>);
    /// Output of the agent, without secrets.
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// A piece of a model's text as it comes, without secrets.
    fn token(&mut self, text: &str) {
        let _ = text;
    }
    /// Something that a session does, whole at once: a tool call, what came of it. Without secrets and in bounds.
    fn shown(&mut self, state: &RunState, what: &LiveBody) {
        let _ = (state, what);
    }
    /// The run is about to be suspended: whether the person in front of it wants to end it for good instead.
    fn ends_for_good(&mut self) -> bool {
        false
    }
    /// A named place between two effects. Tests end the process here.
    fn boundary(&mut self, name: &str) {
        let _ = name;
    }
}

/// What a run does at this moment, for a status line.
#[derive(Debug, Clone, Copy)]
pub struct LiveStatus<'a> {
    /// The current time.
    pub now: Timestamp,
    /// How long the present thing has been going on.
    pub elapsed: Duration,
    /// Time since the last output, where there is output.
    pub silent: Option<Duration>,
    /// What the agent does, in one line, or the name of the check.
    pub activity: &'a str,
}

/// Tells each observer in turn, in the order they were handed over.
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

    pub fn live(&mut self, state: &RunState, live: &LiveStatus<'_>) {
        self.0.iter_mut().for_each(|one| one.live(state, live));
    }

    pub fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.0.iter_mut().for_each(|one| one.output(stream, bytes));
    }

    pub fn token(&mut self, text: &str) {
        self.0.iter_mut().for_each(|one| one.token(text));
    }

    pub fn shown(&mut self, state: &RunState, what: &LiveBody) {
        self.0.iter_mut().for_each(|one| one.shown(state, what));
    }

    /// Whether one of them wants to end the run for good that is about to be suspended.
    pub fn ends_for_good(&mut self) -> bool {
        self.0.iter_mut().any(|one| one.ends_for_good())
    }

    pub fn boundary(&mut self, name: &str) {
        self.0.iter_mut().for_each(|one| one.boundary(name));
    }
}
