//! Following a journal: history and live events through one door, so that nothing is lost between the two.

use crate::error::JournalError;
use crate::tail::Tail;
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::id::Seq;
use std::path::Path;

/// Reads the events of a journal from a sequence number on, and goes on reading what is appended. With the live output
/// of the run: [`crate::stream::RunStream`].
#[derive(Debug)]
pub struct Follower {
    tail: Tail,
}

impl Follower {
    /// Follows from the event after `after`; `Seq(0)` gives all.
    pub fn new(journal: &Path, after: Seq) -> Self {
        Self { tail: Tail::new(journal, after.next()) }
    }

    /// The events that have come since the last call, complete lines only.
    pub fn poll(&mut self) -> Result<Vec<Event>, JournalError> {
        let mut events = Vec::new();
        self.tail.poll(usize::MAX, &mut |line| events.push(line.event))?;
        Ok(events)
    }
}
