//! Any command whose stdout is the answer. Only its exit code and, where that says "failed", its stderr are evidence, and
//! the signs that the user configured, on stdout, too: anything else that it printed there may be a quote.

use super::parser::{
    Parsed, Parser, ParserSink, ProcessClose, REASON_MAX, STDERR_MAX, ended_by_engine, final_message,
    how_it_ended, last_lines,
};
use super::words;
use crate::bounded::{RESPONSE_MAX, Tail};
use crate::limits;
use crate::scan::fold;
use ralph_domain::event::SessionEnd;
use ralph_domain::money::Usage;
use ralph_domain::ports::Stream;
use ralph_domain::text;
use serde_json::json;

/// Bound of the kept end of stdout.
const STDOUT_MAX: usize = 256 * 1024;
/// How much of it goes into the response, so that stderr and JSON's own marks have room beside it.
const STDOUT_IN_RESPONSE: usize = 224 * 1024;

pub(crate) struct TextParser {
    stdout: Tail,
    stderr: Tail,
}

impl TextParser {
    pub(crate) fn new() -> Self {
        Self { stdout: Tail::new(STDOUT_MAX), stderr: Tail::new(STDERR_MAX) }
    }
}

impl Parser for TextParser {
    fn feed(&mut self, stream: Stream, bytes: &[u8], _: &mut ParserSink<'_>) {
        match stream {
            Stream::Stdout => self.stdout.push(bytes),
            Stream::Stderr => self.stderr.push(bytes),
        }
    }

    fn finish(self: Box<Self>, close: &ProcessClose<'_>) -> Parsed {
        let stdout = self.stdout.text();
        let stderr = self.stderr.text();
        let shown = text::tail(&stdout, STDOUT_IN_RESPONSE);
        let response = crate::bounded::value(
            json!({
                "format": "text",
                "exit_code": close.exec.code(),
                "stdout_tail": shown,
                "stderr_tail": stderr,
                "truncated": shown.len() < stdout.len() || self.stdout.truncated() || self.stderr.truncated(),
            }),
            RESPONSE_MAX,
        );
        let end = judge(&stdout, &stderr, close);
        let usage = Usage::unknown();
        Parsed { end, final_message: final_message(stdout), usage, counted_over: None, response }
    }
}

fn judge(stdout: &str, stderr: &str, close: &ProcessClose<'_>) -> SessionEnd {
    if let Some(end) = ended_by_engine(close.exec, None) {
        return end;
    }
    if close.exec.success() {
        return if stdout.trim().is_empty() { SessionEnd::Empty } else { SessionEnd::Completed };
    }
    let last_words = last_lines(stderr);
    if limits::looks_limited(stderr) || words::matches_patterns(&fold(stderr), close.patterns) {
        let reset_at = limits::reset_time(stderr, close.now);
        return SessionEnd::RateLimited { reset_at, reason: last_words };
    }
    if words::matches_patterns(&fold(stdout), close.patterns) {
        let reset_at = limits::reset_time(stdout, close.now);
        return SessionEnd::RateLimited { reset_at, reason: last_lines(stdout) };
    }
    let how = how_it_ended(close.exec);
    let said = if last_words.is_empty() { last_lines(stdout) } else { last_words };
    let reason =
        if said.is_empty() { format!("the command {how}") } else { format!("the command {how}: {said}") };
    SessionEnd::Failed { reason: text::one_line(&reason, REASON_MAX) }
}
