//! A run's live output as lines: bounded, sanitized, searchable. Only visible lines are laid out.

use crate::widget::text::{contains, wrap};
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::count;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Limits of lines and bytes.
const LINES_MAX: usize = 100_000;
const BYTES_MAX: usize = 24 * 1024 * 1024;
const LINE_MAX: usize = 2000;

/// Lines of a folded result.
const FOLDED: usize = 5;

/// The origin of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The agent's text.
    Said,
    /// A tool call or activity.
    Did,
    /// The result of a tool call.
    Result,
    /// The result of a failed tool call.
    Failed,
    /// Its process's stderr.
    Stderr,
    /// Output of a check.
    Check,
    /// A message of `ralph`.
    Note,
}

/// When a line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Always,
    /// While its block is folded.
    Folded,
    /// While its block is unfolded.
    Unfolded,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LogLine {
    kind: Kind,
    /// Sanitized.
    text: Box<str>,
    /// Its block: a tool call with its result.
    block: u32,
    shown: Shown,
}

#[derive(Debug, Default)]
pub struct Log {
    lines: VecDeque<LogLine>,
    bytes: usize,
    /// The incomplete last line.
    open: Option<(Kind, String)>,
    /// Number of discarded lines.
    pub dropped: usize,
    /// The number of the latest block.
    block: u32,
    /// Blocks that the user turned over, and whether all of them are unfolded otherwise.
    turned: BTreeSet<u32>,
    unfolded: bool,
}

impl Log {
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    fn is_shown(&self, at: usize) -> bool {
        self.lines.get(at).is_some_and(|line| match line.shown {
            Shown::Always => true,
            Shown::Folded => self.unfolded == self.turned.contains(&line.block),
            Shown::Unfolded => self.unfolded != self.turned.contains(&line.block),
        })
    }

    /// Unfolds the block of a line, or folds it.
    pub fn turn(&mut self, at: usize) {
        if let Some(LogLine { block: block @ 1.., .. }) = self.lines.get(at)
            && !self.turned.remove(block)
        {
            self.turned.insert(*block);
        }
    }

    pub fn turn_all(&mut self) {
        self.unfolded = !self.unfolded;
        self.turned.clear();
    }

    /// The nearest shown line that many shown lines further; `None` at the end.
    pub fn step(&self, from: usize, by: i32) -> Option<usize> {
        let shown = |at: &usize| self.is_shown(*at);
        let far = by.unsigned_abs() as usize;
        if by < 0 {
            let before = (0..from.min(self.len())).rev().filter(shown);
            return Some(before.take(far).last().unwrap_or(from));
        }
        let mut after = (from + 1..self.len()).filter(shown);
        let to = if far == 0 { from } else { after.nth(far - 1)? };
        (to..self.len()).skip(1).any(|at| self.is_shown(at)).then_some(to)
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

    /// Adds a complete line. A tool call begins a block.
    pub fn line(&mut self, kind: Kind, text: &str) {
        self.open = None;
        self.block += u32::from(kind == Kind::Did);
        for part in text.lines() {
            self.push(kind, part);
        }
    }

    /// Adds the result of the latest tool call. Folded, it shows the last lines of a failure, the first ones of a
    /// success, and nothing of a file that was read.
    pub fn result(&mut self, ok: bool, text: &str) {
        self.open = None;
        let call = self.lines.iter().rev().find(|line| line.kind == Kind::Did);
        let most = if ok && call.is_some_and(|line| line.text.starts_with("reading ")) { 0 } else { FOLDED };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        // A single hidden line would take as much room as the note about it.
        let hidden = if lines.len() > most + 1 { lines.len() - most } else { 0 };
        let (first, last) = if ok { (lines.len() - hidden, lines.len()) } else { (0, hidden) };
        let more = if most == 0 { count(hidden, "line") } else { format!("… {hidden} more lines") };
        let kind = if ok { Kind::Result } else { Kind::Failed };
        for (at, line) in lines.iter().enumerate() {
            if at == first && hidden > 0 {
                self.push_line(Kind::Note, &more, Shown::Folded);
            }
            let shown = if (first..last).contains(&at) { Shown::Unfolded } else { Shown::Always };
            self.push_line(kind, line, shown);
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
        self.push_line(kind, text, Shown::Always);
    }

    fn push_line(&mut self, kind: Kind, text: &str, shown: Shown) {
        let text = sanitize::line(&text.replace('\t', "    ")).into_owned().into_boxed_str();
        self.bytes += text.len();
        let in_block = matches!(kind, Kind::Did | Kind::Result | Kind::Failed) || shown == Shown::Folded;
        self.lines.push_back(LogLine { kind, text, block: if in_block { self.block } else { 0 }, shown });
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

    /// Wrapped lines that fill an area: up to the end, or around line `at`, with their line's number.
    pub fn visible(&self, at: Option<usize>, cells: usize, height: usize) -> Vec<(usize, Kind, &str)> {
        let pieces = |at: usize| wrap(&self.lines[at].text, cells).into_iter();
        let shown = |range: Range<usize>| range.filter(|at| self.is_shown(*at));
        let after = at.map_or(self.len(), |at| (at + 1).min(self.len()));
        let below = shown(after..self.len()).flat_map(|at| pieces(at).map(move |text| (at, text)));
        let mut below: Vec<(usize, &str)> = below.take(height).collect();
        let above = shown(0..after).rev().flat_map(|at| pieces(at).rev().map(move |text| (at, text)));
        let mut rows: Vec<(usize, &str)> = above.take(height).collect();
        below.truncate((height / 3).max(height - rows.len()));
        rows.truncate(height - below.len());
        rows.reverse();
        rows.extend(below);
        rows.into_iter().map(|(at, text)| (at, self.lines[at].kind, text)).collect()
    }

    /// The nearest line with this word before or after `from`, wrapping around.
    pub fn find(&mut self, word: &str, from: usize, back: bool) -> Option<usize> {
        let has =
            |at: &usize| self.lines[*at].shown != Shown::Folded && contains(&self.lines[*at].text, word);
        let count = self.lines.len();
        let from = from.min(count);
        let found = match back {
            true => (0..from).rev().find(has).or_else(|| (from..count).rev().find(has)),
            false => {
                ((from + 1).min(count)..count).find(has).or_else(|| (0..(from + 1).min(count)).find(has))
            }
        };
        if let Some(at) = found.filter(|at| !self.is_shown(*at)) {
            self.turn(at);
        }
        found
    }
}

/// A log with a cursor.
#[derive(Debug, Default)]
pub struct Transcript {
    pub log: Log,
    /// The chosen line; `None` follows new output.
    pub at: Option<usize>,
}

impl Transcript {
    fn chosen(&self) -> usize {
        self.at.unwrap_or(self.log.len().saturating_sub(1))
    }

    pub fn scroll(&mut self, lines: i32) {
        self.at = self.log.step(self.chosen(), lines);
    }

    pub fn top(&mut self) {
        self.at = self.log.step(0, 0);
    }

    /// Unfolds the block of the chosen line, or folds it.
    pub fn turn(&mut self) {
        let at = self.chosen();
        self.log.turn(at);
        // The line may be hidden now.
        self.at = self.at.and_then(|at| if self.log.is_shown(at) { Some(at) } else { self.log.step(at, -1) });
    }

    /// Goes to the next match; returns whether there is one.
    pub fn find(&mut self, word: &str, back: bool) -> bool {
        let from = self.at.unwrap_or(self.log.len());
        let found = self.log.find(word, from, back);
        self.at = found.or(self.at);
        found.is_some()
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
        let shown = log.visible(None, 12, 4);
        assert_eq!(shown.len(), 4);
        assert_eq!(shown.last().unwrap().2, "words");
        assert_eq!(log.find("NUMBER 7 ", 49, true), Some(7));
        assert_eq!(log.find("number 7 ", 20, false), Some(7));
        assert_eq!(log.find("absent", 0, false), None);
    }

    #[test]
    fn a_call_and_its_result_are_one_block_that_unfolds() {
        let mut log = Log::default();
        let seen = |log: &Log| -> Vec<String> {
            log.visible(None, 40, 40).into_iter().map(|(_, _, text)| text.to_owned()).collect()
        };
        let many = (1..=9).map(|n| format!("line {n}\n")).collect::<String>();
        log.line(Kind::Did, "running `make`");
        log.result(false, &many);
        log.line(Kind::Did, "reading a.rs");
        log.result(true, &many);
        log.piece(Kind::Said, "I see.\n");
        let folded = [
            "running `make`",
            "… 4 more lines",
            "line 5",
            "line 6",
            "line 7",
            "line 8",
            "line 9",
            "reading a.rs",
            "9 lines",
            "I see.",
        ];
        assert_eq!(seen(&log), folded);
        // The line after the call is the note about the hidden ones.
        assert_eq!((log.step(0, 1), log.step(0, 2)), (Some(1), Some(6)));
        log.turn(0);
        assert_eq!(seen(&log).len(), 13);
        log.turn(0);
        assert_eq!(seen(&log), folded);
        log.turn_all();
        assert_eq!(seen(&log).len(), 21);
        log.turn_all();
        let at = log.find("line 2", log.len(), true).unwrap();
        assert!(log.is_shown(at), "a match is unfolded");
        assert_eq!(log.step(log.len() - 2, 1), None, "behind the last line the end is followed");
    }
}
