//! Makes untrusted text (a file name, a branch, a title, an agent's message, a remote's answer) safe to display.
//!
//! Removes everything that controls a terminal (control characters, escape sequences) or hides the real text:
//! direction changes, zero-width characters, tags. Letters of every script stay, and so do joined emoji. An
//! unterminated sequence is shown as text, so that it can't hide what follows.

use std::borrow::Cow;

/// One line: ends of lines and tabs become spaces.
pub fn line(text: &str) -> Cow<'_, str> {
    if is_clean(text) && !text.contains(['\n', '\t']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    walk(text, &mut |kept| {
        out.push(match kept {
            '\n' | '\t' => ' ',
            c => c,
        });
    });
    Cow::Owned(out)
}

/// Several lines: line feeds and tabs stay. A carriage return would let one line overwrite another and becomes a line feed.
pub fn block(text: &str) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    walk(text, &mut |kept| out.push(kept));
    Cow::Owned(out)
}

/// Text that comes in pieces, as a [`block`]: passes on whole lines and holds an unfinished one.
#[derive(Debug, Default)]
pub struct BlockStream {
    held: Vec<u8>,
}

/// A longer line is passed on in parts.
const LINE_MAX: usize = 64 * 1024;

impl BlockStream {
    /// Adds a piece; returns what may be shown now.
    pub fn push(&mut self, piece: &[u8]) -> String {
        let before = self.held.len();
        self.held.extend_from_slice(piece);
        // The held text has no line end.
        let end = match piece.iter().rposition(|b| *b == b'\n') {
            Some(at) => before + at + 1,
            None if self.held.len() > LINE_MAX => self.held.len() - self.held.len().min(3),
            None => return String::new(),
        };
        let rest = self.held.split_off(end);
        let ready = std::mem::replace(&mut self.held, rest);
        block(&String::from_utf8_lossy(&ready)).into_owned()
    }

    /// Ends the text; returns the rest.
    pub fn finish(&mut self) -> String {
        block(&String::from_utf8_lossy(&std::mem::take(&mut self.held))).into_owned()
    }
}

/// The same JSON, with `\u` escapes for what must not reach a terminal: programs read the same strings.
pub fn json(text: &str) -> Cow<'_, str> {
    let unsafe_in_json = |c: char| !matches!(c, '\n' | '\t' | '\r') && kind(c) != Kind::Plain;
    if !text.contains(unsafe_in_json) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if !unsafe_in_json(c) || (is_dependent(c) && depends_well(before, c, chars.peek().copied())) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
        before = Some(c);
    }
    Cow::Owned(out)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Controls the terminal.
    Control,
    /// Separates lines like a line feed.
    Separator,
    /// Is invisible, or changes the direction.
    Hidden,
    /// Belongs to its neighbors, or is a trick.
    Joiner,
    /// Selects the look of the character before it.
    Selector,
}

const ZWNJ: char = '\u{200c}';
const ZWJ: char = '\u{200d}';

fn kind(c: char) -> Kind {
    match c {
        ' '..='~' | '\n' | '\t' => Kind::Plain,
        '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{b}' | '\u{c}' => Kind::Separator,
        c if c.is_control() => Kind::Control,
        ZWNJ | ZWJ => Kind::Joiner,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Kind::Selector,
        // Soft hyphen, grapheme joiner, the Arabic letter mark, invisible vowels of Khmer and Mongolian.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => Kind::Hidden,
        // Zero-width spaces, marks and changes of the direction, invisible operators, isolates.
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {
            Kind::Hidden
        }
        // Fillers, the byte order mark, marks of annotations, tags.
        '\u{3164}' | '\u{ffa0}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => {
            Kind::Hidden
        }
        _ => Kind::Plain,
    }
}

fn is_clean(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t'))
        || text.chars().all(|c| kind(c) == Kind::Plain)
}

/// Calls `keep` for each character that may be shown.
fn walk(text: &str, keep: &mut dyn FnMut(char)) {
    let mut before = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let kept = match kind(c) {
            Kind::Plain => Some(c),
            Kind::Separator => Some(' '),
            Kind::Hidden => None,
            Kind::Control if c == '\r' => {
                rest = after.strip_prefix('\n').unwrap_or(after);
                keep('\n');
                before = Some('\n');
                continue;
            }
            Kind::Control => {
                rest = after_sequence(c, after);
                continue;
            }
            Kind::Joiner | Kind::Selector => depends_well(before, c, after.chars().next()).then_some(c),
        };
        if let Some(kept) = kept {
            keep(kept);
            before = Some(kept);
        }
        rest = after;
    }
}

fn is_dependent(c: char) -> bool {
    matches!(kind(c), Kind::Joiner | Kind::Selector)
}

/// Whether a joiner or a selector is legitimate between its neighbors.
fn depends_well(before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before.filter(|b| kind(*b) == Kind::Plain || kind(*b) == Kind::Selector) else {
        return false;
    };
    match (kind(c), after) {
        (Kind::Selector, _) => {
            kind(before) == Kind::Plain && !before.is_whitespace() && !before.is_ascii_alphabetic()
        }
        (_, Some(after)) => {
            (c == ZWJ && (is_emoji(before) || kind(before) == Kind::Selector) && is_emoji(after))
                || (joins(before) && joins(after))
        }
        (_, None) => false,
    }
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Letters and signs of scripts that use joiners: Arabic, Indic, Khmer, Mongolian.
fn joins(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// The text after an escape sequence that a control character begins; just `rest` if it begins none, or an
/// unterminated one.
fn after_sequence(control: char, rest: &str) -> &str {
    let (introducer, body) = match control {
        '\u{1b}' => match rest.chars().next() {
            Some(c) => (c, &rest[c.len_utf8()..]),
            None => return rest,
        },
        // The same in one character: `ESC [` is U+009B.
        c @ '\u{80}'..='\u{9f}' => (char::from(c as u8 - 0x40), rest),
        _ => return rest,
    };
    match introducer {
        '[' => after_csi(body).unwrap_or(body),
        // A device control string, a message to the system, a privacy message, a string, a command of the application.
        'P' | ']' | '^' | 'X' | '_' => after_string(body).unwrap_or(body),
        ' '..='/' => {
            let body = body.trim_start_matches(|c| matches!(c, ' '..='/'));
            body.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(body)
        }
        '0'..='~' => body,
        _ => rest,
    }
}

fn after_csi(body: &str) -> Option<&str> {
    let body =
        body.trim_start_matches(|c| matches!(c, '0'..='?')).trim_start_matches(|c| matches!(c, ' '..='/'));
    body.strip_prefix(|c| matches!(c, '@'..='~'))
}

/// Ends at a bell or a string terminator on the same line.
fn after_string(body: &str) -> Option<&str> {
    // Any other control character ends the search, so that many unterminated sequences don't each scan to the end.
    let end = body.find(char::is_control)?;
    let rest = &body[end..];
    rest.strip_prefix(['\u{7}', '\u{9c}']).or_else(|| rest.strip_prefix("\u{1b}\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_controls_are_removed() {
        for (text, want) in [
            ("\u{1b}]0;owned\u{7}title", "title"),
            ("\u{1b}]52;c;ZXZpbA==\u{1b}\\copy", "copy"),
            ("a\u{1b}[2Jb\u{1b}[1;31mc\u{1b}[0m", "abc"),
            ("a\u{9b}2Jb\u{9d}0;x\u{9c}c", "abc"),
            ("a\u{1b}cb\u{1b}(Bc\u{1b}7d", "abcd"),
            ("ok\rbad", "ok\nbad"),
            ("one\r\ntwo\tthree", "one\ntwo\tthree"),
            ("abc\u{8}\u{8}\u{8}xyz\u{7f}", "abcxyz"),
            ("a\u{2028}b\u{2029}c\u{85}d\u{b}e", "a b c d e"),
            ("\u{1b}P1$r\u{1b}\\x\u{1b}_y\u{1b}\\z\u{1b}^p\u{1b}\\", "xz"),
            ("end\u{1b}", "end"),
        ] {
            assert_eq!(block(text), want, "{text:?}");
        }
        assert_eq!(line("a\nb\tc\rd"), "a b c d");
    }

    #[test]
    fn a_sequence_without_an_end_hides_nothing() {
        assert_eq!(block("\u{1b}]0;never ends\nnext"), "0;never ends\nnext");
        assert_eq!(block("\u{1b}[31"), "31");
        assert_eq!(block("\u{9b}12\u{9b}34mx"), "12x");
        assert_eq!(block("\u{9d}0;a\u{9d}0;b\u{9c}c"), "0;ac");
        assert_eq!(block(&"\u{9d}".repeat(1 << 20)), "", "many beginnings are not each searched to the end");
    }

    #[test]
    fn hidden_and_reversing_characters_are_removed() {
        let hidden = "a\u{202e}b\u{2066}c\u{200f}d\u{61c}e\u{200b}f\u{feff}g\u{e0041}h\u{2060}i\u{ad}j";
        assert_eq!(block(hidden), "abcdefghij");
        // A joiner between letters that don't join, a row of selectors that carries a message.
        assert_eq!(block("pass\u{200d}word\u{200c}s"), "passwords");
        assert_eq!(block("❤\u{fe0f}\u{fe01}\u{e0121}\u{e0122}!"), "❤\u{fe0f}!");
        assert_eq!(block("x\u{fe01}y"), "xy");
    }

    #[test]
    fn ordinary_text_stays_unchanged() {
        for text in [
            "Größe, naïve, façade",
            "日本語 한국어 中文",
            "👩\u{200d}💻 👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 🏳\u{fe0f}\u{200d}🌈 👍🏽 1\u{fe0f}\u{20e3} 🇩🇪",
            "שלום مرحبا",
            "می\u{200c}خواهم क्\u{200d}ष",
            "e\u{301} ✓ ✗ ● ⏸ – … ▮▯",
            "葛\u{e0100}",
        ] {
            assert!(matches!(block(text), Cow::Borrowed(_)) || block(text) == text, "{text}");
            assert_eq!(json(text), text);
        }
    }

    #[test]
    fn text_in_pieces_is_sanitized_like_whole_text() {
        let text = "a\u{1b}]0;t\u{7}b\r\nünï\u{1b}[2Jx\n\u{202e}end";
        for size in 1..text.len() {
            let mut stream = BlockStream::default();
            let mut out: String = text.as_bytes().chunks(size).map(|piece| stream.push(piece)).collect();
            out.push_str(&stream.finish());
            assert_eq!(out, "ab\nünïx\nend", "in pieces of {size}");
        }
        let mut stream = BlockStream::default();
        assert!(
            !stream.push(&vec![b'x'; LINE_MAX + 1]).is_empty(),
            "a line that never ends is not kept for ever"
        );
    }

    #[test]
    fn json_escapes_unsafe_characters() {
        let text = "a\u{9b}2J\u{202e}b\u{e0041}\u{7f}\u{200b}👩\u{200d}💻 x\u{200d}y";
        let written = serde_json::to_string(text).unwrap();
        let safe = json(&written);
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
        assert_eq!(block(&safe), safe, "nothing is left to take out");
        assert!(
            safe.contains("\\u009b") && safe.contains("\\udb40\\udc41") && safe.contains("👩\u{200d}💻"),
            "{safe}"
        );
    }
}
