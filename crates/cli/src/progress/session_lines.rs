//! A session in few lines: one per tool call, and the agent's last sentence before it.

use ralph_loop_journal::live::LivePayload;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::{one_line, tail};

/// Text kept while it grows; its end holds the last sentence.
const SAID_MAX: usize = 4 * 1024;
/// Size limit of a sentence.
const SENTENCE_MAX: usize = 300;
/// Shorter sentences are joined with the previous one.
const SHORT: usize = 20;

/// One line of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionLine {
    /// A tool call.
    Did(String),
    /// The agent's last sentence.
    Said(String),
}

/// Turns live records into lines.
#[derive(Debug, Default)]
pub struct SessionLines {
    said: String,
    /// Whether the session's text is JSON, so that nothing in it is for the user. Pieces may arrive even
    /// after its actions are done.
    is_data: Option<bool>,
    /// The last line was an activity whose call may follow.
    begun: bool,
}

impl SessionLines {
    /// Adds a piece of the agent's text.
    pub fn text(&mut self, piece: &str) {
        let start = piece.trim_start();
        if self.is_data.is_none() && !start.is_empty() {
            self.is_data = Some(["{", "[", "```json"].iter().any(|mark| start.starts_with(mark)));
        }
        self.said.push_str(piece);
        if self.said.len() > 2 * SAID_MAX {
            self.said = tail(&self.said, SAID_MAX).to_owned();
        }
    }

    /// Adds a record and returns its lines.
    pub fn take(&mut self, body: &LivePayload) -> Vec<SessionLine> {
        let did = match body {
            LivePayload::Text { text } => {
                self.text(text);
                return Vec::new();
            }
            // A slow call was shown when it began.
            LivePayload::ToolCall { what, .. } if what.is_empty() && std::mem::take(&mut self.begun) => {
                return Vec::new();
            }
            LivePayload::ToolCall { name, what } if what.is_empty() => format!("using {name}"),
            LivePayload::ToolCall { what, .. } => what.clone(),
            LivePayload::Activity { text } if is_thought(text) => return Vec::new(),
            LivePayload::Activity { text } => text.clone(),
            _ => return Vec::new(),
        };
        self.begun = matches!(body, LivePayload::Activity { .. });
        self.sentence().into_iter().chain([SessionLine::Did(did)]).collect()
    }

    /// The agent's last sentence at the end of the session.
    pub fn end(&mut self) -> Option<SessionLine> {
        let said = self.sentence();
        *self = Self::default();
        said
    }

    fn sentence(&mut self) -> Option<SessionLine> {
        let said = std::mem::take(&mut self.said);
        if self.is_data == Some(true) { None } else { last_sentence(&said).map(SessionLine::Said) }
    }
}

/// Whether a line only says that a model is working.
fn is_thought(line: &str) -> bool {
    line.starts_with("thinking (") || (line.starts_with("asking ") && !line.starts_with("asking a helper"))
}

/// A text's last sentence, without code, data or engine markers.
pub fn last_sentence(text: &str) -> Option<String> {
    let text = sanitize::block(text);
    let trimmed = text.trim();
    let mut fenced = false;
    let mut last = None;
    for line in trimmed.lines().map(str::trim) {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && is_words(line) {
            last = Some(line);
        }
    }
    let line = last?.trim_start_matches(['#', '-', '*', '>', ' ']);
    let ends: Vec<usize> = line
        .char_indices()
        .filter(|(at, c)| matches!(c, '.' | '!' | '?') && line[at + 1..].starts_with(' '))
        .map(|(at, _)| at + 2)
        .collect();
    let start = ends.iter().rev().copied().find(|start| line.len() - start >= SHORT).unwrap_or(0);
    let sentence = one_line(&line[start..], SENTENCE_MAX);
    (!sentence.is_empty()).then_some(sentence)
}

/// Whether a line has words and isn't an engine marker.
fn is_words(line: &str) -> bool {
    let tag = line.starts_with('<') && line.ends_with('>');
    !tag && line.chars().any(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sentence_is_the_one_a_person_would_quote() {
        let said = |text: &str| last_sentence(text).unwrap_or_default();
        assert_eq!(
            said("I looked. The test expects two, so I set it."),
            "The test expects two, so I set it."
        );
        assert_eq!(said("Set `calc.x` to two.\n\n<promise>COMPLETE</promise>\n"), "Set `calc.x` to two.");
        assert_eq!(said("I fixed the router today. Done."), "I fixed the router today. Done.");
        assert_eq!(said("It is:\n```\nlet x = 1;\n```\n"), "It is:");
        assert_eq!(said("## Result\n- all 4 tests pass"), "all 4 tests pass");
        assert_eq!(said("  \n"), "");
    }

    #[test]
    fn a_tool_call_comes_after_what_was_said_before_it() {
        let mut lines = SessionLines::default();
        let text = |text: &str| LivePayload::Text { text: text.into() };
        assert!(lines.take(&text("Now I look ")).is_empty());
        assert!(lines.take(&text("at the router itself.")).is_empty());
        let call = LivePayload::ToolCall { name: "Read".into(), what: "reading src/a.rs".into() };
        let want = [
            SessionLine::Said("Now I look at the router itself.".into()),
            SessionLine::Did("reading src/a.rs".into()),
        ];
        assert_eq!(lines.take(&call), want);
        assert_eq!(lines.end(), None);
        let bare = LivePayload::ToolCall { name: "mcp__db".into(), what: String::new() };
        assert_eq!(lines.take(&bare), [SessionLine::Did("using mcp__db".into())]);
    }

    #[test]
    fn data_and_thoughts_are_no_lines_and_a_long_call_is_one() {
        let mut lines = SessionLines::default();
        let activity = |text: &str| LivePayload::Activity { text: text.into() };
        let call = |what: &str| LivePayload::ToolCall { name: "command".into(), what: what.into() };
        lines.text("{\"actions\": [");
        assert!(lines.take(&activity("asking some/model")).is_empty());
        lines.text(&format!("\"{}\"]", "words for a file. ".repeat(1000)));
        assert_eq!(lines.take(&call("running `a`")), [SessionLine::Did("running `a`".into())]);
        lines.text("around\"}");
        assert_eq!(lines.end(), None, "data is nothing that was said");
        assert_eq!(lines.take(&activity("running `b`")), [SessionLine::Did("running `b`".into())]);
        assert!(lines.take(&call("")).is_empty(), "its start was already reported");
        assert_eq!(lines.take(&call("")), [SessionLine::Did("using command".into())]);
        lines.text("And now I say something.");
        assert_eq!(lines.end(), Some(SessionLine::Said("And now I say something.".into())));
    }
}
