//! Findings in a task file: position, problem and fix.

use crate::criterion::Span;
use serde::Serialize;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    /// The run starts, but this is a common reason for failure.
    Warning,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The rule's stable name, for example `missing-test-command`.
    pub rule: &'static str,
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    pub message: String,
    pub fix: String,
    /// A safe change of the file that fixes it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<SafeEdit>,
}

impl Diagnostic {
    pub fn error(
        rule: &'static str,
        file: &str,
        place: Span,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            rule,
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            message: message.into(),
            fix: fix.into(),
            edit: None,
        }
    }
    /// A finding that only warns.
    pub fn warning(
        rule: &'static str,
        file: &str,
        place: Span,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, file, place, message, fix) }
    }
    pub fn set_edit(&mut self, range: Range<usize>, replacement: impl Into<String>) {
        self.edit = Some(SafeEdit { range, replacement: replacement.into() });
    }
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
    /// The display order of findings: by position.
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        let key = |d: &'_ Self| (d.line, d.column, d.severity, d.rule);
        self.file
            .cmp(&other.file)
            .then_with(|| key(self).cmp(&key(other)))
            .then_with(|| self.message.cmp(&other.message))
    }
}

#[derive(Debug)]
pub struct Findings {
    file: String,
    pub all: Vec<Diagnostic>,
}

impl Findings {
    pub fn of(file: &str) -> Self {
        Self { file: file.to_owned(), all: Vec::new() }
    }
    pub fn error(
        &mut self,
        rule: &'static str,
        place: Span,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Diagnostic::error(rule, &self.file, place, message, fix))
    }
    pub fn warning(
        &mut self,
        rule: &'static str,
        place: Span,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Diagnostic::warning(rule, &self.file, place, message, fix))
    }
    fn push(&mut self, finding: Diagnostic) -> &mut Diagnostic {
        let at = self.all.len();
        self.all.push(finding);
        &mut self.all[at]
    }
}

/// A change of a file that is right whatever the author meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SafeEdit {
    /// The bytes to replace; empty for an insertion.
    pub range: Range<usize>,
    pub replacement: String,
}

const BLOCK: usize = 128;

/// Converts byte offsets of a text to lines and columns, in bounded time even for one long line.
#[derive(Debug)]
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    // Characters before each block of the text.
    chars: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let starts = std::iter::once(0)
            .chain(bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1))
            .collect();
        let mut chars = vec![0];
        let mut seen = 0;
        for block in bytes.chunks(BLOCK) {
            seen += block.iter().filter(|b| starts_char(**b)).count();
            chars.push(seen);
        }
        Self { text, starts, chars }
    }
    pub fn text(&self) -> &'a str {
        self.text
    }
    /// Line and column of a byte. A byte order mark doesn't count as a column.
    pub fn place(&self, offset: usize) -> Span {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|at| self.starts.get(at)).copied().unwrap_or(0);
        let mark = usize::from(line <= 1 && offset > 0 && self.text.starts_with('\u{feff}'));
        let column = self.chars_before(offset) - self.chars_before(start) - mark;
        Span { line: line.max(1), column: column + 1 }
    }
    pub fn start_of(&self, line: usize) -> usize {
        self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len())
    }
    fn chars_before(&self, offset: usize) -> usize {
        let block = offset / BLOCK;
        let rest = &self.text.as_bytes()[block * BLOCK..offset];
        self.chars[block] + rest.iter().filter(|b| starts_char(**b)).count()
    }
}

fn starts_char(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

pub fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_skip_a_byte_order_mark() {
        let text = "\u{feff}aé\r\nb→c\n";
        let lines = Lines::new(text);
        let at = |needle: &str| {
            let place = lines.place(text.find(needle).unwrap());
            (place.line, place.column)
        };
        assert_eq!((at("a"), at("é"), at("b"), at("c")), ((1, 1), (1, 2), (2, 1), (2, 3)));
        assert_eq!(lines.place(9_999).line, 3);
        assert_eq!(Lines::new("").place(0), Span::START);
        assert_eq!(line_end(text), "\r\n");
    }

    #[test]
    fn one_long_line_is_counted_in_blocks() {
        let text = format!("é{}x", "ab→".repeat(2_000));
        assert_eq!(Lines::new(&text).place(text.len() - 1).column, 6_002);
    }
}
