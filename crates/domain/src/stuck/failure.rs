//! Repeated failure: the same command fails with the same exit code and the same normalised output, again and again.

use super::Trace;
use crate::id::Digest;

/// Output beyond this many characters does not count.
const OUTPUT_MAX: usize = 2000;
/// Iterations looked at.
const SPAN: usize = 5;

/// The signature of a failure: command, exit code, normalised output.
pub fn signature(command: &str, exit_code: Option<i32>, output: &str) -> Digest {
    let code = exit_code.map_or_else(|| "none".to_owned(), |c| c.to_string());
    Digest::of(format!("{command}\u{0}{code}\u{0}{}", normalise(output)).as_bytes())
}

/// Strips what differs between two runs of the same failure: numbers, addresses, times, ids and the folders in paths.
pub fn normalise(output: &str) -> String {
    let mut out = String::with_capacity(OUTPUT_MAX);
    let mut word = String::new();
    for c in output.chars().chain(std::iter::once('\n')) {
        let part_of_word = c.is_alphanumeric() || matches!(c, '_' | '/' | '.' | '-' | '\\');
        if part_of_word {
            word.push(c);
            continue;
        }
        push_word(&mut out, &word);
        word.clear();
        let c = if c.is_whitespace() || c.is_control() { ' ' } else { c };
        if !(c == ' ' && out.ends_with(' ')) {
            out.push(c);
        }
        if out.len() >= OUTPUT_MAX {
            break;
        }
    }
    crate::text::head(out.trim(), OUTPUT_MAX).to_owned()
}

fn push_word(out: &mut String, word: &str) {
    // A path keeps only its last part: the same test fails in another clone, too.
    let name = match word.rfind(['/', '\\']) {
        Some(at) if word.len() > 1 => &word[at + 1..],
        _ => word,
    };
    let digits = name.strip_prefix("0x").unwrap_or(name);
    let hexish = (digits.len() >= 7 || digits.len() < name.len())
        && digits.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
        && name.bytes().any(|b| b.is_ascii_digit());
    if hexish {
        out.push('#');
        return;
    }
    let mut in_number = false;
    for c in name.chars() {
        if c.is_ascii_digit() {
            if !in_number {
                out.push('#');
            }
            in_number = true;
        } else {
            // `1.25` and `12` are both one number.
            if c == '.' && in_number {
                continue;
            }
            in_number = false;
            out.push(c);
        }
    }
}

/// The newest failure, if it is the same as at least `threshold` of the last five (itself included).
pub(super) fn repeated(traces: &[Trace], threshold: usize) -> Option<String> {
    let newest = traces.last()?.failure.as_ref()?;
    let recent = &traces[traces.len().saturating_sub(SPAN)..];
    let same = recent.iter().filter(|t| t.failure.as_ref() == Some(newest)).count();
    (same >= threshold)
        .then(|| format!("the same failure {same} times in the last {} iterations", recent.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_chance_does_not_matter() {
        let a =
            "thread 'x' panicked at /tmp/ralph-1/src/lib.rs:41:9 after 1.25s, id 4f9a8b7c6d at 0x7ffdeadbeef";
        let b = "thread 'x' panicked at /home/u/w/src/lib.rs:57:13 after 12s, id 0a1b2c3d4e at 0x7ffc0ffee00";
        assert_eq!(normalise(a), normalise(b));
    }

    #[test]
    fn what_differs_in_substance_does() {
        assert_ne!(signature("t", Some(1), "expected foo"), signature("t", Some(1), "expected bar"));
        assert_ne!(signature("t", Some(1), "x"), signature("t", Some(2), "x"));
        assert_ne!(signature("t", Some(1), "x"), signature("u", Some(1), "x"));
    }

    #[test]
    fn output_is_bounded() {
        assert!(normalise(&"word ".repeat(10_000)).len() <= OUTPUT_MAX);
    }
}
