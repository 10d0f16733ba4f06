//! Pure text helpers: cutting at character boundaries, durations and ages for display.

use std::borrow::Cow;
use std::time::Duration;

/// The first `max` bytes of `text`, cut at a character boundary.
pub fn head(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The last `max` bytes of `text`, cut at a character boundary.
pub fn tail(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut start = text.len() - max;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The last `max` lines of `text`.
pub fn tail_lines(text: &str, max: usize) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let mut start = body.len();
    for _ in 0..max {
        match body[..start].rfind('\n') {
            Some(at) => start = at,
            None => return text,
        }
    }
    &text[start + 1..]
}

/// The first and last lines of `text`, at most about `max` bytes; a line between them says how many are left out.
pub fn ends(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    // Whole lines if there are any.
    let first = head(text, max / 2);
    let first = first.rfind('\n').map_or(first, |at| &first[..at]);
    let last = tail(text, max / 2);
    let last = last.find('\n').map_or(last, |at| &last[at + 1..]);
    let between = text[first.len()..text.len() - last.len()].matches('\n').count().saturating_sub(1).max(1);
    format!("{first}\n… {} left out …\n{last}", count(between, "line")).into()
}

/// One line for an event or a list, safe to show: sanitized, one space between words, at most `max` bytes, `…` if
/// cut.
pub fn one_line(text: &str, max: usize) -> String {
    let mut flat = String::with_capacity(text.len().min(max + 8));
    let mut space = false;
    // The rest can't be shown any more.
    for c in crate::display::sanitize::line(head(text, max.saturating_mul(4).saturating_add(4096))).chars() {
        let c = if c.is_whitespace() { ' ' } else { c };
        if c == ' ' {
            space = !flat.is_empty();
            continue;
        }
        if space {
            flat.push(' ');
            space = false;
        }
        flat.push(c);
        if flat.len() > max {
            let mut cut = head(&flat, max.saturating_sub(3)).to_owned();
            cut.push('…');
            return cut;
        }
    }
    flat
}

/// `42 s`, `3 min 12 s`, `2 h 05 min`.
pub fn duration(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0 if length.as_millis() > 0 => format!("{} ms", length.as_millis()),
        0..=59 => format!("{seconds} s"),
        60..=3599 => match seconds % 60 {
            0 => format!("{} min", seconds / 60),
            rest => format!("{} min {rest} s", seconds / 60),
        },
        3600..=172_799 => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
        _ => match seconds % 86_400 / 3600 {
            0 => format!("{} days", seconds / 86_400),
            rest => format!("{} days {rest} h", seconds / 86_400),
        },
    }
}

/// `0:42`, `1:02:03`: a running clock.
pub fn clock(length: Duration) -> String {
    let seconds = length.as_secs();
    if seconds < 3600 {
        format!("{}:{:02}", seconds / 60, seconds % 60)
    } else {
        format!("{}:{:02}:{:02}", seconds / 3600, seconds % 3600 / 60, seconds % 60)
    }
}

/// `1 file`, `3 files`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Longer words are too long to be a typo.
const WORD_MAX: usize = 100;

/// The candidate nearest to `word`, for "did you mean".
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > WORD_MAX {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 3 + 1)
        .min()
        .map(|(_, candidate)| candidate)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = if ca == *cb { diagonal } else { 1 + diagonal.min(row[j]).min(row[j + 1]) };
            diagonal = row[j + 1];
            row[j + 1] = cost;
        }
    }
    row[b.len()]
}

/// The innermost cause of an error in one line: the outer ones often only repeat a URL.
pub fn deepest_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    one_line(&cause.to_string(), 200)
}

/// Percent-encodes a text for a query or a path segment.
pub fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_never_break_a_character() {
        assert_eq!(head("añb", 2), "a");
        assert_eq!(tail("añb", 2), "b");
        assert_eq!(tail_lines("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(tail_lines("a\nb", 5), "a\nb");
        assert_eq!(tail_lines("", 3), "");
        assert_eq!(ends("a\nb\nc", 9), "a\nb\nc");
        assert_eq!(ends("one\ntwo\nthree\nfour", 12), "one\n… 2 lines left out …\nfour");
    }

    #[test]
    fn one_line_flattens_and_bounds() {
        assert_eq!(one_line("  a\n\tb\u{1b}[0m ", 80), "a b");
        let cut = one_line(&"x".repeat(100), 10);
        assert!(cut.ends_with('…') && cut.len() <= 10, "{cut}");
    }

    #[test]
    fn durations_are_readable() {
        let said: Vec<String> =
            [0, 5, 60, 192, 7500].iter().map(|s| duration(Duration::from_secs(*s))).collect();
        assert_eq!(said, ["0 s", "5 s", "1 min", "3 min 12 s", "2 h 05 min"]);
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
    }

    #[test]
    fn nearest_finds_a_slip_and_refuses_nonsense() {
        assert_eq!(nearest("verifers", ["verifiers", "agents"]), Some("verifiers"));
        assert_eq!(nearest("zzzzzz", ["verifiers", "agents"]), None);
        let long = "max_iterations".repeat(100);
        assert_eq!(nearest(&long, [long.as_str()]), None, "too long to be a slip");
    }
}
