//! Follows a journal: history and live events in one interface, so that nothing is lost between them.

use crate::error::JournalError;
use crate::journal::tail::Tail;
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::id::Seq;
use std::path::Path;

/// Reads the events of a journal from a sequence number on, and keeps reading. For the run's live output as well:
/// [`crate::live::stream::RunStream`].
#[derive(Debug)]
pub struct Follower {
    tail: Tail,
}

impl Follower {
    /// Follows from the event after `after`; `Seq(0)` gives all.
    pub fn new(journal: &Path, after: Seq) -> Self {
        Self { tail: Tail::new(journal, after.next()) }
    }

    /// The events since the last call, complete lines only.
    pub fn poll(&mut self) -> Result<Vec<Event>, JournalError> {
        let mut events = Vec::new();
        self.tail.poll(usize::MAX, &mut |line| events.push(line.event))?;
        Ok(events)
    }
}
