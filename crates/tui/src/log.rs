//! A run's live output as lines: bounded, sanitized, searchable. Only visible lines are laid out.

use crate::widget::text::{contains, wrap};
use ralph_loop_protocol::display::sanitize;
use std::collections::VecDeque;

/// Limits of lines and bytes.
const LINES_MAX: usize = 100_000;
const BYTES_MAX: usize = 24 * 1024 * 1024;
const LINE_MAX: usize = 2000;

/// The origin of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The agent's text.
    Said,
    /// A tool call or activity.
    Did,
    /// A failed tool call.
    Failed,
    /// Its process's stderr.
    Stderr,
    /// Output of a check.
    Check,
    /// A message of `ralph`.
    Note,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its origin.
    pub kind: Kind,
    /// Sanitized.
    pub text: Box<str>,
}

#[derive(Debug, Default)]
pub struct Log {
    lines: VecDeque<LogLine>,
    bytes: usize,
    /// The incomplete last line.
    open: Option<(Kind, String)>,
    /// Number of discarded lines.
    pub dropped: usize,
}

impl Log {
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// All lines as text.
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(self.bytes + self.lines.len());
        for line in &self.lines {
            out.push_str(&line.text);
            out.push('\n');
        }
        out
    }

    /// Adds a complete line.
    pub fn line(&mut self, kind: Kind, text: &str) {
        self.open = None;
        for part in text.lines() {
            self.push(kind, part);
        }
    }

    /// Adds a piece of text; pieces of one kind continue each other.
    pub fn piece(&mut self, kind: Kind, piece: &str) {
        let mut held = match self.open.take() {
            Some((of, held)) if of == kind => {
                self.pop();
                held
            }
            _ => String::new(),
        };
        let mut parts = piece.split('\n').peekable();
        while let Some(part) = parts.next() {
            held.push_str(part);
            while held.len() > LINE_MAX {
                let cut = ralph_loop_protocol::display::text::head(&held, LINE_MAX).len();
                let rest = held.split_off(cut);
                self.push(kind, &held);
                held = rest;
            }
            if parts.peek().is_some() {
                self.push(kind, held.trim_end_matches('\r'));
                held.clear();
            }
        }
        if !held.is_empty() {
            self.push(kind, &held);
            self.open = Some((kind, held));
        }
    }

    fn push(&mut self, kind: Kind, text: &str) {
        let text: Box<str> = sanitize::line(text).into_owned().into_boxed_str();
        self.bytes += text.len();
        self.lines.push_back(LogLine { kind, text });
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(old) = self.lines.pop_front() else { break };
            self.bytes -= old.text.len();
            self.dropped += 1;
        }
    }

    fn pop(&mut self) {
        if let Some(line) = self.lines.pop_back() {
            self.bytes -= line.text.len();
        }
    }

    /// Wrapped lines up to line `last` that fill an area, with the number of the first complete one.
    pub fn visible(&self, last: usize, cells: usize, height: usize) -> Vec<(usize, Kind, String)> {
        let mut shown: VecDeque<(usize, Kind, String)> = VecDeque::new();
        let end = last.saturating_add(1).min(self.lines.len());
        for at in (0..end).rev() {
            let line = &self.lines[at];
            for piece in wrap(&line.text, cells).into_iter().rev() {
                if shown.len() == height {
                    return shown.into();
                }
                shown.push_front((at, line.kind, piece.to_owned()));
            }
        }
        shown.into()
    }

    /// The nearest line with this word before or after `from`, wrapping around.
    pub fn find(&self, word: &str, from: usize, back: bool) -> Option<usize> {
        let has = |at: &usize| contains(&self.lines[*at].text, word);
        let count = self.lines.len();
        let from = from.min(count);
        match back {
            true => (0..from).rev().find(has).or_else(|| (from..count).rev().find(has)),
            false => {
                ((from + 1).min(count)..count).find(has).or_else(|| (0..(from + 1).min(count)).find(has))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(log: &Log) -> Vec<&str> {
        log.lines.iter().map(|line| &*line.text).collect()
    }

    #[test]
    fn chunks_become_whole_lines_and_the_last_one_grows() {
        let mut log = Log::default();
        log.piece(Kind::Said, "Hel");
        assert_eq!(texts(&log), ["Hel"]);
        log.piece(Kind::Said, "lo\nnew");
        assert_eq!(texts(&log), ["Hello", "new"]);
        log.line(Kind::Did, "reading a");
        log.piece(Kind::Said, "next\n");
        assert_eq!(texts(&log), ["Hello", "new", "reading a", "next"]);
    }

    #[test]
    fn chunked_agent_output_is_sanitized() {
        let mut log = Log::default();
        for piece in ["a\u{1b}", "]0;owned\u{7}b", "\u{1b}[2", "Jc\n", "d\re"] {
            log.piece(Kind::Said, piece);
        }
        assert_eq!(texts(&log), ["abc", "d e"]);
    }

    #[test]
    fn old_lines_are_dropped_and_endless_lines_are_split() {
        let mut log = Log::default();
        log.piece(Kind::Said, &"x".repeat(3 * LINE_MAX));
        assert_eq!(log.len(), 3);
        for n in 0..LINES_MAX + 10 {
            log.line(Kind::Said, &format!("line {n}"));
        }
        assert_eq!((log.len(), log.dropped), (LINES_MAX, 13));
    }

    #[test]
    fn only_visible_lines_are_laid_out_and_search_wraps_around() {
        let mut log = Log::default();
        (0..50).for_each(|n| log.line(Kind::Said, &format!("number {n} and more words")));
        let shown = log.visible(49, 12, 4);
        assert_eq!(shown.len(), 4);
        assert_eq!(shown.last().unwrap().2, "words");
        assert_eq!(log.find("NUMBER 7 ", 49, true), Some(7));
        assert_eq!(log.find("number 7 ", 20, false), Some(7));
        assert_eq!(log.find("absent", 0, false), None);
    }
}
