//! Repeated failure: the same command fails with the same exit code and the same normalized output.

use super::Trace;
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::config::StuckConfig;
use std::collections::BTreeSet;

/// Longer normalized output is cut.
const OUTPUT_MAX: usize = 2000;

/// The signature of a failure: command, exit code, normalized output.
pub fn signature(command: &str, exit_code: Option<i32>, output: &str) -> Digest {
    let code = exit_code.map_or_else(|| "none".to_owned(), |c| c.to_string());
    let normal = normalise(output);
    // Parallel runners print the same lines in varying order.
    let lines: BTreeSet<&str> = normal.lines().collect();
    let mut text = format!("{command}\u{0}{code}");
    for line in lines {
        text.push('\u{0}');
        text.push_str(line);
    }
    Digest::of(text.as_bytes())
}

/// Strips what differs between two runs of the same failure: line numbers, times, addresses, ids, folders in paths,
/// and lines about passing tests and building.
pub fn normalise(output: &str) -> String {
    let mut out = String::with_capacity(OUTPUT_MAX + 256);
    for line in output.lines() {
        if is_noise(line.trim()) {
            continue;
        }
        let start = out.len();
        normalise_line(&mut out, line);
        let end = out.trim_end().len().max(start);
        out.truncate(end);
        if out.len() > start {
            out.push('\n');
        }
        if out.len() >= OUTPUT_MAX {
            break;
        }
    }
    ralph_loop_protocol::display::text::head(out.trim(), OUTPUT_MAX).to_owned()
}

/// Whether a line says nothing about the failure.
fn is_noise(line: &str) -> bool {
    const BUILDING: [&str; 13] = [
        "Compiling ",
        "Downloading ",
        "Downloaded ",
        "Finished ",
        "Running ",
        "Fresh ",
        "Checking ",
        "Blocking ",
        "Updating ",
        "Locking ",
        "Building ",
        "Starting ",
        "Installing ",
    ];
    const PASSING: [&str; 9] =
        ["--- PASS: ", "=== RUN ", "PASS [", "✓ ", "✔ ", "√ ", "ok \t", "ok  \t", "SETUP "];
    BUILDING.iter().chain(&PASSING).any(|start| line.starts_with(start))
        || line.ends_with(" ... ok")
        || line.ends_with(" PASSED")
        || line.contains(" PASSED [")
}

fn normalise_line(out: &mut String, line: &str) {
    let start = out.len();
    let mut word = String::new();
    let mut escape = false;
    for c in line.chars().chain(std::iter::once(' ')) {
        // Colors depend on the terminal.
        if escape {
            escape = !c.is_ascii_alphabetic();
            continue;
        }
        if c == '\u{1b}' {
            escape = true;
            continue;
        }
        if c.is_alphanumeric() || matches!(c, '_' | '/' | '.' | '-' | '\\') {
            word.push(c);
            continue;
        }
        push_word(out, &word);
        word.clear();
        let c = if c.is_whitespace() || c.is_control() { ' ' } else { c };
        if !(c == ' ' && (out.len() == start || out.ends_with(' '))) {
            out.push(c);
        }
    }
}

fn push_word(out: &mut String, word: &str) {
    // Only the last part of a path: the same test fails in another clone.
    let name = match word.rfind(['/', '\\']) {
        Some(at) if word.len() > 1 => &word[at + 1..],
        _ => word,
    };
    if name.is_empty() {
        return;
    }
    // `work-3fa91c` is `work` with an id.
    if let Some((stem, id)) = name.rsplit_once('-')
        && !stem.is_empty()
        && id.len() >= 4
        && id.bytes().all(|b| b.is_ascii_hexdigit())
        && id.bytes().any(|b| b.is_ascii_digit())
    {
        push_word(out, stem);
        out.push('#');
        return;
    }
    let digits = name.strip_prefix("0x").unwrap_or(name);
    let hexish = (digits.len() >= 7 || digits.len() < name.len())
        && digits.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
        && name.bytes().any(|b| b.is_ascii_digit());
    if hexish || is_made_up(name) {
        out.push('#');
        return;
    }
    // The number in `test_12` or `utf8` is part of a name: another number is another failure.
    let named = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && !name.contains('-');
    let mut run = String::new();
    let mut before = '\0';
    for c in name.chars().chain(std::iter::once('\0')) {
        if c.is_ascii_digit() || (c == '.' && !run.is_empty() && !named) {
            run.push(c);
            continue;
        }
        if !run.is_empty() {
            if named && run.len() <= 4 && before != '.' {
                out.push_str(&run)
            } else {
                out.push('#')
            }
            run.clear();
        }
        if c != '\0' {
            out.push(c);
            before = c;
        }
    }
}

/// A generated name: `tmpk3j2h1x`, `Xy7Qa91bZ4`.
fn is_made_up(name: &str) -> bool {
    if name
        .strip_prefix("tmp")
        .is_some_and(|rest| rest.len() >= 5 && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    {
        return true;
    }
    if name.len() < 8 || name.contains(['_', '.']) {
        return false;
    }
    let turns = name
        .as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
        .count();
    turns >= 3
}

/// The newest failure, if at least `threshold` of the last five (including it) are the same.
pub(super) fn repeated(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let newest = traces.last()?;
    newest.failure.as_ref()?;
    let span = (config.failure_window as usize).max(super::threshold(config));
    let recent = &traces[traces.len().saturating_sub(span)..];
    let same = recent.iter().filter(|t| t.same_failure(newest)).count();
    (same >= super::threshold(config))
        .then(|| format!("the same failure {same} times in the last {} iterations", recent.len()))
}

/// Whether the newest failure is flaky: the checks passed in between.
pub(super) fn comes_and_goes(traces: &[Trace]) -> bool {
    let Some(newest) = traces.last().filter(|t| t.failure.is_some()) else { return false };
    let Some(first) = traces.iter().position(|t| t.same_failure(newest)) else { return false };
    traces[first..].iter().any(|t| t.failure.is_none())
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    #[test]
    fn random_differences_do_not_matter() {
        let a =
            "thread 'x' panicked at /tmp/ralph-1/src/lib.rs:41:9 after 1.25s, id 4f9a8b7c6d at 0x7ffdeadbeef";
        let b = "thread 'x' panicked at /home/u/w/src/lib.rs:57:13 after 12s, id 0a1b2c3d4e at 0x7ffc0ffee00";
        assert_eq!(normalise(a), normalise(b));
        let pairs = [
            ("2026-11-15T12:00:01.123Z failed", "2026-11-15T12:44:09.001Z failed"),
            ("in /tmp/tmpk3j2h1x/out", "in /tmp/tmpzz81ab0/out"),
            ("dir tmpabcdefg gone", "dir tmphijklmn gone"),
            ("req 550e8400-e29b-41d4-a716-446655440000", "req 123e4567-e89b-12d3-a456-426614174000"),
            ("worker-3 pid 4711 port 43122", "worker-1 pid 912 port 50001"),
            ("in /tmp/build-3fa91c now", "in /tmp/build-0b77de now"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
        ];
        for (a, b) in pairs {
            assert_eq!(normalise(a), normalise(b), "{a}");
        }
    }

    #[test]
    fn real_differences_matter() {
        assert_ne!(signature("t", Some(1), "expected foo"), signature("t", Some(1), "expected bar"));
        assert_ne!(signature("t", Some(1), "x"), signature("t", Some(2), "x"));
        assert_ne!(signature("t", Some(1), "x"), signature("u", Some(1), "x"));
        assert_ne!(normalise("FAILED a.py::test_case_1"), normalise("FAILED a.py::test_case_2"));
        assert_ne!(normalise("--- FAIL: TestParse7"), normalise("--- FAIL: TestParse8"));
    }

    #[test]
    fn order_and_passing_tests_do_not_matter() {
        let a = "test a ... ok\ntest b ... FAILED\ntest c ... FAILED\n";
        let b = "   Compiling x v0.1.0\ntest c ... FAILED\ntest b ... FAILED\ntest a ... ok\ntest d ... ok\n";
        assert_eq!(signature("t", Some(1), a), signature("t", Some(1), b));
    }

    #[test]
    fn output_is_bounded() {
        assert!(normalise(&"word ".repeat(10_000)).len() <= OUTPUT_MAX);
        assert!(normalise(&"word\n".repeat(10_000)).len() <= OUTPUT_MAX);
    }

    #[test]
    fn third_of_five_failures_counts_and_flaky_ones_do_not() {
        let config = StuckConfig::default();
        let of = |kinds: &[&str]| -> Vec<Trace> {
            kinds
                .iter()
                .zip(1..)
                .map(|(k, n)| trace(n, &format!("t{n}"), (*k != "-").then_some(*k), 9))
                .collect()
        };
        assert!(repeated(&of(&["f", "f"]), &config).is_none());
        assert!(repeated(&of(&["f", "g", "f", "g", "f"]), &config).is_some());
        assert!(repeated(&of(&["f", "f", "g", "g", "g", "f"]), &config).is_none());
        assert!(comes_and_goes(&of(&["f", "-", "f"])));
        assert!(!comes_and_goes(&of(&["-", "f", "g", "f"])));
    }
}
