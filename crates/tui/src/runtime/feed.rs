//! Feeds a watched run's output to the model in batches, so that a flood of output never delays a key.

use super::Inbound;
use crate::data::{Happened, ToneLine};
use crate::log::Kind;
use crate::msg::{Live, Msg};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ralph_loop_journal::live::LivePayload;
use ralph_loop_journal::live::stream::StreamItem;
use ralph_loop_protocol::describe::{describe_in, details};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::money::in_session::SessionCost;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// Batch size, which bounds how long a key waits.
const BATCH_MAX: usize = 64 * 1024;

/// One watch of one run, valid while it is the latest.
pub struct Feed {
    pub(super) to: Sender<Inbound>,
    /// The current watch's number, and our own.
    pub(super) counts: Arc<AtomicU64>,
    pub(super) turn: u64,
    pub(super) zone: TimeZone,
}

impl Feed {
    /// Whether this watch is still current.
    pub fn is_wanted(&self) -> bool {
        self.counts.load(Ordering::Acquire) == self.turn
    }

    /// Sends items in batches; returns whether the watch is current.
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
                    let lines = shown(record.at, &record.body);
                    bytes += match &lines {
                        Some(Live::Piece(_, text) | Live::Line(_, text) | Live::Result(_, text)) => {
                            text.len()
                        }
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

    /// Sends a message and waits until it is handled; returns whether the watch is current.
    pub fn hand_over(&self, msg: Msg) -> bool {
        let (taken, wait) = std::sync::mpsc::channel();
        self.is_wanted() && self.to.send(Inbound::Batch(msg, taken)).is_ok() && wait.recv().is_ok()
    }

    /// Sends a message without waiting.
    pub fn tell(&self, msg: Msg) {
        if self.is_wanted() {
            let _ = self.to.send(Inbound::Msg(msg));
        }
    }
}

/// A record as a line of a transcript; `None` if there is nothing to show.
pub fn shown(at: Timestamp, record: &LivePayload) -> Option<Live> {
    Some(match record {
        LivePayload::Text { text } => Live::Piece(Kind::Said, text.clone()),
        LivePayload::Stderr { text } => Live::Piece(Kind::Stderr, text.clone()),
        LivePayload::CheckOutput { text, .. } => Live::Piece(Kind::Check, text.clone()),
        LivePayload::ToolCall { name, what } if what.is_empty() => Live::Line(Kind::Did, name.clone()),
        LivePayload::ToolCall { what, .. } => Live::Line(Kind::Did, what.clone()),
        LivePayload::Activity { text } => Live::Line(Kind::Did, text.clone()),
        LivePayload::ToolResult { ok, text } => Live::Result(*ok, text.clone()),
        LivePayload::LeftOut { bytes } => {
            Live::Line(Kind::Note, format!("… {bytes} bytes left out; the logs have them"))
        }
        LivePayload::Tokens { cost_usd, .. } => Live::Spent(cost_usd.map(|sum| SessionCost { at, sum })),
        LivePayload::Unknown => return None,
    })
}
