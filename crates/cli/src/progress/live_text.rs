//! A run's live output as terminal lines: agent text, tool calls, check output.

use crate::output::Out;
use ralph_loop_journal::live::{LivePayload, LiveRecord};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{count, tail_lines};

/// Length limit of an unfinished line.
const LINE_MAX: usize = 2000;

/// Prints live records, joining pieces of text into lines.
#[derive(Debug, Default)]
pub struct LivePrinter {
    /// The incomplete line.
    line: String,
}

impl LivePrinter {
    pub fn print(&mut self, record: &LiveRecord, out: &Out) {
        match &record.body {
            LivePayload::Text { text }
            | LivePayload::Stderr { text }
            | LivePayload::CheckOutput { text, .. } => {
                self.text(text, out);
            }
            LivePayload::ToolCall { name, what } if what.is_empty() => self.whole(&format!("> {name}"), out),
            LivePayload::ToolCall { what, .. } => self.whole(&format!("> {what}"), out),
            LivePayload::ToolResult { ok: false, text } => {
                self.whole(&format!("! {}", tail_lines(text.trim_end(), 5)), out);
            }
            LivePayload::Activity { text } => self.whole(&format!("> {text}"), out),
            LivePayload::LeftOut { bytes } => self.whole(&format!("… {bytes} bytes left out"), out),
            // A success shows in what follows; tokens are reported at the end of the session.
            LivePayload::ToolResult { .. } | LivePayload::Tokens { .. } | LivePayload::Unknown => {}
        }
    }

    /// Reports records dropped before they were read.
    pub fn missed(&mut self, records: u64, out: &Out) {
        let records = usize::try_from(records).unwrap_or(usize::MAX);
        self.whole(&format!("… {} no longer kept", count(records, "live record")), out);
    }

    /// Ends the current line before other output.
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

    /// Complete lines go to the printer, which sanitizes them.
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
