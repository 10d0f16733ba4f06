//! What a run shows while it works, as lines of a terminal: agent text, tool calls, output of checks.

use crate::output::Out;
use ralph_loop_journal::live::{LiveBody, LiveRecord};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::text::count;

/// Characters of a line that never ends.
const LINE_MAX: usize = 2000;

/// Prints live records; text that comes in pieces becomes whole lines again.
#[derive(Debug, Default)]
pub struct LivePrinter {
    /// A line that still grows.
    line: String,
}

impl LivePrinter {
    /// Prints one record.
    pub fn print(&mut self, record: &LiveRecord, out: &Out) {
        match &record.body {
            LiveBody::Text { text } | LiveBody::Stderr { text } | LiveBody::CheckOutput { text, .. } => {
                self.text(text, out);
            }
            LiveBody::ToolCall { name, what } if what.is_empty() => self.whole(&format!("> {name}"), out),
            LiveBody::ToolCall { what, .. } => self.whole(&format!("> {what}"), out),
            LiveBody::ToolResult { ok: false, text } => self.whole(&format!("! {text}"), out),
            LiveBody::Activity { text } => self.whole(&format!("> {text}"), out),
            LiveBody::LeftOut { bytes } => self.whole(&format!("… {bytes} bytes left out"), out),
            // What worked is seen by what follows; tokens are told at the session's end.
            LiveBody::ToolResult { .. } | LiveBody::Tokens { .. } | LiveBody::Unknown => {}
        }
    }

    /// Says that records were put away before they were read.
    pub fn missed(&mut self, records: u64, out: &Out) {
        let records = usize::try_from(records).unwrap_or(usize::MAX);
        self.whole(&format!("… {} no longer kept", count(records, "live record")), out);
    }

    /// Something else is printed next: what has come of a line stands for itself.
    pub fn end(&mut self, out: &Out) {
        let line = std::mem::take(&mut self.line);
        if !line.trim().is_empty() {
            out.line(out.out(Tone::Muted, &format!("         | {}", line.trim_end())));
        }
    }

    fn whole(&mut self, text: &str, out: &Out) {
        self.end(out);
        self.text(text, out);
        self.end(out);
    }

    /// Whole lines go to the printer, which makes them safe.
    fn text(&mut self, text: &str, out: &Out) {
        for c in text.chars() {
            match c {
                '\n' => self.end(out),
                c => self.line.push(c),
            }
            if self.line.len() >= LINE_MAX {
                self.end(out);
            }
        }
    }
}
