//! Watches a run of any process on this machine: its events and its live output, in one order, from any point, each
//! once.
//!
//! It doesn't need the driving process; a reader checks the sizes of two files. Live output comes after the event
//! that it followed and before the next one.

use crate::error::JournalError;
use crate::folder::layout::RunDir;
use crate::journal::tail::{JournalLine, Tail};
use crate::live::LiveRecord;
use crate::live::live_read::LiveReader;
use crate::live::wake::pause;
use ralph_loop_protocol::id::Seq;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const BATCH: usize = 512;
/// Most items that one call returns.
const MOST: usize = 2048;
/// Shortest and longest time between two checks while waiting.
const LOOKS: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(150));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStart {
    /// With the first event, and all live output that is still kept.
    Beginning,
    /// With the event of this number, and the live output since the one before it.
    From(Seq),
    Tail,
    After(Cursor),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Cursor {
    pub seq: Seq,
    /// The number of the last live record.
    pub live: u64,
}

/// One item of a run's stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    Event(Box<JournalLine>),
    Live(LiveRecord),
    /// So many live records were rotated away before they were read. Events are never missed.
    Missed(u64),
}

#[derive(Debug)]
pub struct RunStream {
    events: Tail,
    live: Option<LiveReader>,
    /// Read, but not returned yet.
    lines: VecDeque<JournalLine>,
    shown: VecDeque<PendingLive>,
    /// Whether all live output before the newest of `lines` has been read.
    caught_up: bool,
    seen: Cursor,
    /// Earlier live records are left out.
    not_before: Seq,
}

/// A live record, or how many are missing, and the event after which it is due.
#[derive(Debug)]
struct PendingLive {
    after: Seq,
    item: StreamItem,
}

impl RunStream {
    /// Opens the stream of a run. A run without a journal has no items so far.
    pub fn open(run: &RunDir, start: StreamStart) -> Result<Self, JournalError> {
        let journal = run.events();
        // The live log's position comes first: later output belongs to later events.
        let live = match start {
            StreamStart::Tail => LiveReader::new(run, None),
            StreamStart::After(cursor) => LiveReader::new(run, Some(cursor.live)),
            StreamStart::Beginning | StreamStart::From(_) => LiveReader::new(run, Some(0)),
        };
        let events = match start {
            StreamStart::Beginning => Tail::new(&journal, Seq(1)),
            StreamStart::From(seq) => Tail::new(&journal, seq),
            StreamStart::After(cursor) => Tail::new(&journal, cursor.seq.next()),
            StreamStart::Tail => Tail::at_end(&journal)?,
        };
        let seen = Cursor { seq: events.last(), live: live.last() };
        let not_before = match start {
            StreamStart::From(_) => events.last(),
            _ => Seq(0),
        };
        let (lines, shown) = (VecDeque::new(), VecDeque::new());
        Ok(Self { events, live: Some(live), lines, shown, caught_up: false, seen, not_before })
    }

    /// Only events: the live log isn't even opened.
    pub fn events_only(mut self) -> Self {
        self.live = None;
        self
    }

    /// What was returned so far; [`StreamStart::After`] continues from here.
    pub fn cursor(&self) -> Cursor {
        self.seen
    }

    /// A bounded part of what came since the last call; empty if nothing did. Never waits.
    pub fn poll(&mut self) -> Result<Vec<StreamItem>, JournalError> {
        if self.lines.is_empty() {
            let lines = &mut self.lines;
            self.events.poll(BATCH, &mut |line| lines.push_back(line))?;
            self.caught_up = false;
        }
        if self.shown.is_empty() {
            self.read_live();
        }
        let mut items = Vec::new();
        while items.len() < MOST {
            let due = match (self.lines.front(), self.shown.front()) {
                (Some(line), Some(shown)) if shown.after < line.event.seq => self.next_shown(),
                (Some(_), Some(_)) => self.next_line(),
                (Some(_), None) if self.caught_up => self.next_line(),
                (Some(_), None) => {
                    self.read_live();
                    continue;
                }
                (None, Some(shown)) if shown.after <= self.seen.seq => self.next_shown(),
                // Its event exists, but wasn't read yet: the next call has both.
                (None, _) => None,
            };
            match due {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(items)
    }

    /// Like [`Self::poll`], but waits for items, at most this long.
    pub fn wait(&mut self, timeout: Duration) -> Result<Vec<StreamItem>, JournalError> {
        let deadline = Instant::now() + timeout;
        let (mut look, longest) = LOOKS;
        loop {
            let items = self.poll()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !items.is_empty() || left.is_zero() {
                return Ok(items);
            }
            pause(look.min(left).max(Duration::from_millis(1)));
            look = (look * 2).min(longest);
        }
    }

    fn next_line(&mut self) -> Option<StreamItem> {
        let line = self.lines.pop_front()?;
        self.seen.seq = line.event.seq;
        Some(StreamItem::Event(Box::new(line)))
    }

    fn next_shown(&mut self) -> Option<StreamItem> {
        let shown = self.shown.pop_front()?;
        if let StreamItem::Live(record) = &shown.item {
            self.seen.live = record.n;
        }
        Some(shown.item)
    }

    fn read_live(&mut self) {
        let Some(live) = &mut self.live else {
            self.caught_up = true;
            return;
        };
        let read = live.poll();
        self.caught_up = read.to_end;
        let mut missed = read.missed;
        for record in read.records.into_iter().filter(|r| r.seq >= self.not_before) {
            let after = record.seq;
            // A later record of an earlier moment: the journal lost its end, and earlier output is due at once.
            self.shown.iter_mut().rev().take_while(|s| s.after > after).for_each(|s| s.after = after);
            if missed > 0 {
                let item = StreamItem::Missed(std::mem::take(&mut missed));
                self.shown.push_back(PendingLive { after, item });
            }
            self.shown.push_back(PendingLive { after, item: StreamItem::Live(record) });
        }
    }
}
