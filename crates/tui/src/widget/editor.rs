use crate::widget::text::{prefix, width};
use ralph_loop_protocol::display::sanitize;
use unicode_segmentation::UnicodeSegmentation as _;

/// Larger than any task.
const BYTES_MAX: usize = 512 * 1024;
/// Remembered texts.
const HISTORY_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Editor {
    lines: Vec<String>,
    row: usize,
    /// Byte offset on a character boundary.
    col: usize,
    history: Vec<String>,
    /// Position in the history, and the text before browsing it.
    looking: Option<(usize, String)>,
}

impl Default for Editor {
    fn default() -> Self {
        Self { lines: vec![String::new()], row: 0, col: 0, history: Vec::new(), looking: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    LineStart,
    LineEnd,
    Start,
    End,
}

/// The text laid out for an area.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// Visible lines.
    pub lines: Vec<String>,
    pub cursor: (u16, u16),
}

impl Editor {
    pub fn with(text: &str) -> Self {
        let mut editor = Self::default();
        editor.set(text);
        editor
    }

    pub fn text(&self) -> String {
        self.lines.join("\n")
    }

    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(String::is_empty)
    }

    pub fn set(&mut self, text: &str) {
        self.lines = text.split('\n').map(str::to_owned).collect();
        self.go(Move::End);
    }

    /// Takes the text and adds it to the history.
    pub fn take(&mut self) -> String {
        let text = self.text();
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            let extra = self.history.len().saturating_sub(HISTORY_MAX);
            self.history.drain(..extra);
        }
        self.looking = None;
        self.set("");
        text
    }

    /// Inserts typed or pasted text without control characters.
    pub fn insert(&mut self, text: &str) {
        let held: usize = self.lines.iter().map(|line| line.len() + 1).sum();
        let room = BYTES_MAX.saturating_sub(held);
        let clean =
            sanitize::block(ralph_loop_protocol::display::text::head(text, room)).replace('\t', "    ");
        let rest = self.line().split_at(self.col).1.to_owned();
        let (row, col) = (self.row, self.col);
        self.lines[row].truncate(col);
        let mut parts = clean.split('\n');
        self.lines[row].push_str(parts.next().unwrap_or_default());
        let more: Vec<String> = parts.map(str::to_owned).collect();
        let added = more.len();
        self.lines.splice(row + 1..row + 1, more);
        self.row = row + added;
        self.col = self.line().len();
        self.lines[self.row].push_str(&rest);
    }

    pub fn backspace(&mut self) {
        let to = (self.row, self.col);
        self.go(Move::Left);
        self.delete_to(to);
    }

    pub fn delete(&mut self) {
        let from = (self.row, self.col);
        self.go(Move::Right);
        let to = (self.row, self.col);
        (self.row, self.col) = from;
        self.delete_to(to);
    }

    pub fn delete_word(&mut self) {
        let to = (self.row, self.col);
        self.go(Move::WordLeft);
        self.delete_to(to);
    }

    pub fn delete_to_start(&mut self) {
        let to = (self.row, self.col);
        self.col = 0;
        self.delete_to(to);
    }

    pub fn delete_to_end(&mut self) {
        let col = self.col;
        self.lines[self.row].truncate(col);
    }

    /// Browses the history.
    pub fn look_back(&mut self, back: bool) {
        let (at, before) = match self.looking.take() {
            Some((at, before)) => (at, before),
            None => (self.history.len(), self.text()),
        };
        let next = if back { at.checked_sub(1) } else { Some(at + 1) };
        match next {
            Some(next) if next < self.history.len() => {
                let text = self.history[next].clone();
                self.set(&text);
                self.looking = Some((next, before));
            }
            Some(_) if !back => self.set(&before),
            _ => self.looking = (at < self.history.len()).then_some((at, before)),
        }
    }

    /// Whether the cursor is in the first or last line.
    pub fn at_edge(&self, first: bool) -> bool {
        if first { self.row == 0 } else { self.row + 1 == self.lines.len() }
    }

    pub fn go(&mut self, to: Move) {
        match to {
            Move::Left => match self.line()[..self.col].graphemes(true).next_back() {
                Some(part) => self.col -= part.len(),
                None if self.row > 0 => {
                    self.row -= 1;
                    self.col = self.line().len();
                }
                None => {}
            },
            Move::Right => match self.line()[self.col..].graphemes(true).next() {
                Some(part) => self.col += part.len(),
                None if self.row + 1 < self.lines.len() => {
                    self.row += 1;
                    self.col = 0;
                }
                None => {}
            },
            Move::WordLeft => {
                if self.col == 0 {
                    return self.go(Move::Left);
                }
                let before = self.lines[self.row][..self.col].trim_end();
                self.col = before
                    .rfind(|c: char| !c.is_alphanumeric())
                    .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
                // A run of symbols counts as a word.
                if self.col == before.len() {
                    self.col -= before.chars().next_back().map_or(0, char::len_utf8);
                }
            }
            Move::WordRight => {
                let after = &self.line()[self.col..];
                if after.is_empty() {
                    return self.go(Move::Right);
                }
                let start = after.find(char::is_alphanumeric).unwrap_or(after.len());
                let end =
                    after[start..].find(|c: char| !c.is_alphanumeric()).map_or(after.len(), |at| at + start);
                self.col += end;
            }
            Move::Up if self.row > 0 => self.go_to_row(self.row - 1),
            Move::Down if self.row + 1 < self.lines.len() => self.go_to_row(self.row + 1),
            Move::Up | Move::LineStart => self.col = 0,
            Move::Down | Move::LineEnd => self.col = self.line().len(),
            Move::Start => (self.row, self.col) = (0, 0),
            Move::End => {
                self.row = self.lines.len().saturating_sub(1);
                self.col = self.line().len();
            }
        }
    }

    /// The word before the cursor, if it starts with this sign.
    pub fn word_after(&self, sign: char) -> Option<&str> {
        let before = &self.line()[..self.col];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        before[start..].strip_prefix(sign)
    }

    /// Replaces the word before the cursor.
    pub fn replace_word(&mut self, word: &str) {
        let before = &self.line()[..self.col];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let to = (self.row, self.col);
        self.col = start;
        self.delete_to(to);
        self.insert(word);
    }

    /// Lays out the text with a visible cursor.
    pub fn shown(&self, cells: usize, height: usize) -> Shown {
        let (cells, height) = (cells.max(2), height.max(1));
        let (mut lines, mut cursor) = (Vec::new(), (0, 0));
        for (row, line) in self.lines.iter().enumerate() {
            let mut rest = line.as_str();
            let mut start = 0;
            loop {
                // Leaves one cell for the cursor.
                let piece = prefix(rest, cells - 1);
                let piece = if piece.is_empty() { rest } else { piece };
                let end = start + piece.len();
                let is_last = piece.len() == rest.len();
                if row == self.row && (start..=end).contains(&self.col) && (self.col < end || is_last) {
                    cursor = (width(&line[start..self.col]), lines.len());
                }
                lines.push(piece.to_owned());
                rest = &rest[piece.len()..];
                start = end;
                if is_last {
                    break;
                }
            }
        }
        let top = (cursor.1 + 1).saturating_sub(height);
        let shown = lines.into_iter().skip(top).take(height).collect();
        let cell = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        Shown { lines: shown, cursor: (cell(cursor.0), cell(cursor.1 - top)) }
    }

    fn line(&self) -> &str {
        &self.lines[self.row]
    }

    fn go_to_row(&mut self, row: usize) {
        let cells = width(&self.line()[..self.col]);
        self.row = row;
        self.col = prefix(self.line(), cells).len();
    }

    /// Deletes from the cursor to a later position.
    fn delete_to(&mut self, (row, col): (usize, usize)) {
        let rest = self.lines[row][col..].to_owned();
        self.lines.drain(self.row + 1..=row.max(self.row));
        let keep = self.col;
        let line = &mut self.lines[self.row];
        line.truncate(keep);
        line.push_str(&rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_moving_and_deleting_keep_characters_whole() {
        let mut editor = Editor::default();
        editor.insert("ab\nc日d");
        editor.go(Move::Left);
        editor.backspace();
        assert_eq!(editor.text(), "ab\ncd");
        editor.go(Move::LineStart);
        editor.backspace();
        assert_eq!(editor.text(), "abcd");
        editor.insert("\n");
        assert_eq!(editor.text(), "ab\ncd");
        editor.go(Move::Start);
        editor.delete();
        assert_eq!(editor.text(), "b\ncd");
        editor.go(Move::LineEnd);
        editor.delete();
        assert_eq!(editor.text(), "bcd");
    }

    #[test]
    fn word_movement_and_deletion() {
        let mut editor = Editor::with("fix the router-test");
        editor.delete_word();
        assert_eq!(editor.text(), "fix the router-");
        editor.delete_word();
        editor.delete_word();
        assert_eq!(editor.text(), "fix the ");
        editor.go(Move::Start);
        editor.go(Move::WordRight);
        editor.insert("ed");
        assert_eq!(editor.text(), "fixed the ");
    }

    #[test]
    fn large_paste_is_kept_whole_and_sanitized() {
        let mut editor = Editor::with("start end");
        (0..3).for_each(|_| editor.go(Move::Left));
        editor.insert(&format!("\u{1b}]0;owned\u{7}{}", "line of pasted text\n".repeat(5000)));
        let text = editor.text();
        assert!(text.starts_with("start line of") && text.ends_with("\nend") && !text.contains("owned"));
        assert_eq!(text.len(), 100_000 + 9);
        let shown = editor.shown(40, 5);
        assert_eq!((shown.lines.len(), shown.cursor), (5, (0, 4)));
        editor.insert(&"x".repeat(BYTES_MAX));
        assert!(editor.text().len() <= BYTES_MAX, "what is typed is bounded");
    }

    #[test]
    fn sent_messages_can_be_recalled() {
        let mut editor = Editor::with("first");
        assert_eq!(editor.take(), "first");
        editor.insert("second");
        editor.take();
        editor.insert("half");
        editor.look_back(true);
        editor.look_back(true);
        editor.look_back(true);
        assert_eq!(editor.text(), "first");
        editor.look_back(false);
        assert_eq!(editor.text(), "second");
        editor.look_back(false);
        assert_eq!(editor.text(), "half", "what was being written is not lost");
    }

    #[test]
    fn file_name_is_completed_at_the_cursor() {
        let mut editor = Editor::with("look at @src/ma");
        assert_eq!(editor.word_after('@'), Some("src/ma"));
        editor.replace_word("@src/main.rs ");
        assert_eq!(editor.text(), "look at @src/main.rs ");
        assert_eq!(editor.word_after('@'), None);
    }

    #[test]
    fn cursor_is_at_the_insertion_point() {
        let editor = Editor::with("日本語");
        assert_eq!(editor.shown(20, 3).cursor, (6, 0));
        let editor = Editor::with("abcd");
        let shown = editor.shown(3, 4);
        assert_eq!((shown.lines, shown.cursor), (vec!["ab".into(), "cd".into()], (2, 1)));
    }
}
