//! One answer in the format of each wire.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use super::ask::{Ask, Wire};
use super::script::{Stop, Usage};
use super::tools::Part;
use serde_json::Value;

#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub id: String,
    pub model: String,
    pub parts: Vec<Part>,
    pub stop: Stop,
    pub usage: Usage,
}

impl Reply {
    fn calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call(_)))
    }
    fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Call(_) => None,
        });
        texts.collect()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Event {
    pub name: Name,
    pub data: String,
}

/// The line before an event's data.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name {
    Is(&'static str),
    /// Only `data:`, on wires without event names.
    None,
    /// Nothing: plain JSON instead of an event.
    Bare,
}

impl Event {
    fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Name::Is(name), data: data.to_string() }
    }
    fn plain(data: &Value) -> Self {
        Self { name: Name::None, data: data.to_string() }
    }
    pub(super) fn lines(&self) -> String {
        match self.name {
            Name::Is(name) => format!("event: {name}\ndata: {}\n\n", self.data),
            Name::Bare => format!("{}\n", self.data),
            Name::None => format!("data: {}\n\n", self.data),
        }
    }
}

pub(super) fn plain(reply: &Reply, wire: Wire) -> Value {
    match wire {
        Wire::Anthropic => anthropic::plain(reply),
        Wire::Responses => responses::plain(reply),
        Wire::Chat => chat::plain(reply),
        Wire::Gemini => gemini::plain(reply),
    }
}

pub(super) fn events(reply: &Reply, ask: &Ask) -> Vec<Event> {
    match ask.wire {
        Wire::Anthropic => anthropic::events(reply),
        Wire::Responses => responses::events(reply),
        Wire::Chat => chat::events(reply, ask.stream_usage),
        Wire::Gemini => gemini::events(reply),
    }
}

/// The first event of an answer, then this error, as in a stream that fails midway.
pub(super) fn failing_events(reply: &Reply, ask: &Ask, error: &Value) -> Vec<Event> {
    let mut events = match ask.wire {
        // Its first event may be the whole answer.
        Wire::Gemini => vec![gemini::begun(reply)],
        _ => events(reply, ask),
    };
    events.truncate(1);
    events.push(match ask.wire {
        Wire::Anthropic => Event::named("error", error),
        Wire::Responses => responses::failed(reply, error),
        Wire::Chat => Event::plain(error),
        // As the vendor's SDK expects it: not an event, and in a separate write.
        Wire::Gemini => Event { name: Name::Bare, data: error.to_string() },
    });
    events
}

/// Text longer than this stays in one piece, so that a very long line arrives as one event.
const SPLIT_MAX: usize = 16 * 1024;

/// Splits a text into three stream chunks at any position, even within a word or a promise.
fn pieces(text: &str) -> Vec<&str> {
    if text.len() > SPLIT_MAX {
        return vec![text];
    }
    let cut =
        |wanted: usize| (wanted..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let (first, second) = (cut(text.len() / 3), cut(text.len() * 2 / 3));
    let all = [&text[..first], &text[first..second], &text[second..]];
    all.into_iter().filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_same_text() {
        for text in ["", "a", "ünïcödé", "All work is finished.\n\n<promise>COMPLETE</promise>"] {
            assert_eq!(pieces(text).concat(), text);
        }
        assert!(pieces("<promise>COMPLETE</promise>").len() > 1, "a promise is split");
    }
}
