//! Text in terminal cells: width, cutting, wrapping. Wide characters and joined emoji are never split.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// Cuts text to fit, with `…` at the end.
pub fn fit(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let kept = prefix(text, cells.saturating_sub(1));
    if cells == 0 { String::new() } else { format!("{kept}…") }
}

/// The longest prefix that fits.
pub fn prefix(text: &str, cells: usize) -> &str {
    if text.is_ascii() {
        return &text[..text.len().min(cells)];
    }
    let mut used = 0;
    for (at, part) in text.grapheme_indices(true) {
        used += part.width();
        if used > cells {
            return &text[..at];
        }
    }
    text
}

/// Cuts or pads text to exactly this width.
pub fn pad(text: &str, cells: usize) -> String {
    let mut out = fit(text, cells);
    out.extend(std::iter::repeat_n(' ', cells.saturating_sub(width(&out))));
    out
}

/// Wraps a line at words if possible. Never empty.
pub fn wrap(line: &str, cells: usize) -> Vec<&str> {
    let cells = cells.max(1);
    let mut pieces = Vec::new();
    let mut rest = line;
    while width(rest) > cells {
        let mut piece = prefix(rest, cells);
        if piece.is_empty() {
            // A character wider than the area is shown cut rather than never.
            piece = rest.graphemes(true).next().unwrap_or(rest);
        }
        let next = &rest[piece.len()..];
        let cut = if next.starts_with(' ') { piece.len() } else { piece.rfind(' ').map_or(0, |at| at + 1) };
        let cut = if cut == 0 || piece[..cut].trim().is_empty() { piece.len() } else { cut };
        pieces.push(rest[..cut].trim_end());
        rest = rest[cut..].trim_start_matches(' ');
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// Case-insensitive (ASCII) substring search.
pub fn contains(text: &str, word: &str) -> bool {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    !word.is_empty() && text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_are_never_cut_apart() {
        assert_eq!(width("日本"), 4);
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(prefix("👩\u{200d}💻x", 1), "");
        assert_eq!(pad("é", 3), "é  ");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn lines_break_between_words_and_nothing_is_lost() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("one two", 3), ["one", "two"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap("日本語", 1), ["日", "本", "語"]);
        assert_eq!(wrap("    word another", 9), ["    word", "another"]);
    }

    #[test]
    fn search_ignores_case() {
        assert!(contains("Error: Nope", "error") && !contains("fine", "error") && !contains("x", ""));
    }
}
