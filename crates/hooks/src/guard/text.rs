//! Partly unknown texts, and wildcards.
//!
//! What a command line doesn't show is a gap in the text: `⟦NAME⟧` for a variable that the command doesn't set,
//! `⟦›words⟧` for the output of a command. Rules and paths match such texts like any other.

const OPEN: char = '⟦';
const CLOSE: char = '⟧';
/// Begins a gap for the output of a command.
const OUTPUT: char = '›';
/// White space within a gap, so that a gap never splits into words.
const SPACE: char = '␣';
const TEXT_MAX: usize = 64 * 1024;
const GAP_MAX: usize = 1024;

pub fn variable(name: &str) -> String {
    format!("{OPEN}{name}{CLOSE}")
}

/// The gap for what a command prints.
pub fn output(words: &str) -> String {
    let mut inner = String::new();
    for c in words.chars().take(GAP_MAX) {
        match c {
            c if c.is_whitespace() => inner.push(SPACE),
            c if c.is_alphanumeric() || "/._-~:@+=,*?%".contains(c) || c == SPACE => inner.push(c),
            OPEN | CLOSE | OUTPUT => {}
            _ => inner.push('·'),
        }
    }
    format!("{OPEN}{OUTPUT}{inner}{CLOSE}")
}

pub fn gaps(text: &str) -> impl Iterator<Item = &str> {
    text.split(OPEN).skip(1).filter_map(|rest| rest.split(CLOSE).next())
}

fn commands(text: &str) -> impl Iterator<Item = &str> {
    gaps(text).filter_map(|gap| gap.strip_prefix(OUTPUT))
}

/// The programs whose output is part of a text; the first one of a pipeline.
pub fn first_producers(text: &str) -> impl Iterator<Item = &str> {
    commands(text).map(|words| words.split(SPACE).next().unwrap_or_default())
}

/// The words of the commands whose output is part of a text.
pub fn producers(text: &str) -> impl Iterator<Item = &str> {
    commands(text).flat_map(|words| words.split(SPACE))
}

pub fn has_gap(text: &str) -> bool {
    text.contains(OPEN)
}

pub fn has_output(text: &str) -> bool {
    commands(text).next().is_some()
}

/// Whether a part is `$1` or `$@`: the arguments of a function or script.
pub fn has_positional(text: &str) -> bool {
    gaps(text).any(|gap| gap.starts_with(|c: char| c.is_ascii_digit() || c == '@'))
}

/// The text with something else in place of each gap.
pub fn fill(text: &str, filling: &str) -> String {
    let mut parts = text.split(OPEN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(filling);
        out.push_str(part.split_once(CLOSE).map_or("", |(_, rest)| rest));
    }
    out
}

/// The last part of a path; slashes within gaps don't count.
pub fn base_name(text: &str) -> &str {
    let mut inside = false;
    let slash = text.char_indices().filter(|(_, c)| {
        inside = (inside || *c == OPEN) && *c != CLOSE;
        !inside && *c == '/'
    });
    slash.last().map_or(text, |(at, _)| &text[at + 1..])
}

/// Replaces the marks of gaps in a text from outside.
pub fn without_marks(text: &str) -> String {
    text.replace([OPEN, CLOSE, OUTPUT, SPACE], "\u{fffd}")
}

/// A text for display: gaps as `…`.
pub fn shown(text: &str) -> String {
    fill(text, "…")
}

/// Appends to a text; beyond the limit the rest is unknown.
pub fn push(text: &mut String, more: &str) {
    if text.len() + more.len() <= TEXT_MAX {
        text.push_str(more);
    } else if !has_output(text) {
        text.push_str(&output("more"));
    }
}

/// Whether a text fits a pattern: `*` is any text, `?` one character.
pub fn matches(pattern: &str, text: &str) -> bool {
    let first = pattern.as_bytes().first();
    let literal = first.is_some_and(|first| !b"*?".contains(first)) && first != text.as_bytes().first();
    if literal || !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

pub fn matches_any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, text))
}

/// Expands the escapes of `$'…'`; also for `printf` and `echo -e`.
pub fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let push = |c: char, out: &mut Vec<u8>| out.extend(c.encode_utf8(&mut [0; 4]).bytes());
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(c, &mut out);
            continue;
        }
        let Some(kind) = rest.next() else { break };
        let mut digits = |radix: u32, most: usize, first: u32| {
            let mut number = first;
            for _ in 0..most {
                let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix)) else { break };
                number = number.wrapping_mul(radix).wrapping_add(digit);
                rest.next();
            }
            number
        };
        match kind {
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            'r' => out.push(b'\r'),
            'x' => out.push(digits(16, 2, 0) as u8),
            'u' => push(char::from_u32(digits(16, 4, 0)).unwrap_or('?'), &mut out),
            'U' => push(char::from_u32(digits(16, 8, 0)).unwrap_or('?'), &mut out),
            '0' => out.push(digits(8, 3, 0) as u8),
            '1'..='7' => out.push(digits(8, 2, kind.to_digit(8).unwrap_or(0)) as u8),
            other => push(other, &mut out),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
