//! Any command whose stdout is the answer. Evidence is only its exit code, stderr of a failed exit, and the user's
//! configured signs, also on stdout: any other output may be a quote. If it printed nothing but a refused login, that
//! isn't a quote, unless the session changed files, which the engine knows.

use super::parser::{
    Parsed, Parser, ParserSink, ProcessClose, REASON_MAX, STDERR_MAX, ended_by_engine, final_message,
    how_it_ended, last_lines,
};
use super::words::{self, Refusal};
use crate::bounded::{RESPONSE_MAX, Tail};
use crate::limits;
use crate::scan::fold;
use ralph_loop_domain::ports::Stream;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::Usage;
use serde_json::json;

const STDOUT_MAX: usize = 256 * 1024;
/// How much of it goes into the response, which also needs room for stderr and JSON escapes.
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
        if stdout.trim().is_empty() {
            return SessionEnd::Empty;
        }
        return refused_login(stdout).unwrap_or(SessionEnd::Completed);
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
    if let Some(refused) = refused_login(stdout).or_else(|| refused_login(stderr)) {
        return refused;
    }
    let how = how_it_ended(close.exec);
    let said = if last_words.is_empty() { last_lines(stdout) } else { last_words };
    let reason =
        if said.is_empty() { format!("the command {how}") } else { format!("the command {how}: {said}") };
    SessionEnd::Failed { reason: text::one_line(&reason, REASON_MAX) }
}

/// Longest answer that can be nothing but an error.
const ERROR_MAX: usize = 400;
const ERROR_LINES: usize = 4;

/// The refused login or credit, if that is the only output.
fn refused_login(said: &str) -> Option<SessionEnd> {
    let said = said.trim();
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // A promise means that it worked, whatever words the text has.
    if said.chars().count() > ERROR_MAX || lines.len() > ERROR_LINES || said.contains("<promise>") {
        return None;
    }
    let reason = || text::one_line(said, REASON_MAX);
    lines.iter().find_map(|line| match words::refusal(line)? {
        Refusal::Login => Some(SessionEnd::Auth { reason: reason() }),
        Refusal::Credit => Some(SessionEnd::Billing { reason: reason() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_is_nothing_but_a_refusal_is_one() {
        let word = |said: &str| refused_login(said).map_or("", |end| end.word());
        for said in [
            "Invalid API key \u{b7} Please run /login",
            "Not logged in",
            "Error: not logged in. Run `agent login` first.\n",
            "401 Unauthorized",
            "API Error: 401 {\"type\":\"error\"}",
            "\u{2717} Unauthorized: token expired",
            "Please log in with `tool auth login`",
            "[error] authentication failed",
            "You are not authenticated. Please run `x login`.",
        ] {
            assert_eq!(word(said), "not logged in", "{said}");
        }
        for said in ["Credit balance is too low", "Error: insufficient_quota", "quota exceeded"] {
            assert_eq!(word(said), "no credit", "{said}");
        }
        let long = format!("Invalid API key is what the server said.\n{}", "I looked at it.\n".repeat(9));
        for said in [
            "I made the page say \"not logged in\" to users who are not logged in.",
            "Fixed: the server answers 401 unauthorized now.",
            "Invalid API key is refused now.\n\n<promise>COMPLETE</promise>",
            "The test still gets 401 Unauthorized; I need the secret.",
            "4010 lines were read",
            "Quotas are read from the file now.",
            "Unauthorized requests are answered with 401 now.",
            "401 is what the server answers; 200 is expected.",
            &long,
            "",
        ] {
            assert_eq!(word(said), "", "{said}");
        }
    }
}
