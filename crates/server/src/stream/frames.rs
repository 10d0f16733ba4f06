//! Frames on the wire, one JSON object each.

use jiff::tz::TimeZone;
use ralph_loop_journal::journal::tail::JournalLine;
use ralph_loop_journal::live::LiveRecord;
use ralph_loop_protocol::describe::{Tone, describe_in};
use serde_json::Value;

/// A tone as a word.
pub fn tone_word(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Muted => "muted",
        Tone::Good => "good",
        Tone::Attention => "attention",
        Tone::Bad => "bad",
    }
}

/// A journaled event with its sentence.
pub fn event_frame(line: &JournalLine, zone: &TimeZone) -> String {
    let said = describe_in(&line.event, Some(zone));
    let tone = said.as_ref().map_or("muted", |(tone, _)| tone_word(*tone));
    let text = said.map_or(Value::Null, |(_, text)| Value::String(text));
    // The line is already JSON; unknown newer events pass through.
    format!(
        "{{\"type\":\"event\",\"seq\":{},\"event\":{},\"text\":{text},\"tone\":\"{tone}\"}}",
        line.event.seq, line.text
    )
}

/// A live record.
pub(super) fn output_frame(record: &LiveRecord) -> String {
    let mut frame = serde_json::to_value(record).unwrap_or_default();
    if let Some(fields) = frame.as_object_mut() {
        let after = fields.remove("seq").unwrap_or_default();
        fields.insert("after".to_owned(), after);
        fields.insert("type".to_owned(), "output".into());
        fields.entry("iteration").or_insert(0.into());
    }
    frame.to_string()
}

/// Reports dropped output.
pub(super) fn missed_frame(records: u64) -> String {
    format!("{{\"type\":\"missed\",\"records\":{records}}}")
}

/// Tells a slow client where to read again.
pub(super) fn reread_frame(from: u64) -> String {
    format!("{{\"type\":\"reread\",\"from\":{from}}}")
}
