//! Reads an agent's recorded output as a transcript: its text, tool calls, their results. Text outside the format (a
//! warning, a shell error) stays unchanged.

use super::parser::{Parser, ParserSink, ProcessClose};
use super::parser_for;
use jiff::Timestamp;
use ralph_loop_domain::ports::{ExecEnd, SessionSink, StopCause, Stream};
use ralph_loop_protocol::display::text::{head, one_line, tail_lines};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_task::config::OutputFormat;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const OBJECT_MAX: usize = 4 * 1024 * 1024;
/// Bytes shown of a line outside complete objects.
const TORN_MAX: usize = 400;
/// Bytes shown of a provider's refusal.
const REFUSAL_MAX: usize = 300;
/// Lines shown of a failed tool call.
const FAILURE_LINES: usize = 5;

/// An entry of a session's transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TranscriptEntry {
    /// A piece of the agent's text; pieces of one text are consecutive.
    Said(String),
    /// A complete line outside the format.
    Line(String),
    /// What the agent does, in one line.
    Did(String),
    /// The result of what it did: the first and last lines.
    Result {
        /// Whether it worked.
        ok: bool,
        /// The lines.
        text: String,
    },
}

/// Reads the transcript in an output, piece by piece.
pub struct TranscriptReader {
    parser: Option<Box<dyn Parser>>,
    root: PathBuf,
    line: Vec<u8>,
    object: Vec<u8>,
    entries: Entries,
}

#[derive(Default)]
struct Entries {
    ready: Vec<TranscriptEntry>,
    /// Whether the agent has said anything.
    said: bool,
}

impl SessionSink for Entries {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn activity(&mut self, line: &str) {
        self.ready.push(TranscriptEntry::Did(line.to_owned()));
    }
    fn action(&mut self, _: &str) {}
    fn result(&mut self, ok: bool, text: &str) {
        self.ready.push(TranscriptEntry::Result { ok, text: text.to_owned() });
    }
    fn token(&mut self, text: &str) {
        self.said |= !text.trim().is_empty();
        self.ready.push(TranscriptEntry::Said(text.to_owned()));
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// Renders an output as text, piece by piece.
pub struct ReadableOutput {
    reader: TranscriptReader,
    /// Whether the returned text ended in the middle of a line.
    mid_line: bool,
}

impl ReadableOutput {
    /// For an agent with this format; paths below `root` are shown without it.
    pub fn new(format: OutputFormat, root: &Path) -> Self {
        Self { reader: TranscriptReader::new(format, root), mid_line: false }
    }

    /// Adds a piece; returns the text that is ready.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let entries = self.reader.push(bytes);
        render(entries, &mut self.mid_line)
    }

    /// Ends the output; returns the rest, including text that is only in the result.
    pub fn finish(mut self) -> String {
        render(self.reader.finish(), &mut self.mid_line)
    }
}

fn render(entries: Vec<TranscriptEntry>, mid_line: &mut bool) -> String {
    let mut text = String::new();
    let line = |mid_line: &mut bool, line: &str, text: &mut String| {
        text.push_str(if std::mem::take(mid_line) { "\n" } else { "" });
        text.push_str(line);
        text.push('\n');
    };
    for entry in entries {
        match entry {
            TranscriptEntry::Said(piece) => {
                *mid_line = piece.chars().last().map_or(*mid_line, |last| last != '\n');
                text.push_str(&piece);
            }
            TranscriptEntry::Line(words) => line(mid_line, &words, &mut text),
            TranscriptEntry::Did(words) => line(mid_line, &format!("> {words}"), &mut text),
            TranscriptEntry::Result { ok: true, .. } => {}
            TranscriptEntry::Result { ok: false, text: result } => {
                for (n, words) in tail_lines(result.trim_end(), FAILURE_LINES).lines().enumerate() {
                    line(mid_line, &format!("{} {words}", if n == 0 { '!' } else { ' ' }), &mut text);
                }
            }
        }
    }
    text
}

impl TranscriptReader {
    /// For an agent with this format; paths below `root` are shown without it.
    pub fn new(format: OutputFormat, root: &Path) -> Self {
        let parser = (format != OutputFormat::Text).then(|| parser_for(format));
        let (root, entries) = (root.to_owned(), Entries::default());
        Self { parser, root, line: Vec::new(), object: Vec::new(), entries }
    }

    /// Adds a piece; returns the entries that are ready.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<TranscriptEntry> {
        if self.parser.is_none() {
            // Plain text: only whole characters.
            self.line.extend_from_slice(bytes);
            let whole = match std::str::from_utf8(&self.line) {
                Err(e) if e.error_len().is_none() => e.valid_up_to(),
                _ => self.line.len(),
            };
            let text = String::from_utf8_lossy(&self.line.drain(..whole).collect::<Vec<u8>>()).into_owned();
            return if text.is_empty() { Vec::new() } else { vec![TranscriptEntry::Said(text)] };
        }
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take_line(&line);
            }
        }
        std::mem::take(&mut self.entries.ready)
    }

    /// Ends the output; returns the rest, including text that is only in the result.
    pub fn finish(mut self) -> Vec<TranscriptEntry> {
        let rest = std::mem::take(&mut self.line);
        if self.parser.is_none() {
            return vec![TranscriptEntry::Said(String::from_utf8_lossy(&rest).into_owned())];
        }
        if !rest.is_empty() {
            self.take_line(&rest);
        }
        self.give_up_object();
        if let Some(parser) = self.parser.take() {
            let close = ProcessClose { exec: ExecEnd::Exited(0), now: Timestamp::UNIX_EPOCH, patterns: &[] };
            let parsed = parser.finish(&close);
            if !self.entries.said && !parsed.final_message.trim().is_empty() {
                self.outside(parsed.final_message.trim_end());
            }
            // The output doesn't show how the process ended; it does show a provider's refusal.
            if let Some(reason) = refusal(&parsed.end) {
                let text = format!("{}: {}", parsed.end.word(), one_line(reason, REFUSAL_MAX));
                self.entries.result(false, &text);
            }
        }
        std::mem::take(&mut self.entries.ready)
    }

    fn outside(&mut self, line: &str) {
        self.entries.ready.push(TranscriptEntry::Line(line.to_owned()));
    }

    fn take_line(&mut self, line: &[u8]) {
        let trimmed = line.trim_ascii();
        if self.object.is_empty() || trimmed.starts_with(b"{") && line.starts_with(b"{") {
            self.give_up_object();
            match trimmed.first() {
                Some(b'{' | b'[') if is_json(trimmed) => self.feed(trimmed),
                Some(b'{') => self.object.extend_from_slice(line),
                Some(b'[') if trimmed == b"[" => self.object.extend_from_slice(line),
                Some(_) => self.outside(String::from_utf8_lossy(line).trim_end()),
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
            self.outside(&format!("{}{mark}", head(line, TORN_MAX)));
        }
    }

    fn feed(&mut self, object: &[u8]) {
        let Some(parser) = &mut self.parser else { return };
        let mut hopeless = false;
        let mut notes = ParserSink { sink: &mut self.entries, root: &self.root, hopeless: &mut hopeless };
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
    fn results_are_decoded_and_keep_their_first_and_last_lines() {
        let lines: String = (1..=400).map(|n| format!("line {n} of the output\\n")).collect();
        let output = format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t","name":"Bash","input":{{"command":"make"}}}}]}}}}
{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{{"type":"text","text":"{lines}"}}]}}]}}}}
"#
        );
        let mut reader = TranscriptReader::new(OutputFormat::ClaudeStreamJson, Path::new("/w"));
        let entries = reader.push(output.as_bytes());
        let [TranscriptEntry::Did(did), TranscriptEntry::Result { ok: false, text }] = entries.as_slice()
        else {
            panic!("{entries:?}")
        };
        assert_eq!(did, "running `make`");
        assert!(text.starts_with("line 1 of the output\nline 2"), "{text}");
        assert!(text.contains(" lines left out …\n") && text.trim_end().ends_with("line 400 of the output"));
        assert!(text.len() < 3200, "{}", text.len());
        let shown = read(OutputFormat::ClaudeStreamJson, &output);
        assert_eq!(shown.lines().count(), 6, "a call and the last five lines: {shown}");
    }

    #[test]
    fn plain_text_stays_unchanged() {
        let text = "é {\"a\": 1}\n> b\nno end";
        assert_eq!(read(OutputFormat::Text, text), text);
    }
}
