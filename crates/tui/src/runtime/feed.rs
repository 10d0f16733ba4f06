//! From whoever watches a run to the model: one batch at a time, so that a flood of output never keeps a key waiting.

use super::Inbound;
use crate::data::{Happened, ToneLine};
use crate::log::Kind;
use crate::msg::{Live, Msg};
use jiff::tz::TimeZone;
use ralph_loop_journal::live::{LiveBody, LiveRecord};
use ralph_loop_journal::stream::StreamItem;
use ralph_loop_protocol::describe::{describe_in, details};
use ralph_loop_protocol::in_session::SessionCost;
use ralph_loop_protocol::text::one_line;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// Bytes of output that are taken at once: a key waits no longer than that takes.
const BATCH_MAX: usize = 64 * 1024;

/// One watch of one run, as long as it is the latest.
pub struct Feed {
    pub(super) to: Sender<Inbound>,
    /// The number of the watch that counts, and our own.
    pub(super) counts: Arc<AtomicU64>,
    pub(super) turn: u64,
    pub(super) zone: TimeZone,
}

impl Feed {
    /// Whether anybody wants more.
    pub fn is_wanted(&self) -> bool {
        self.counts.load(Ordering::Acquire) == self.turn
    }

    /// Hands items over in batches; whether anybody wants more.
    pub fn items(&self, items: &[StreamItem]) -> bool {
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
                    let Some((tone, words)) = describe_in(&line.event, Some(&self.zone)) else { continue };
                    let details = details(&line.event).iter().map(|line| one_line(line, 300)).collect();
                    happened.push(Happened { at: line.event.at, line: ToneLine::new(tone, words), details });
                }
                StreamItem::Live(record) => {
                    let lines = shown(record);
                    bytes += match &lines {
                        Some(Live::Piece(_, text) | Live::Line(_, text)) => text.len(),
                        Some(Live::Spent(_)) | None => 0,
                    };
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
    pub fn hand_over(&self, msg: Msg) -> bool {
        let (taken, wait) = std::sync::mpsc::channel();
        self.is_wanted() && self.to.send(Inbound::Batch(msg, taken)).is_ok() && wait.recv().is_ok()
    }

    /// Tells something that nobody waits for.
    pub fn tell(&self, msg: Msg) {
        if self.is_wanted() {
            let _ = self.to.send(Inbound::Msg(msg));
        }
    }
}

/// A live record as lines of the log; nothing where it says nothing to people.
fn shown(record: &LiveRecord) -> Option<Live> {
    Some(match &record.body {
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
        LiveBody::Tokens { cost_usd, .. } => {
            Live::Spent(cost_usd.map(|sum| SessionCost { at: record.at, sum }))
        }
        LiveBody::ToolResult { .. } | LiveBody::Unknown => return None,
    })
}
