//! Renders an agent's recorded output for reading: its text, one line per tool call, failures. Text outside the
//! format (a warning, a shell error) stays unchanged.

use super::parser::{Parser, ParserSink, ProcessClose};
use super::parser_for;
use jiff::Timestamp;
use ralph_loop_domain::ports::{ExecEnd, SessionSink, StopCause, Stream};
use ralph_loop_protocol::display::text::{head, one_line};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_task::config::OutputFormat;
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const OBJECT_MAX: usize = 4 * 1024 * 1024;
/// Bytes shown of a line outside complete objects.
const TORN_MAX: usize = 400;
/// Bytes shown of a failed tool call.
const FAILURE_MAX: usize = 300;

/// Renders an output piece by piece.
pub struct ReadableOutput {
    parser: Option<Box<dyn Parser>>,
    root: PathBuf,
    line: Vec<u8>,
    object: Vec<u8>,
    text: ReadableText,
}

#[derive(Default)]
struct ReadableText {
    text: String,
    /// Whether the agent has said anything.
    said: bool,
    /// Whether the returned text ended in the middle of a line.
    mid_line: bool,
}

impl ReadableText {
    fn push(&mut self, text: &str) {
        if let Some(last) = text.chars().last() {
            self.text.push_str(text);
            self.mid_line = last != '\n';
        }
    }

    fn line(&mut self, line: &str) {
        if self.mid_line {
            self.push("\n");
        }
        self.push(&format!("{line}\n"));
    }
}

impl SessionSink for ReadableText {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn activity(&mut self, line: &str) {
        self.line(&format!("> {line}"));
    }
    fn action(&mut self, json_line: &str) {
        let Ok(entry) = serde_json::from_str::<Value>(json_line) else { return };
        if entry.get("is_error") == Some(&Value::Bool(true)) {
            let result = entry.get("result").and_then(Value::as_str).unwrap_or_default();
            let result = result.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(result);
            self.line(&format!("! {}", one_line(result, FAILURE_MAX)));
        }
    }
    fn token(&mut self, text: &str) {
        self.said |= !text.trim().is_empty();
        self.push(text);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

impl ReadableOutput {
    /// For an agent with this format; paths below `root` are shown without it.
    pub fn new(format: OutputFormat, root: &Path) -> Self {
        let parser = (format != OutputFormat::Text).then(|| parser_for(format));
        let (root, text) = (root.to_owned(), ReadableText::default());
        Self { parser, root, line: Vec::new(), object: Vec::new(), text }
    }

    /// Adds a piece; returns the text that is ready.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        if self.parser.is_none() {
            // Plain text: only whole characters.
            self.line.extend_from_slice(bytes);
            let whole = match std::str::from_utf8(&self.line) {
                Err(e) if e.error_len().is_none() => e.valid_up_to(),
                _ => self.line.len(),
            };
            return String::from_utf8_lossy(&self.line.drain(..whole).collect::<Vec<u8>>()).into_owned();
        }
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take_line(&line);
            }
        }
        std::mem::take(&mut self.text.text)
    }

    /// Ends the output; returns the rest, including text that is only in the result.
    pub fn finish(mut self) -> String {
        let rest = std::mem::take(&mut self.line);
        if self.parser.is_none() {
            return String::from_utf8_lossy(&rest).into_owned();
        }
        if !rest.is_empty() {
            self.take_line(&rest);
        }
        self.give_up_object();
        if let Some(parser) = self.parser.take() {
            let close = ProcessClose { exec: ExecEnd::Exited(0), now: Timestamp::UNIX_EPOCH, patterns: &[] };
            let parsed = parser.finish(&close);
            if !self.text.said && !parsed.final_message.trim().is_empty() {
                self.text.line(parsed.final_message.trim_end());
            }
            // The output doesn't show how the process ended; it does show a provider's refusal.
            if let Some(reason) = refusal(&parsed.end) {
                self.text.line(&format!("! {}: {}", parsed.end.word(), one_line(reason, FAILURE_MAX)));
            }
        }
        std::mem::take(&mut self.text.text)
    }

    fn take_line(&mut self, line: &[u8]) {
        let trimmed = line.trim_ascii();
        if self.object.is_empty() || trimmed.starts_with(b"{") && line.starts_with(b"{") {
            self.give_up_object();
            match trimmed.first() {
                Some(b'{' | b'[') if is_json(trimmed) => self.feed(trimmed),
                Some(b'{') => self.object.extend_from_slice(line),
                Some(b'[') if trimmed == b"[" => self.object.extend_from_slice(line),
                Some(_) => self.text.line(String::from_utf8_lossy(line).trim_end()),
                None => {}
            }
            return;
        }
        self.object.extend_from_slice(line);
        if (line.starts_with(b"}") || line.starts_with(b"]")) && is_json(&self.object) {
            let object = std::mem::take(&mut self.object);
            self.feed(&object);
        } else if self.object.len() > OBJECT_MAX {
            self.give_up_object();
        }
    }

    /// It looked like an object but isn't one.
    fn give_up_object(&mut self) {
        let object = std::mem::take(&mut self.object);
        for line in String::from_utf8_lossy(&object).lines() {
            let mark = if line.len() > TORN_MAX { " …" } else { "" };
            self.text.line(&format!("{}{mark}", head(line, TORN_MAX)));
        }
    }

    fn feed(&mut self, object: &[u8]) {
        let Some(parser) = &mut self.parser else { return };
        let mut hopeless = false;
        let mut notes = ParserSink { sink: &mut self.text, root: &self.root, hopeless: &mut hopeless };
        parser.feed(Stream::Stdout, object, &mut notes);
        parser.feed(Stream::Stdout, b"\n", &mut notes);
    }
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// Why the provider refused, if it did.
fn refusal(end: &SessionEnd) -> Option<&str> {
    match end {
        SessionEnd::RateLimited { reason, .. }
        | SessionEnd::Overloaded { reason }
        | SessionEnd::Unreachable { reason }
        | SessionEnd::Auth { reason }
        | SessionEnd::Billing { reason }
        | SessionEnd::ContextTooLong { reason }
        | SessionEnd::Refused { reason } => Some(reason),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: OutputFormat, output: &str) -> String {
        // Byte by byte, because pieces can be of any size.
        let mut reader = ReadableOutput::new(format, Path::new("/w"));
        let mut text = String::new();
        output.as_bytes().iter().for_each(|byte| text.push_str(&reader.push(&[*byte])));
        text + &reader.finish()
    }

    #[test]
    fn formats_are_rendered_and_other_text_stays() {
        let output = r#"npm warn old
{"type":"system","subtype":"init"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I look at it — now."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make test"}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"exit 2"}]}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":"/w/a.py"}}]}}
{"torn
"#;
        let want =
            "npm warn old\nI look at it — now.\n> running `make test`\n! exit 2\n> editing a.py\n{\"torn\n";
        assert_eq!(read(OutputFormat::ClaudeStreamJson, output), want);
    }

    #[test]
    fn plain_text_stays_unchanged() {
        let text = "é {\"a\": 1}\n> b\nno end";
        assert_eq!(read(OutputFormat::Text, text), text);
    }
}
