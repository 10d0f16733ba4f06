//! Watching one run: its stream and how it stands. One batch at a time, so that a flood of output never keeps a key waiting.

use super::Inbound;
use crate::data::{Happened, ToneLine};
use crate::log::Kind;
use crate::msg::{Live, Msg};
use ralph_app::facts::RunReading;
use ralph_app::{App, AppError};
use ralph_domain::describe::{describe_in, details};
use ralph_domain::text::one_line;
use ralph_journal::live::LiveBody;
use ralph_journal::registry::Registration;
use ralph_journal::stream::{RunStream, StreamItem, StreamStart};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How often it is looked how a run stands: while a process drives it, and while none does.
const LOOKS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3));
/// Bytes of output that are taken at once: a key waits no longer than that takes.
const BATCH_MAX: usize = 64 * 1024;
/// Longest wait for something new.
const WAIT: Duration = Duration::from_millis(500);

/// Watches one run at a time.
pub struct Watcher {
    app: App,
    folder: PathBuf,
    to: Sender<Inbound>,
    /// The number of the watch that counts.
    turn: Arc<AtomicU64>,
}

impl Watcher {
    /// Messages go to `to`.
    pub fn new(app: App, folder: &Path, to: Sender<Inbound>) -> Self {
        Self { app, folder: folder.to_owned(), to, turn: Arc::default() }
    }

    /// Watches this run, and no other.
    pub fn watch(&self, run: String) {
        let turn = self.turn.fetch_add(1, Ordering::AcqRel) + 1;
        let watch = Watch {
            app: self.app.clone(),
            folder: self.folder.clone(),
            to: self.to.clone(),
            counts: self.turn.clone(),
            turn,
        };
        std::thread::spawn(move || {
            if let Err(error) = watch.follow(&run) {
                let _ = watch.to.send(Inbound::Msg(Msg::ViewFailed(error.into())));
            }
        });
    }

    /// Watches none.
    pub fn stop(&self) {
        self.turn.fetch_add(1, Ordering::AcqRel);
    }
}

struct Watch {
    app: App,
    folder: PathBuf,
    to: Sender<Inbound>,
    counts: Arc<AtomicU64>,
    turn: u64,
}

impl Watch {
    fn is_wanted(&self) -> bool {
        self.counts.load(Ordering::Acquire) == self.turn
    }

    fn follow(&self, run: &str) -> Result<(), AppError> {
        let entry = self.app.open(&self.folder, Some(run))?.entry;
        let mut driven = self.look(&entry)?;
        let mut looked = Instant::now();
        let mut stream = RunStream::open(&entry.run_dir(), StreamStart::Beginning)?;
        while self.is_wanted() {
            let items = stream.wait(WAIT)?;
            let events = items.iter().any(|item| matches!(item, StreamItem::Event(_)));
            if !items.is_empty() && !self.hand_on(&items) {
                return Ok(());
            }
            let due = if driven { LOOKS.0 } else { LOOKS.1 };
            if events || looked.elapsed() >= due {
                driven = self.look(&entry)?;
                looked = Instant::now();
            }
        }
        Ok(())
    }

    /// Tells how the run stands; whether a process drives it.
    fn look(&self, entry: &Registration) -> Result<bool, AppError> {
        let reading = RunReading::load(self.app.environment(), entry.clone())?;
        let view = reading.view();
        if view.status.is_over() {
            reading.mark_seen();
        }
        let driven = view.driven;
        self.hand_over(Msg::View(Box::new(view)));
        Ok(driven)
    }

    fn hand_on(&self, items: &[StreamItem]) -> bool {
        let zone = self.app.environment().zone();
        let (mut happened, mut live, mut bytes) = (Vec::new(), Vec::new(), 0);
        for item in items {
            if bytes > BATCH_MAX {
                bytes = 0;
                if !self.hand_over(Msg::Told(std::mem::take(&mut happened), std::mem::take(&mut live))) {
                    return false;
                }
            }
            match item {
                StreamItem::Event(line) => {
                    let Some((tone, words)) = describe_in(&line.event, Some(&zone)) else { continue };
                    let details = details(&line.event).iter().map(|line| one_line(line, 300)).collect();
                    happened.push(Happened { at: line.event.at, line: ToneLine::new(tone, words), details });
                }
                StreamItem::Live(record) => {
                    let lines = shown(&record.body);
                    bytes +=
                        lines.as_ref().map_or(0, |(Live::Piece(_, text) | Live::Line(_, text))| text.len());
                    live.extend(lines);
                }
                StreamItem::Missed(records) => {
                    live.push(Live::Line(Kind::Note, format!("… {records} records are no longer kept")));
                }
            }
        }
        self.hand_over(Msg::Told(happened, live))
    }

    /// Hands a message over and waits until it was taken; whether anybody wants more.
    fn hand_over(&self, msg: Msg) -> bool {
        let (taken, wait) = std::sync::mpsc::channel();
        self.is_wanted() && self.to.send(Inbound::Batch(msg, taken)).is_ok() && wait.recv().is_ok()
    }
}

/// A live record as lines of the log; nothing where it says nothing to people.
fn shown(body: &LiveBody) -> Option<Live> {
    Some(match body {
        LiveBody::Text { text } => Live::Piece(Kind::Said, text.clone()),
        LiveBody::Stderr { text } => Live::Piece(Kind::Stderr, text.clone()),
        LiveBody::CheckOutput { text, .. } => Live::Piece(Kind::Check, text.clone()),
        LiveBody::ToolCall { name, what } if what.is_empty() => Live::Line(Kind::Did, name.clone()),
        LiveBody::ToolCall { what, .. } => Live::Line(Kind::Did, what.clone()),
        LiveBody::Activity { text } => Live::Line(Kind::Did, text.clone()),
        LiveBody::ToolResult { ok: false, text } => Live::Line(Kind::Failed, text.clone()),
        LiveBody::LeftOut { bytes } => {
            Live::Line(Kind::Note, format!("… {bytes} bytes left out; the logs have them"))
        }
        LiveBody::ToolResult { .. } | LiveBody::Tokens(_) | LiveBody::Unknown => return None,
    })
}
