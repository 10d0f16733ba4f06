//! Following a journal: history and live events through one door, so that nothing is lost between the two.

use crate::error::JournalError;
use crate::read::read_from;
use ralph_domain::event::Event;
use ralph_domain::id::Seq;
use std::path::{Path, PathBuf};

/// Reads a journal from a sequence number on, and goes on reading what is appended.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    at: u64,
    after: Seq,
}

impl Follower {
    /// Follows from the event after `after`; `Seq(0)` gives all.
    pub fn new(journal: &Path, after: Seq) -> Self {
        Self { path: journal.to_owned(), at: 0, after }
    }

    /// Follows from a known place: the byte and sequence number of a snapshot.
    pub fn resume(journal: &Path, at: u64, after: Seq) -> Self {
        Self { path: journal.to_owned(), at, after }
    }

    /// The events that have come since the last call, complete lines only.
    pub fn poll(&mut self) -> Result<Vec<Event>, JournalError> {
        let length = match std::fs::metadata(&self.path) {
            Ok(meta) => meta.len(),
            // Gone for a moment (an agent's `git clean`); it will be back.
            Err(_) => return Ok(Vec::new()),
        };
        if length == self.at {
            return Ok(Vec::new());
        }
        if length < self.at {
            // A torn tail was cut, or the file was made anew: read again and skip what was seen.
            self.at = 0;
        }
        let mut events = Vec::new();
        let after = self.after;
        self.at = read_from(&self.path, self.at, &mut |event| {
            if event.seq > after {
                events.push(event);
            }
        })?;
        if let Some(last) = events.last() {
            self.after = last.seq;
        }
        Ok(events)
    }
}
