//! Marks our own styling, to distinguish it from escape sequences in untrusted text.
//!
//! Text is assembled from ours and others' before printing. Styling is inserted as marks that start with two
//! characters drawn at random per process, which outsiders can't know; printing turns marks into escape
//! sequences and sanitizes the rest.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::OnceLock;

/// Our own styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// The next action.
    Cyan,
    /// Dim.
    Dim,
    /// Good.
    Green,
    /// Attention.
    Yellow,
    /// Bad.
    Red,
    /// Bold.
    Bold,
}

impl Ink {
    const ALL: [Self; 6] = [Self::Cyan, Self::Dim, Self::Green, Self::Yellow, Self::Red, Self::Bold];

    fn letter(self) -> char {
        match self {
            Self::Cyan => 'c',
            Self::Dim => 'd',
            Self::Green => 'g',
            Self::Yellow => 'y',
            Self::Red => 'r',
            Self::Bold => 'b',
        }
    }

    fn sequence(self) -> &'static str {
        match self {
            Self::Cyan => "\u{1b}[36m",
            Self::Dim => "\u{1b}[2m",
            Self::Green => "\u{1b}[32m",
            Self::Yellow => "\u{1b}[33m",
            Self::Red => "\u{1b}[31m",
            Self::Bold => "\u{1b}[1m",
        }
    }
}

/// Ends every mark.
const END: char = '.';
const RESET: &str = "\u{1b}[0m";

/// Start of a mark: two of 65,534 private-use characters.
fn key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| {
        let drawn = std::hash::RandomState::new().build_hasher().finish();
        let private = |bits: u64| char::from_u32(0x10_0000 + (bits % 65_534) as u32).unwrap_or('\u{10fffd}');
        [private(drawn), private(drawn >> 32)].iter().collect()
    })
}

/// The text without marks.
pub fn bare(text: &str) -> String {
    let key = key();
    let mut pieces = text.split(key);
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.get(1..).unwrap_or_default())
}

/// The text wrapped in marks.
pub fn inked(ink: Ink, text: &str) -> String {
    let key = key();
    format!("{key}{}{text}{key}{END}", ink.letter())
}

/// Converts marks to escape sequences and passes everything else through `safe`.
pub fn rendered(text: &str, safe: impl Fn(&str) -> Cow<'_, str>) -> String {
    let mut parts = text.split(key());
    let mut out = safe(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let mut chars = part.chars();
        let sequence = match chars.next() {
            Some(END) => Some(RESET),
            Some(letter) => Ink::ALL.into_iter().find(|ink| ink.letter() == letter).map(Ink::sequence),
            None => None,
        };
        let rest = if sequence.is_some() { chars.as_str() } else { part };
        out.push_str(sequence.unwrap_or_default());
        out.push_str(&safe(rest));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_protocol::display::sanitize;

    #[test]
    fn only_our_own_styling_becomes_escape_sequences() {
        let text =
            format!("{} \u{1b}[32mnot ours\u{1b}[0m \u{100000}\u{100000}g", inked(Ink::Red, "a\u{1b}[2Jb"));
        let shown = rendered(&text, sanitize::line);
        assert_eq!(shown, "\u{1b}[31mab\u{1b}[0m not ours \u{100000}\u{100000}g");
    }
}
