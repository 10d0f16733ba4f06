//! What all output formats share: the parser trait, its reports during a session, and the ends that follow from how
//! the engine ended a process.

use super::words;
use crate::bounded;
use jiff::Timestamp;
use ralph_loop_domain::ports::{ExecEnd, FINAL_MESSAGE_MAX, SessionSink, StopCause, Stream};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::{Tokens, Usage};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::Path;

pub(crate) const STDERR_MAX: usize = 16 * 1024;
const ACTIVITY_MAX: usize = 160;
pub(crate) const RESULT_READ: usize = 2000;
const RESULT_MAX: usize = 400;
/// Bytes of a tool's result that are shown.
const SHOWN_MAX: usize = 3000;
pub(crate) const REASON_MAX: usize = 500;

/// Parses a session's output as it arrives, in bounded memory.
pub(crate) trait Parser {
    /// Takes raw bytes.
    fn feed(&mut self, stream: Stream, bytes: &[u8], notes: &mut ParserSink<'_>);
    /// Whether a provider's refusal was the last event, so that silence is a wait for it.
    fn waiting(&self) -> bool {
        false
    }
    /// Whether the last event was a retry notice of the CLI, which isn't a sign of life of the agent.
    fn retrying(&self) -> bool {
        self.waiting()
    }
    /// The process has ended: returns the result.
    fn finish(self: Box<Self>, close: &ProcessClose<'_>) -> Parsed;
}

/// How the process ended, and the context to interpret its last output.
pub(crate) struct ProcessClose<'a> {
    pub(crate) exec: ExecEnd,
    pub(crate) now: Timestamp,
    /// Configured signs of a rate limit.
    pub(crate) patterns: &'a [String],
}

/// A parser's result.
pub(crate) struct Parsed {
    pub(crate) end: SessionEnd,
    pub(crate) final_message: String,
    pub(crate) usage: Usage,
    /// The session over which `usage` accumulates, if the CLI continues counting when resumed.
    pub(crate) counted_over: Option<String>,
    pub(crate) response: Value,
}

/// Where a parser reports: the session's sink, with its context.
pub(crate) struct ParserSink<'a> {
    pub(crate) sink: &'a mut dyn SessionSink,
    /// The workspace, left out of displayed paths.
    pub(crate) root: &'a Path,
    /// Set when continuing is pointless.
    pub(crate) hopeless: &'a mut bool,
}

impl ParserSink<'_> {
    pub(crate) fn activity(&mut self, line: &str) {
        let line = text::one_line(line, ACTIVITY_MAX);
        if !line.is_empty() {
            self.sink.activity(&line);
        }
    }
    /// Reports a tool use: a line and an entry of `actions.jsonl`. Its result will refer to `id`.
    pub(crate) fn tool(&mut self, kind: &str, name: &str, input: Value, id: &str) {
        let line = super::activity::describe(name, &input, self.root);
        self.activity(&line);
        self.action(kind, name, input, id);
    }
    pub(crate) fn action(&mut self, kind: &str, name: &str, input: Value, id: &str) {
        let input = bounded::value(input, bounded::ACTION_INPUT_MAX);
        let mut line = json!({ "type": kind, "name": name, "input": input });
        if !id.is_empty() {
            line["id"] = id.into();
        }
        self.sink.action(&line.to_string());
    }
    /// Reports a tool's result: its lines, and its beginning as an entry of `actions.jsonl`.
    pub(crate) fn result(&mut self, id: &str, is_error: bool, text: &str) {
        if !id.is_empty() {
            let result = text::one_line(text::head(text, RESULT_READ), RESULT_MAX);
            let line = json!({ "type": "result", "id": id, "is_error": is_error, "result": result });
            self.sink.action(&line.to_string());
            self.sink.result(!is_error, &text::ends(text, SHOWN_MAX));
        }
    }
    /// Reports the agent's text: a whole message, or a piece if `whole` is false.
    pub(crate) fn agent_text(&mut self, words: &str, whole: bool) {
        if !words.is_empty() {
            self.sink.token(words);
        }
        if whole && !words.ends_with('\n') && !words.is_empty() {
            self.sink.token("\n");
        }
    }
    pub(crate) fn used(&mut self, tokens: Tokens) {
        self.sink.used(&tokens);
    }
    /// A message without an action: an entry of `actions.jsonl`.
    pub(crate) fn text_entry(&mut self, words: &str) {
        let text = text::one_line(words, RESULT_MAX);
        if !text.is_empty() {
            self.sink.action(&json!({ "type": "message", "text": text }).to_string());
        }
    }
}

/// The text of a tool's result: a string, or a list of blocks with text. Anything else stays JSON.
pub(crate) fn result_text(raw: &RawValue) -> Cow<'_, str> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Blocks(Vec<Block>),
    }
    #[derive(serde::Deserialize)]
    struct Block {
        #[serde(default)]
        text: String,
    }
    match serde_json::from_str(raw.get()) {
        Ok(Content::Text(text)) => text.into(),
        Ok(Content::Blocks(blocks)) => {
            let texts: Vec<String> = blocks.into_iter().map(|block| block.text).collect();
            texts.join("\n").into()
        }
        Err(_) => raw.get().into(),
    }
}

/// The ends that follow from how the engine ended the process. `trouble` is a limit or an outage that was the last
/// event: silence after it is a wait, not a hang.
pub(crate) fn ended_by_engine(exec: ExecEnd, trouble: Option<SessionEnd>) -> Option<SessionEnd> {
    Some(match exec {
        ExecEnd::Exited(_) | ExecEnd::Signaled(_) => return None,
        ExecEnd::TimedOut => trouble.unwrap_or(SessionEnd::TimedOut),
        ExecEnd::IdleTimedOut => trouble.unwrap_or(SessionEnd::IdleTimedOut),
        ExecEnd::Stopped(StopCause::Hopeless) => trouble.unwrap_or_else(|| SessionEnd::RateLimited {
            reset_at: None,
            reason: "continuing made no sense".into(),
        }),
        ExecEnd::Stopped(cause) => SessionEnd::Stopped { cause },
        ExecEnd::GuardLost => SessionEnd::Interrupted,
    })
}

/// The end of a process without the end event of its format. `started` says whether it had begun to use that format;
/// if not, it failed before the session and its stderr says why.
pub(crate) fn ended_without_result(
    close: &ProcessClose<'_>,
    started: bool,
    stderr: &str,
    trouble: Option<SessionEnd>,
) -> SessionEnd {
    if let Some(trouble) = trouble {
        return trouble;
    }
    let last_words = last_lines(stderr);
    let how = how_it_ended(close.exec);
    if !started && !close.exec.success() && !last_words.is_empty() {
        return words::classify(&last_words, None, close);
    }
    let reason = if last_words.is_empty() {
        format!("the agent {how} without its result")
    } else {
        format!("the agent {how} without its result: {last_words}")
    };
    SessionEnd::Unfinished { reason: text::one_line(&reason, REASON_MAX) }
}

/// Whether a claimed success is credible: a failed process is never "completed".
pub(crate) fn failed_after_success(exec: ExecEnd) -> Option<SessionEnd> {
    (!exec.success()).then(|| SessionEnd::Failed {
        reason: format!("the agent reported its result and then {}", how_it_ended(exec)),
    })
}

/// "exited with 3", "was ended by signal 15".
pub(crate) fn how_it_ended(exec: ExecEnd) -> String {
    match exec {
        ExecEnd::Exited(code) => format!("exited with {code}"),
        ExecEnd::Signaled(signal) => format!("was ended by signal {signal}"),
        _ => "was ended".into(),
    }
}

/// The last meaningful lines of stderr, joined.
pub(crate) fn last_lines(stderr: &str) -> String {
    // codex prints the first whenever stdin isn't a terminal, gemini the others at every start.
    const NOISE: &[&str] = &[
        "Reading additional input from stdin...",
        "YOLO mode is enabled. All tool calls will be automatically approved.",
        "Loaded cached credentials.",
    ];
    let says = |line: &&str| !line.is_empty() && !NOISE.contains(line);
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(says).collect();
    let from = lines.len().saturating_sub(3);
    text::one_line(&lines[from..].join(" "), REASON_MAX)
}

/// The response of a session without a result.
pub(crate) fn no_result(
    format: &str,
    error: Option<&Value>,
    stderr: &str,
    close: &ProcessClose<'_>,
) -> Value {
    json!({
        "format": format,
        "result": null,
        "error": error,
        "exit_code": close.exec.code(),
        "stderr_tail": stderr,
    })
}

/// A final message within its limit: its end, where a promise is.
pub(crate) fn final_message(mut message: String) -> String {
    if message.len() > FINAL_MESSAGE_MAX {
        message = text::tail(&message, FINAL_MESSAGE_MAX).to_owned();
    }
    message
}

/// Appends a piece to a message, which stays within twice its limit.
pub(crate) fn append_bounded(message: &mut String, piece: &str) {
    message.push_str(piece);
    if message.len() > 2 * FINAL_MESSAGE_MAX {
        *message = text::tail(message, FINAL_MESSAGE_MAX).to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_stderr_lines_are_plain_and_without_noise() {
        let stderr = "Reading additional input from stdin...\n\n\u{1b}[31mnot trusted\u{1b}[0m\n";
        assert_eq!(last_lines(stderr), "not trusted");
        assert_eq!(last_lines("a\nb\nc\nd\n"), "b c d");
        let gemini = "YOLO mode is enabled. All tool calls will be automatically approved.\nLoaded cached credentials.\nquota exceeded\n";
        assert_eq!(last_lines(gemini), "quota exceeded");
    }

    #[test]
    fn a_growing_message_keeps_its_end() {
        let mut message = String::new();
        for _ in 0..100 {
            append_bounded(&mut message, &"é".repeat(10_000));
        }
        append_bounded(&mut message, "END");
        assert!(message.len() <= 2 * FINAL_MESSAGE_MAX);
        let message = final_message(message);
        assert!(message.len() <= FINAL_MESSAGE_MAX && message.ends_with("END"));
    }
}
