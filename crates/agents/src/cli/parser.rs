//! What every output format has in common: the parser's shape, what it may tell while a session runs, and the ends that
//! the engine's own way of ending a process decides.

use super::words;
use crate::bounded;
use jiff::Timestamp;
use ralph_loop_domain::ports::{ExecEnd, FINAL_MESSAGE_MAX, SessionSink, StopCause, Stream};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::{Tokens, Usage};
use ralph_loop_protocol::text;
use serde_json::{Value, json};
use std::path::Path;

/// Bound of the kept end of stderr.
pub(crate) const STDERR_MAX: usize = 16 * 1024;
/// Bound of a line for people.
const ACTIVITY_MAX: usize = 160;
/// Bytes of a tool's result that are looked at.
pub(crate) const RESULT_READ: usize = 2000;
/// Bound of a result or message in `actions.jsonl`.
const RESULT_MAX: usize = 400;
/// Bound of a reason in an event.
pub(crate) const REASON_MAX: usize = 500;

/// Reads one session's output as it arrives, in bounded memory.
pub(crate) trait Parser {
    /// Takes bytes as they came.
    fn feed(&mut self, stream: Stream, bytes: &[u8], notes: &mut ParserSink<'_>);
    /// Whether a refusal of the provider was the last thing heard, so that silence is a wait for it.
    fn waiting(&self) -> bool {
        false
    }
    /// Whether the last thing heard was a notice of the CLI that it tries again: no sign of life of the agent.
    fn retrying(&self) -> bool {
        self.waiting()
    }
    /// The process is gone: what happened?
    fn finish(self: Box<Self>, close: &ProcessClose<'_>) -> Parsed;
}

/// How the process ended, and what is needed to understand its last words.
pub(crate) struct ProcessClose<'a> {
    /// How it ended.
    pub(crate) exec: ExecEnd,
    /// When it ended.
    pub(crate) now: Timestamp,
    /// Configured signs of a rate limit.
    pub(crate) patterns: &'a [String],
}

/// What a parser makes of a session.
pub(crate) struct Parsed {
    pub(crate) end: SessionEnd,
    pub(crate) final_message: String,
    pub(crate) usage: Usage,
    /// The session over which `usage` is counted up, where the CLI goes on counting when it is resumed.
    pub(crate) counted_over: Option<String>,
    pub(crate) response: Value,
}

/// Where a parser reports what it finds: the sink of the session, with what that needs.
pub(crate) struct ParserSink<'a> {
    pub(crate) sink: &'a mut dyn SessionSink,
    /// The workspace, left out of the paths that people see.
    pub(crate) root: &'a Path,
    /// Set when going on makes no sense.
    pub(crate) hopeless: &'a mut bool,
}

impl ParserSink<'_> {
    /// One line for people.
    pub(crate) fn activity(&mut self, line: &str) {
        let line = text::one_line(line, ACTIVITY_MAX);
        if !line.is_empty() {
            self.sink.activity(&line);
        }
    }
    /// One tool use: a line for people and an entry of `actions.jsonl`. `id` is what its result will name.
    pub(crate) fn tool(&mut self, kind: &str, name: &str, input: Value, id: &str) {
        let line = super::activity::describe(name, &input, self.root);
        self.activity(&line);
        self.action(kind, name, input, id);
    }
    /// An entry of `actions.jsonl`.
    pub(crate) fn action(&mut self, kind: &str, name: &str, input: Value, id: &str) {
        let input = bounded::value(input, bounded::ACTION_INPUT_MAX);
        let mut line = json!({ "type": kind, "name": name, "input": input });
        if !id.is_empty() {
            line["id"] = id.into();
        }
        self.sink.action(&line.to_string());
    }
    /// What came of a tool use: the beginning of it, as an entry of `actions.jsonl`.
    pub(crate) fn result(&mut self, id: &str, is_error: bool, text: &str) {
        if !id.is_empty() {
            let result = text::one_line(text, RESULT_MAX);
            let line = json!({ "type": "result", "id": id, "is_error": is_error, "result": result });
            self.sink.action(&line.to_string());
        }
    }
    /// What the agent says, as it comes: a whole message, or a piece of one where `whole` is false.
    pub(crate) fn agent_text(&mut self, words: &str, whole: bool) {
        if !words.is_empty() {
            self.sink.token(words);
        }
        if whole && !words.ends_with('\n') && !words.is_empty() {
            self.sink.token("\n");
        }
    }
    /// Tokens of the session so far.
    pub(crate) fn used(&mut self, tokens: Tokens) {
        self.sink.used(&tokens);
    }
    /// The agent spoke without doing anything: an entry of `actions.jsonl`.
    pub(crate) fn text_entry(&mut self, words: &str) {
        let text = text::one_line(words, RESULT_MAX);
        if !text.is_empty() {
            self.sink.action(&json!({ "type": "message", "text": text }).to_string());
        }
    }
}

/// The ends that the engine's way of ending the process decides. `trouble` is a limit or an outage that was the last
/// thing the agent spoke of: silence after it is a wait for it, not a hang.
pub(crate) fn ended_by_engine(exec: ExecEnd, trouble: Option<SessionEnd>) -> Option<SessionEnd> {
    Some(match exec {
        ExecEnd::Exited(_) | ExecEnd::Signaled(_) => return None,
        ExecEnd::TimedOut => trouble.unwrap_or(SessionEnd::TimedOut),
        ExecEnd::IdleTimedOut => trouble.unwrap_or(SessionEnd::IdleTimedOut),
        ExecEnd::Stopped(StopCause::Hopeless) => trouble.unwrap_or_else(|| SessionEnd::RateLimited {
            reset_at: None,
            reason: "going on made no sense".into(),
        }),
        ExecEnd::Stopped(cause) => SessionEnd::Stopped { cause },
        ExecEnd::GuardLost => SessionEnd::Interrupted,
    })
}

/// The end of a process that left without the end event of its format. `started` tells whether it had begun to speak
/// that format at all; if not, it failed before the session and its stderr says why.
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

/// Whether a session that claims success is to be believed: a process that failed is never "completed".
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

/// The last lines of stderr that say something, in one line.
pub(crate) fn last_lines(stderr: &str) -> String {
    // codex says the first whenever stdin is no terminal, gemini the others at every start.
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

/// The response of a session that printed no result.
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

/// A final message within its bound: its end, where a promise stands.
pub(crate) fn final_message(mut message: String) -> String {
    if message.len() > FINAL_MESSAGE_MAX {
        message = text::tail(&message, FINAL_MESSAGE_MAX).to_owned();
    }
    message
}

/// Adds a piece to a message that is kept within twice the bound while it grows.
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
    fn last_words_are_plain_and_without_noise() {
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
