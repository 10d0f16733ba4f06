//! The lines of an output that say why its first failing test failed: both sides of the assertion and the place in
//! the repo, not the frames of the runner.

/// Lines of one assertion.
const LINES_MAX: usize = 6;
/// Lines searched.
const SEARCHED: usize = 4000;

/// The first assertion in an output; empty if no known runner printed one.
pub fn first_assertion(output: &str) -> Vec<&str> {
    let from = output.lines().count().saturating_sub(SEARCHED);
    let lines: Vec<&str> = output.lines().skip(from).map(str::trim_end).collect();
    let runners = [rust, pytest, traceback, node, go, expected_and_actual];
    let found = runners.into_iter().find_map(|runner| {
        let found = runner(&lines);
        (!found.is_empty()).then_some(found)
    });
    let mut found = found.unwrap_or_default();
    found.truncate(LINES_MAX);
    found
}

/// `thread 'a' panicked at src/lib.rs:3:5:`, the message, `left: 1`, `right: 2`.
fn rust<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let start = lines.iter().position(|line| line.starts_with("thread '") && line.contains(" panicked at "));
    let Some(start) = start else { return Vec::new() };
    let ends = |line: &&&str| {
        let line = line.trim_start();
        !(line.is_empty() || line.starts_with("note: ") || line.starts_with("stack backtrace"))
    };
    lines[start..].iter().take_while(ends).copied().collect()
}

/// The `E` lines of the first test, and the last place in the repo.
fn pytest<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let is_error = |line: &&str| line.strip_prefix("E  ").is_some_and(|rest| !rest.trim().is_empty());
    let Some(start) = lines.iter().position(is_error) else { return Vec::new() };
    // Sections begin with `____ test_name ____`.
    let rest = &lines[start..];
    let end = rest
        .iter()
        .position(|line| line.starts_with("____") || line.starts_with("===="))
        .unwrap_or(rest.len());
    let mut found: Vec<&str> =
        rest[..end].iter().filter(|line| is_error(line)).take(LINES_MAX - 1).copied().collect();
    let is_place = |line: &&&str| {
        let place = line.split_once(".py:").map(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()));
        place == Some(true) && !line.starts_with(' ') && is_own(line)
    };
    found.extend(rest[..end].iter().rev().find(is_place));
    found
}

/// Node's test runner, mocha and similar: the error, `1 !== 2` or `expected` and `actual`, and the first frame.
fn node<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let thrown = |at: usize, line: &str| {
        let below = |line: &&str| line.trim_start().starts_with("at ");
        let error = line.split(": ").next().is_some_and(|name| name.ends_with("Error"));
        // TAP says on the line before whose error it is; `|-` begins a block.
        let tap = at > 0 && lines[at - 1].trim_start().starts_with("failureType: 'testCodeFailure'");
        (error && lines.get(at + 1).is_some_and(below)) || (tap && !line.ends_with("|-"))
    };
    let start = lines.iter().enumerate().position(|(at, line)| {
        let line = line.trim_start();
        line.contains("AssertionError")
            || line.starts_with("Expected values to be")
            || line.starts_with("expect(received)")
            || thrown(at, line)
    });
    let Some(start) = start else { return Vec::new() };
    let mut found = vec![lines[start]];
    let mut placed = false;
    for line in &lines[start + 1..] {
        let text = line.trim_start();
        // The next test.
        if ["✖ ", "not ok ", "● ", "FAIL "].iter().any(|mark| text.starts_with(mark)) {
            break;
        }
        let side = ["expected:", "actual:", "Expected", "Received", "+ expected", "- Expected", "+ Received"];
        let in_stack = text.starts_with("at ") || text.starts_with("❯ ");
        let frame = (in_stack || text.ends_with(')') && text.contains(" (/")) && is_own(text);
        let says = side.iter().any(|mark| text.starts_with(mark)) || text.contains(" !== ");
        if says || (frame && !std::mem::replace(&mut placed, frame)) {
            found.push(line);
        }
        if found.len() >= LINES_MAX {
            break;
        }
    }
    // A name alone isn't an assertion.
    if found.len() == 1 && !found[0].contains(": ") { Vec::new() } else { found }
}

/// `--- FAIL: TestA`, and the lines below it: `a_test.go:8: got 1, want 2`.
fn go<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let Some(start) = lines.iter().position(|line| line.trim_start().starts_with("--- FAIL: ")) else {
        return Vec::new();
    };
    let below = |line: &&&str| line.starts_with([' ', '\t']);
    // Without `-v` they follow the name; with it they come before.
    let after: Vec<&str> = lines[start + 1..].iter().take_while(below).copied().collect();
    let told = if after.is_empty() {
        let before = lines[..start].iter().rev().take_while(below).count();
        lines[start - before..start].to_vec()
    } else {
        after
    };
    std::iter::once(lines[start]).chain(told.into_iter().filter(|line| !line.trim().is_empty())).collect()
}

/// JUnit, minitest, RSpec, PHPUnit: a line with both sides, or two lines.
fn expected_and_actual<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let both = |line: &str| line.contains("but was") || line.contains("Failed asserting that");
    let one = |line: &str| {
        let text = line.trim_start().to_ascii_lowercase();
        text.starts_with("expected: ") || text.starts_with("expected ")
    };
    let Some(at) = lines.iter().position(|line| both(line) || one(line)) else { return Vec::new() };
    let mut found = vec![lines[at]];
    if !both(lines[at]) {
        let other = |line: &&&str| {
            let text = line.trim_start().to_ascii_lowercase();
            text.starts_with("actual: ") || text.starts_with("got: ")
        };
        match lines[at + 1..].iter().take(4).find(other) {
            Some(other) => found.push(other),
            None => return Vec::new(),
        }
    }
    found
}

/// A Python exception: the last place in the repo, its line, and the exception.
fn traceback<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    // What unittest reports comes after what the tests print.
    let is_report = |line: &&str| line.starts_with("FAIL: ") || line.starts_with("ERROR: ");
    let report = &lines[lines.iter().position(is_report).unwrap_or(0)..];
    let Some(start) = report.iter().position(|line| line.starts_with("Traceback (most recent call last)"))
    else {
        return Vec::new();
    };
    let rest = &report[start + 1..];
    // Notes and underlines of a frame are indented, too.
    let Some(end) = rest.iter().position(|line| !line.starts_with(' ')) else { return Vec::new() };
    let place = rest[..end].iter().rposition(|line| line.trim_start().starts_with("File \"") && is_own(line));
    let frame = place.map_or(&[][..], |at| &rest[at..(at + 2).min(end)]);
    frame.iter().chain(&rest[end..=end]).copied().collect()
}

/// Whether a frame is in the repo, not in a runner or a library.
fn is_own(frame: &str) -> bool {
    const FOREIGN: &[&str] =
        &["node:", "node_modules", "site-packages", "dist-packages", "/lib/python", "internal/", "/rustc/"];
    !FOREIGN.iter().any(|mark| frame.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: &str) -> String {
        first_assertion(output).join("\n")
    }

    #[test]
    fn rust_shows_both_sides() {
        let output = "running 1 test\n---- tests::adds stdout ----\n\nthread 'tests::adds' (7) panicked at src/lib.rs:9:5:\nassertion `left == right` failed\n  left: -1\n right: 5\nnote: run with `RUST_BACKTRACE=1`\n\nfailures:\n    tests::adds\n";
        let want = "thread 'tests::adds' (7) panicked at src/lib.rs:9:5:\nassertion `left == right` failed\n  left: -1\n right: 5";
        assert_eq!(of(output), want);
    }

    #[test]
    fn pytest_shows_its_error_lines_and_the_own_place() {
        let output = "____ test_adds ____\n\n    def test_adds():\n>       assert add(2, 3) == 5\nE       assert -1 == 5\nE        +  where -1 = add(2, 3)\n\ntests/test_calc.py:5: AssertionError\n/usr/lib/python3/dist-packages/x.py:7: Error\n____ test_other ____\nE       assert 0\n";
        let want =
            "E       assert -1 == 5\nE        +  where -1 = add(2, 3)\ntests/test_calc.py:5: AssertionError";
        assert_eq!(of(output), want);
    }

    #[test]
    fn node_shows_expected_and_actual_and_not_its_own_frames() {
        let output = "✖ adds (1.2ms)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n  -1 !== 5\n\n      at Test.run (node:internal/test_runner/test:797:25)\n      at TestContext.<anonymous> (file:///repo/calc.test.js:6:10)\n      at other (file:///repo/other.js:1:1)\n    code: 'ERR_ASSERTION',\n    actual: -1,\n    expected: 5,\n";
        let want = "  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  -1 !== 5\n      at TestContext.<anonymous> (file:///repo/calc.test.js:6:10)\n    actual: -1,\n    expected: 5,";
        assert_eq!(of(output), want);
        let jest = "  ● sum › adds\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 5\n    Received: -1\n\n      at Object.<anonymous> (src/a.test.js:4:17)\n      at Promise.then (node_modules/jest-circus/x.js:1:1)\n";
        assert_eq!(of(jest).lines().count(), 4, "{}", of(jest));
    }

    #[test]
    fn thrown_errors_name_the_own_place() {
        let tap = "not ok 1 - throws\n  ---\n  failureType: 'testCodeFailure'\n  error: 'no g here'\n  stack: |-\n    exports.g (/repo/inner.js:1:27)\n    Test.run (node:internal/test_runner/test:796:25)\n";
        assert_eq!(of(tap), "  error: 'no g here'\n    exports.g (/repo/inner.js:1:27)");
        let sides = "  failureType: 'testCodeFailure'\n  error: |-\n    Expected values to be strictly equal:\n    1 !== 2\n  stack: |-\n    TestContext.<anonymous> (/repo/calc.test.js:2:29)\n";
        let want = "    Expected values to be strictly equal:\n    1 !== 2\n    TestContext.<anonymous> (/repo/calc.test.js:2:29)";
        assert_eq!(of(sides), want);
        let spec = "  TypeError: no g here\n      at exports.g (/repo/inner.js:1:27)\n      at Test.run (node:internal/x:7:2)\n";
        assert_eq!(of(spec), "  TypeError: no g here\n      at exports.g (/repo/inner.js:1:27)");
        let python = "ERROR: test_db (test_net.T)\nTraceback (most recent call last):\n  File \"/repo/test_net.py\", line 4, in test_db\n    connect()\n  File \"/usr/lib/python3.11/socket.py\", line 851, in create_connection\n    raise exceptions[0]\nConnectionRefusedError: [Errno 111] Connection refused\n\nRan 5 tests in 0.318s\n";
        let want = "  File \"/repo/test_net.py\", line 4, in test_db\n    connect()\nConnectionRefusedError: [Errno 111] Connection refused";
        assert_eq!(of(python), want);
    }

    #[test]
    fn go_shows_got_and_want_with_and_without_verbose() {
        let plain =
            "--- FAIL: TestAdd (0.00s)\n    calc_test.go:8: Add(2, 3) = -1, want 5\nFAIL\nexit status 1\n";
        assert_eq!(of(plain), "--- FAIL: TestAdd (0.00s)\n    calc_test.go:8: Add(2, 3) = -1, want 5");
        let verbose =
            "=== RUN   TestAdd\n    calc_test.go:8: got -1, want 5\n--- FAIL: TestAdd (0.00s)\nFAIL\n";
        assert_eq!(of(verbose), "--- FAIL: TestAdd (0.00s)\n    calc_test.go:8: got -1, want 5");
    }

    #[test]
    fn other_runners_show_both_sides() {
        let unittest = "FAIL: test_adds (test_calc.T.test_adds)\nTraceback (most recent call last):\n  File \"/repo/test_calc.py\", line 6, in test_adds\n    self.assertEqual(add(2, 3), 5)\n  File \"/usr/lib/python3.12/unittest/case.py\", line 1, in x\nAssertionError: -1 != 5\n";
        let want = "  File \"/repo/test_calc.py\", line 6, in test_adds\n    self.assertEqual(add(2, 3), 5)\nAssertionError: -1 != 5";
        assert_eq!(of(unittest), want);
        let rspec = "  1) adds\n     Failure/Error: expect(add(2, 3)).to eq 5\n\n       expected: 5\n            got: -1\n";
        assert_eq!(of(rspec), "       expected: 5\n            got: -1");
        assert_eq!(of("error[E0308]: mismatched types\nexpected `i32`, found `u8`\n"), "");
        assert_eq!(of(""), "");
    }
}
