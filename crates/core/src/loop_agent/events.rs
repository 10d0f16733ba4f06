//! A run's events as a stream, read from the journal: none is missed however late it starts, and none is kept
//! in memory.

use super::shared::Shared;
use futures_core::Stream;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::live::stream::{RunStream, StreamItem, StreamStart};
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::id::Seq;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A run's events from the first one on. Ends when the run is over, suspended or waiting for the user; a
/// later stream continues.
pub struct EventStream {
    shared: Arc<Shared>,
    reader: Option<RunStream>,
    ready: VecDeque<Event>,
    last: Seq,
    failed: bool,
}

impl EventStream {
    pub(super) fn new(shared: Arc<Shared>, after: Seq) -> Self {
        Self { shared, reader: None, ready: VecDeque::new(), last: after, failed: false }
    }

    /// The last event's number, for [`LoopAgent::events_after`](super::LoopAgent::events_after).
    pub fn last(&self) -> Seq {
        self.last
    }

    fn read(&mut self) -> Result<(), JournalError> {
        if self.reader.is_none()
            && let Some(record) = self.shared.record()
        {
            self.reader = Some(RunStream::open(&record, StreamStart::From(self.last.next()))?.events_only());
        }
        let Some(reader) = &mut self.reader else { return Ok(()) };
        for item in reader.poll()? {
            if let StreamItem::Event(line) = item {
                self.ready.push_back(line.event);
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("last", &self.last).finish_non_exhaustive()
    }
}

impl Stream for EventStream {
    type Item = Result<Event, JournalError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.failed {
            return Poll::Ready(None);
        }
        if self.ready.is_empty() {
            // Query this first, so that everything journaled before the run stopped is seen.
            let rests = self.shared.rests_or_wakes(cx.waker());
            if let Err(error) = self.read() {
                self.failed = true;
                return Poll::Ready(Some(Err(error)));
            }
            if self.ready.is_empty() {
                return if rests { Poll::Ready(None) } else { Poll::Pending };
            }
        }
        let next = self.ready.pop_front();
        if let Some(event) = &next {
            self.last = event.seq;
        }
        Poll::Ready(next.map(Ok))
    }
}
