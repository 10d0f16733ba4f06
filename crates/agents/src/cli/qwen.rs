//! `qwen -o json` (an array) and `-o stream-json` (an object per line): claude's events, with two differences. Its
//! input tokens include cached ones. And it reports a provider's error as if the model had said it, with `is_error:
//! false` and exit code 0: `[API Error: 401 …]`. Only the tokens tell it from an agent that quotes such text: a real
//! error has no output tokens.

use super::claude::ClaudeEvents;
use super::parser::{Parsed, ParserSink, ProcessClose, ended_by_engine};
use super::stream::Events;
use super::words;
use crate::scan::Cursor;
use ralph_loop_protocol::event::SessionEnd;

const MARK: &str = "[API Error: ";

#[derive(Default)]
pub(crate) struct QwenEvents {
    claude: ClaudeEvents,
}

/// The provider's message in an answer without model output.
fn api_error(message: &str) -> Option<&str> {
    let at = message.rfind(MARK)?;
    let words = &message[at + MARK.len()..];
    // A hint of the CLI may follow the bracket.
    Some(words.rfind(']').map_or(words, |end| &words[..end]))
}

fn judge(words: &str, close: &ProcessClose<'_>) -> SessionEnd {
    let status =
        Cursor::new(words).whole().and_then(|n| u16::try_from(n).ok()).filter(|n| (400..600).contains(n));
    match words::classify(words, status, close) {
        SessionEnd::Failed { reason } if reason.contains("stream ended without") => {
            SessionEnd::Overloaded { reason }
        }
        end => end,
    }
}

impl Events for QwenEvents {
    fn retrying(&self) -> bool {
        self.claude.retrying()
    }

    fn event(&mut self, object: &[u8], notes: &mut ParserSink<'_>) {
        self.claude.event(object, notes);
    }

    fn finish(self, stderr: &str, close: &ProcessClose<'_>) -> Parsed {
        let spoke = self.claude.last_output() > 0;
        let mut parsed = self.claude.finish(stderr, close);
        if let Some(tokens) = &mut parsed.usage.tokens {
            tokens.input = tokens.input.saturating_sub(tokens.cached);
        }
        // Only claude's totals are known to accumulate over a resumed session.
        parsed.counted_over = None;
        if !spoke
            && ended_by_engine(close.exec, None).is_none()
            && let Some(words) = api_error(&parsed.final_message)
        {
            parsed.end = judge(words, close);
            parsed.final_message.clear();
        }
        parsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_error_is_found_in_an_answer() {
        assert_eq!(api_error("[API Error: 401 no]"), Some("401 no"));
        assert_eq!(api_error("hal[API Error: [x] cut]\nPlease wait"), Some("[x] cut"));
        assert_eq!(api_error("all fine"), None);
    }
}
