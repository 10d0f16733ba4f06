//! `live.jsonl`: a run's live output, for watchers in other processes.
//!
//! Agent text, tool calls, output of checks and token counts are too many for the journal and decide nothing, so they
//! are in a separate bounded file that nothing depends on. [`LiveLog`] is its writer: it collects output, writes at
//! most ten times a second, and ignores failed writes. [`crate::live::stream::RunStream`] reads it together with the
//! events.

pub mod follow;
pub(crate) mod live_read;
pub(crate) mod live_record;
pub mod stream;
pub mod wake;

use crate::folder::layout::RunDir;

use crate::folder::plain;
pub use crate::live::live_read::last_number;
pub use crate::live::live_record::{LIVE_MAX, LivePayload, LiveRecord};
use jiff::Timestamp;
use ralph_loop_protocol::id::Seq;
use std::io::Write as _;
use std::time::Duration;

const PACE: Duration = Duration::from_millis(100);
const RECORD_MAX: usize = 4 * 1024;
/// Most bytes written at once; the rest of a flood is counted and left out.
const BURST_MAX: usize = 32 * 1024;

/// The time and position in a run of a live record.
#[derive(Debug, Clone, Copy)]
pub struct LivePosition {
    pub at: Timestamp,
    /// A monotonic reading of the same clock.
    pub elapsed: Duration,
    pub seq: Seq,
    /// The current iteration; 0 if there is none.
    pub iteration: u32,
}

/// One stream of live text: the agent's words, its stderr, or a check's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveStream {
    Agent,
    Stderr,
    Check(String),
}

impl LiveStream {
    fn says(&self, text: String) -> LivePayload {
        match self {
            Self::Agent => LivePayload::Text { text },
            Self::Stderr => LivePayload::Stderr { text },
            Self::Check(check) => LivePayload::CheckOutput { check: check.clone(), text },
        }
    }
}

/// Writes `live.jsonl`. Only the run's driver has one.
#[derive(Debug)]
pub struct LiveLog {
    run: RunDir,
    n: Option<u64>,
    pending: Vec<u8>,
    open: Option<(LiveStream, LivePosition, Vec<u8>)>,
    left_out: Option<(LivePosition, u64)>,
    written_at: Duration,
}

impl LiveLog {
    /// For this run. Opens no file before the first write.
    pub fn new(run: &RunDir) -> Self {
        Self {
            run: run.clone(),
            n: None,
            pending: Vec::new(),
            open: None,
            left_out: None,
            written_at: Duration::ZERO,
        }
    }

    /// Adds a piece of redacted text.
    pub fn text(&mut self, now: LivePosition, stream: &LiveStream, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.pending.len() >= BURST_MAX {
                let (_, bytes) = self.left_out.get_or_insert((now, 0));
                *bytes += rest.len() as u64;
                break;
            }
            let same =
                self.open.as_ref().is_some_and(|(open, since, _)| open == stream && since.seq == now.seq);
            if !same {
                self.close();
            }
            let (_, _, text) = self.open.get_or_insert_with(|| (stream.clone(), now, Vec::new()));
            let (piece, more) = rest.split_at(rest.len().min(RECORD_MAX.saturating_sub(text.len()).max(1)));
            text.extend_from_slice(piece);
            rest = more;
            if text.len() >= RECORD_MAX {
                self.cut();
            }
        }
        self.keep_pace(now.elapsed);
    }

    /// Adds a complete record, redacted and bounded.
    pub fn note(&mut self, now: LivePosition, body: &LivePayload) {
        self.close();
        if self.pending.len() < BURST_MAX {
            self.put(now, body);
        }
        self.keep_pace(now.elapsed);
    }

    pub fn keep_pace(&mut self, elapsed: Duration) {
        let waits = !self.pending.is_empty() || self.open.is_some() || self.left_out.is_some();
        if waits && elapsed.saturating_sub(self.written_at) >= PACE {
            self.written_at = elapsed;
            self.flush();
        }
    }

    /// Writes everything now. Called before an event is journaled, so that earlier output comes before it.
    pub fn flush(&mut self) {
        self.close();
        if let Some((since, bytes)) = self.left_out.take() {
            self.put(since, &LivePayload::LeftOut { bytes });
        }
        if self.pending.is_empty() {
            return;
        }
        let lines = std::mem::take(&mut self.pending);
        let _ = append(&self.run, &lines);
        // Reuses the buffer; frees a flood's.
        self.pending = lines;
        self.pending.clear();
        self.pending.shrink_to(8 * 1024);
    }

    /// Turns the growing text into a record; an unfinished character at its end begins the next one.
    fn cut(&mut self) {
        let Some((stream, since, mut text)) = self.open.take() else { return };
        let whole = whole_characters(&text);
        let rest = text.split_off(whole);
        self.put(since, &stream.says(String::from_utf8_lossy(&text).into_owned()));
        if !rest.is_empty() {
            self.open = Some((stream, since, rest));
        }
    }

    fn close(&mut self) {
        if let Some((stream, since, text)) = self.open.take() {
            self.put(since, &stream.says(String::from_utf8_lossy(&text).into_owned()));
        }
    }

    fn put(&mut self, now: LivePosition, body: &LivePayload) {
        let n = self.n.unwrap_or_else(|| live_read::last_number(&self.run)) + 1;
        self.n = Some(n);
        let LivePosition { at, seq, iteration, .. } = now;
        let record = LiveRecord { n, at, seq, iteration, body: body.clone() };
        if serde_json::to_writer(&mut self.pending, &record).is_ok() {
            self.pending.push(b'\n');
        }
    }
}

impl Drop for LiveLog {
    fn drop(&mut self) {
        self.flush();
    }
}

/// How much of `text` is whole characters.
fn whole_characters(text: &[u8]) -> usize {
    let window = text.len().saturating_sub(3);
    let starts = (window..text.len()).rev().find(|at| text[*at] >= 0xC0);
    match starts {
        Some(at) if std::str::from_utf8(&text[at..]).is_err_and(|e| e.error_len().is_none()) => at,
        _ => text.len(),
    }
}

/// Appends whole records. Only the run's driver does, or who copies them to a machine without one.
pub fn append(run: &RunDir, lines: &[u8]) -> std::io::Result<()> {
    let path = run.live();
    let mut file = plain::append(&path)?;
    let mut length = file.metadata()?.len();
    if length > LIVE_MAX {
        std::fs::rename(&path, run.live_before())?;
        file = plain::append(&path)?;
        length = 0;
    }
    let torn = length > 0 && !live_read::ends_whole(&file, length);
    let written = if torn { file.write_all(b"\n") } else { Ok(()) }.and_then(|()| file.write_all(lines));
    written.inspect_err(|_| {
        // A full disk must not leave half a record behind.
        let _ = file.set_len(length);
    })
}
