//! Wraps messages at words.

use super::marks::bare;
use ralph_loop_protocol::display::sanitize;
use unicode_width::UnicodeWidthStr as _;

/// Narrower terminals get no wrapping.
const LEAST: usize = 16;

/// Wraps a line to `columns`; continuation lines are indented by `hang`. Text in backticks stays on one line
/// so that it can be copied; overlong words are left to the terminal.
pub fn folded(line: &str, columns: usize, hang: usize) -> Vec<String> {
    if seen(line) <= columns || columns < hang + LEAST {
        return vec![line.to_owned()];
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let pad = " ".repeat(hang.max(indent));
    let mut lines = vec![" ".repeat(indent)];
    let mut empty = true;
    for word in words(&line[indent..]) {
        let last = lines.last().map_or(0, |last| seen(last));
        // A word that fits nowhere stays.
        if !empty && last + 1 + seen(&word) > columns && seen(&word) <= columns - pad.len() {
            lines.push(pad.clone());
            empty = true;
        }
        if let Some(last) = lines.last_mut() {
            if !empty {
                last.push(' ');
            }
            last.push_str(&word);
        }
        // Alignment spaces are kept as empty words before the next one.
        empty = false;
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Printed width of a text.
fn seen(text: &str) -> usize {
    sanitize::line(&bare(text)).width()
}

/// Words, with quoted commands as one; an odd number of backticks quotes nothing.
fn words(text: &str) -> Vec<String> {
    let odd = |word: &str| word.matches('`').count() % 2 == 1;
    let paired = !odd(text);
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split(' ') {
        match found.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(word);
            }
            _ => found.push(word.to_owned()),
        }
        open ^= paired && odd(word);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::marks::{Ink, inked};

    #[test]
    fn lines_wrap_between_words_below_their_text() {
        let line = "  check     python3 -m unittest discover (from test_calc.py)";
        let want =
            ["  check     python3 -m unittest", "            discover (from", "            test_calc.py)"];
        assert_eq!(folded(line, 31, 12), want);
        assert_eq!(
            folded("next: `ralph diff 2026` shows it", 25, 6),
            ["next: `ralph diff 2026`", "      shows it"]
        );
        assert_eq!(folded("short", 20, 0), ["short"]);
    }

    #[test]
    fn styling_takes_no_room() {
        let label = inked(Ink::Bold, "Proven after two");
        let lines = folded(&format!("{label} iterations of work"), 27, 2);
        assert_eq!(lines, [format!("{label} iterations"), "  of work".to_owned()]);
    }
}
