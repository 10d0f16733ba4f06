//! Counts executed tests in the output of known runners. A run without tests proves nothing.
//!
//! Scans lines as they arrive, so any log size needs constant memory.

pub use ralph_loop_protocol::proof::test_counts::TestCounts;

/// Reads a verifier's output line by line.
#[derive(Debug, Clone, Default)]
pub struct TestScanner {
    known: bool,
    counts: TestCounts,
    /// Go prints only package lines without `-v`: an `ok` package with tests counts as one.
    go_packages: u64,
    go_failed: u64,
    go_tests: TestCounts,
    /// Whether it lists each test.
    go_verbose: bool,
    /// Python's unittest reports the total on one line and skipped tests on a later one.
    ran: Option<u64>,
    /// Test programs that began, and those that reported an end.
    began: u64,
    ended: u64,
    /// Failed tests in the last report, and in summed programs.
    last_failed: u64,
    summed_failed: u64,
    partial: Vec<u8>,
}

/// Longer lines aren't summaries.
const LINE_MAX: usize = 4096;

impl TestScanner {
    /// Scans the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            if self.partial.len() + part.len() <= LINE_MAX {
                self.partial.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.partial);
                self.line(&line);
            }
        }
    }

    /// The counts; `None` if no known runner reported any.
    pub fn finish(mut self) -> Option<TestCounts> {
        let rest = std::mem::take(&mut self.partial);
        self.line(&rest);
        let mut counts = self.counts;
        // Failed tests are always printed, passed ones only with `-v`, so never add them.
        if self.go_verbose {
            counts.passed += self.go_tests.passed;
            counts.failed += self.go_tests.failed;
        } else {
            counts.passed += self.go_packages;
            counts.failed += self.go_failed;
        }
        self.known.then_some(counts)
    }

    /// Whether a test program began and ended without a result, so something killed it.
    pub fn is_unfinished(&self) -> bool {
        self.began > self.ended
    }

    /// Failed tests in the final report; a report of a retry replaces earlier ones.
    pub fn failed_at_end(&self) -> u64 {
        self.last_failed.max(self.summed_failed)
    }

    fn line(&mut self, raw: &[u8]) {
        let Ok(text) = std::str::from_utf8(raw) else { return };
        let text = ralph_loop_protocol::display::sanitize::block(text);
        let line = text.trim();
        if line.is_empty() {
            return;
        }
        self.began += u64::from(begins(line));
        self.ended += u64::from(line.starts_with("test result: "));
        let found = cargo(line)
            .or_else(|| nextest(line))
            .or_else(|| pytest(line))
            .or_else(|| jest(line))
            .or_else(|| vitest(line))
            .or_else(|| mocha(line))
            .or_else(|| surefire(line))
            .or_else(|| node(line))
            .or_else(|| phpunit(line))
            .or_else(|| examples(line))
            .or_else(|| dotnet(line))
            .or_else(|| prove(line))
            .or_else(|| self.unittest(line));
        if let Some(counts) = found {
            self.known = true;
            self.last_failed = counts.failed;
            self.summed_failed += if line.starts_with("test result: ") { counts.failed } else { 0 };
            self.counts.passed += counts.passed;
            self.counts.failed += counts.failed;
            return;
        }
        self.go(line);
    }

    /// `Ran 3 tests in 0.001s`, later `OK (skipped=1)` or `FAILED (failures=1, errors=1)`.
    fn unittest(&mut self, line: &str) -> Option<TestCounts> {
        if let Some(rest) = line.strip_prefix("Ran ") {
            let (number, rest) = rest.split_once(' ')?;
            rest.strip_prefix("tests in ").or_else(|| rest.strip_prefix("test in "))?;
            self.known = true;
            self.ran = Some(number.parse().ok()?);
            return None;
        }
        let end = line.strip_prefix("OK").or_else(|| line.strip_prefix("FAILED"));
        let end = end.or_else(|| line.strip_prefix("NO TESTS RAN"))?;
        if !(end.is_empty() || end.starts_with(" (")) {
            return None;
        }
        let ran = self.ran.take()?;
        let of = |word: &str| -> u64 {
            let digits =
                end.split([' ', '(', ',', ')']).find_map(|part| part.strip_prefix(word)?.strip_prefix('='));
            digits.and_then(|d| d.parse().ok()).unwrap_or(0)
        };
        let failed = of("failures") + of("errors");
        Some(TestCounts { passed: ran.saturating_sub(failed + of("skipped")), failed })
    }

    fn go(&mut self, line: &str) {
        if line.starts_with("--- PASS: ") {
            self.known = true;
            self.go_verbose = true;
            self.go_tests.passed += 1;
        } else if line.starts_with("=== RUN ") {
            self.go_verbose = true;
        } else if line.starts_with("--- FAIL: ") {
            self.known = true;
            self.go_tests.failed += 1;
        } else if let Some(rest) = line.strip_prefix("ok  \t").or_else(|| line.strip_prefix("ok \t")) {
            self.known = true;
            if !rest.contains("[no tests to run]") {
                self.go_packages += 1;
            }
        } else if line.starts_with("FAIL\t") {
            self.known = true;
            self.go_failed += 1;
        } else if line.starts_with('?') && line.ends_with("[no test files]") {
            self.known = true;
        }
    }
}

/// `running 3 tests`
fn begins(line: &str) -> bool {
    let rest = line.strip_prefix("running ");
    rest.and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")))
        .is_some_and(|number| number.parse::<u64>().is_ok())
}

/// `test result: ok. 3 passed; 0 failed; 0 ignored; …`
fn cargo(line: &str) -> Option<TestCounts> {
    let rest = line.strip_prefix("test result: ")?;
    Some(TestCounts { passed: number_before(rest, " passed")?, failed: number_before(rest, " failed")? })
}

/// `Summary [   0.013s] 3 tests run: 2 passed, 1 failed, 0 skipped`, and `error: no tests to run`.
fn nextest(line: &str) -> Option<TestCounts> {
    if line == "error: no tests to run" || line.starts_with("error: no tests to run ") {
        return Some(TestCounts::default());
    }
    let rest = line.strip_prefix("Summary [")?;
    let at = rest.find(" run: ")?;
    let rest = &rest[at..];
    let sum = |words: &[&str]| words.iter().filter_map(|w| number_before(rest, w)).sum();
    Some(TestCounts {
        passed: number_before(rest, " passed").unwrap_or(0),
        failed: sum(&[" failed", " timed out", " exec failed"]),
    })
}

/// `=== 2 failed, 3 passed in 0.12s ===`, `3 passed in 0.1s`, `no tests ran in 0.01s`, `collected 0 items`.
fn pytest(line: &str) -> Option<TestCounts> {
    let bare = line.trim_matches('=').trim();
    if bare.starts_with("no tests ran in ") || bare == "no tests ran" {
        return Some(TestCounts::default());
    }
    let (counts, time) = bare.rsplit_once(" in ")?;
    if !time.split(' ').next()?.ends_with('s') || !time.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    const WORDS: &[&str] = &[
        "passed",
        "failed",
        "error",
        "errors",
        "skipped",
        "xfailed",
        "xpassed",
        "deselected",
        "warning",
        "warnings",
        "rerun",
    ];
    let parts: Vec<&str> = counts.split(", ").collect();
    let known = parts
        .iter()
        .all(|p| p.split_once(' ').is_some_and(|(n, w)| n.parse::<u64>().is_ok() && WORDS.contains(&w)));
    if !known {
        return None;
    }
    let of = |word: &str| {
        parts
            .iter()
            .filter_map(|p| p.split_once(' '))
            .filter(|(_, w)| *w == word)
            .filter_map(|(n, _)| n.parse::<u64>().ok())
            .sum::<u64>()
    };
    Some(TestCounts {
        passed: of("passed") + of("xfailed") + of("xpassed"),
        failed: of("failed") + of("error") + of("errors"),
    })
}

/// `Tests:       1 failed, 2 passed, 3 total` and `No tests found, exiting with code …`.
fn jest(line: &str) -> Option<TestCounts> {
    if line.starts_with("No tests found, exiting with code") {
        return Some(TestCounts::default());
    }
    let rest = line.strip_prefix("Tests:")?;
    rest.trim_end().strip_suffix(" total")?;
    Some(TestCounts {
        passed: number_before(rest, " passed").unwrap_or(0),
        failed: number_before(rest, " failed").unwrap_or(0),
    })
}

/// `Tests  1 failed | 2 passed (3)` and `No test files found, exiting with code …`.
fn vitest(line: &str) -> Option<TestCounts> {
    if line.starts_with("No test files found, exiting with code") {
        return Some(TestCounts::default());
    }
    let rest = line.strip_prefix("Tests  ")?;
    if rest.trim() == "no tests" {
        return Some(TestCounts::default());
    }
    rest.trim_end().strip_suffix(')')?;
    Some(TestCounts {
        passed: number_before(rest, " passed").unwrap_or(0),
        failed: number_before(rest, " failed").unwrap_or(0),
    })
}

/// `3 passing (12ms)` and `1 failing`.
fn mocha(line: &str) -> Option<TestCounts> {
    let (number, rest) = line.split_once(' ')?;
    let number: u64 = number.parse().ok()?;
    if rest == "failing" {
        return Some(TestCounts { passed: 0, failed: number });
    }
    let time = rest.strip_prefix("passing")?.trim();
    (time.starts_with('(') && time.ends_with(')')).then_some(TestCounts { passed: number, failed: 0 })
}

/// `Tests run: 3, Failures: 1, Errors: 0, Skipped: 0` as a total: without the `Time elapsed` of a single class.
fn surefire(line: &str) -> Option<TestCounts> {
    let at = line.find("Tests run: ")?;
    let rest = &line[at..];
    if rest.contains("Time elapsed") {
        return None;
    }
    let of = |word: &str| -> Option<u64> {
        let digits: String = rest.split_once(word)?.1.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let (run, failures) = (of("Tests run: ")?, of("Failures: ")?);
    let failed = failures + of("Errors: ").unwrap_or(0);
    Some(TestCounts { passed: run.saturating_sub(failed + of("Skipped: ").unwrap_or(0)), failed })
}

/// `# pass 3` and `# fail 1` of node's own runner, and the same behind `ℹ`.
fn node(line: &str) -> Option<TestCounts> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
    let (word, number) = rest.split_once(' ')?;
    let number: u64 = number.parse().ok()?;
    match word {
        "pass" => Some(TestCounts { passed: number, failed: 0 }),
        "fail" => Some(TestCounts { passed: 0, failed: number }),
        _ => None,
    }
}

/// `OK (3 tests, 5 assertions)`, `Tests: 3, Assertions: 5, Failures: 1, Skipped: 1.` and `No tests executed!`
fn phpunit(line: &str) -> Option<TestCounts> {
    if line == "No tests executed!" {
        return Some(TestCounts::default());
    }
    if let Some(rest) = line.strip_prefix("OK (") {
        let passed = number_before(rest, " tests, ").or_else(|| number_before(rest, " test, "))?;
        return rest.contains(" assertion").then_some(TestCounts { passed, failed: 0 });
    }
    let rest = line.strip_prefix("Tests: ").filter(|rest| rest.contains("Assertions: "))?;
    let of = |word: &str| -> u64 {
        let digits = rest
            .split_once(word)
            .map(|(_, r)| r.chars().take_while(char::is_ascii_digit).collect::<String>());
        digits.and_then(|d| d.parse().ok()).unwrap_or(0)
    };
    let tests: u64 = rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()?;
    let failed = of("Failures: ") + of("Errors: ");
    Some(TestCounts { passed: tests.saturating_sub(failed + of("Skipped: ") + of("Incomplete: ")), failed })
}

/// `3 examples, 1 failure, 1 pending`, `3 runs, 5 assertions, 1 failures, 0 errors, 1 skips`, `3 tests, 1 failure, 1 skipped`.
fn examples(line: &str) -> Option<TestCounts> {
    let (first, rest) = line.split_once(", ")?;
    let (number, word) = first.split_once(' ')?;
    if !matches!(word, "examples" | "example" | "runs" | "run" | "tests" | "test")
        || !rest.contains(" failure")
    {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    let of = |words: &[&str]| words.iter().find_map(|w| number_before(rest, w)).unwrap_or(0);
    let failed = of(&[" failure"]) + of(&[" error"]);
    let skipped = of(&[" pending"]) + of(&[" skip"]) + of(&[" excluded"]);
    Some(TestCounts { passed: number.saturating_sub(failed + skipped), failed })
}

/// `Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 5 ms - Calc.dll (net8.0)`
fn dotnet(line: &str) -> Option<TestCounts> {
    let (head, rest) = line.split_once(" - Failed:")?;
    if !head.trim_end().ends_with('!') {
        return None;
    }
    let number = |text: &str| -> Option<u64> {
        text.trim_start().chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    Some(TestCounts { passed: number(rest.split_once("Passed:")?.1)?, failed: number(rest)? })
}

/// `Files=2, Tests=5,  0 wallclock secs ( 0.02 usr +  0.00 sys =  0.02 CPU)`; failures are reported
/// elsewhere.
fn prove(line: &str) -> Option<TestCounts> {
    let (files, rest) = line.strip_prefix("Files=")?.split_once(", Tests=")?;
    files.parse::<u64>().ok()?;
    let tests: String = rest.chars().take_while(char::is_ascii_digit).collect();
    rest.contains("wallclock").then_some(TestCounts { passed: tests.parse().ok()?, failed: 0 })
}

fn number_before(text: &str, word: &str) -> Option<u64> {
    let before = &text[..text.find(word)?];
    let digits: Vec<char> = before.chars().rev().take_while(char::is_ascii_digit).collect();
    digits.iter().rev().collect::<String>().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(output: &str) -> Option<(u64, u64)> {
        let mut scanner = TestScanner::default();
        for byte in output.as_bytes().chunks(3) {
            scanner.feed(byte);
        }
        scanner.finish().map(|c| (c.passed, c.failed))
    }

    #[test]
    fn output_without_a_result_is_detected() {
        let scan = |text: &str| {
            let mut scanner = TestScanner::default();
            scanner.feed(text.as_bytes());
            scanner
        };
        let whole = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        assert!(!scan(whole).is_unfinished());
        assert!(scan(&format!("{whole}running 1 test\n")).is_unfinished());
        assert!(!scan("running 3 tests in the cloud\n").is_unfinished());
    }

    #[test]
    fn every_known_runner_is_counted_and_summed() {
        let cases: &[(&str, Option<(u64, u64)>)] = &[
            ("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n", Some((3, 0))),
            (
                "test result: ok. 0 passed; 0 failed; 0 ignored\ntest result: ok. 2 passed; 1 failed; 0 ignored\n",
                Some((2, 1)),
            ),
            ("     Summary [   0.013s] 3 tests run: 2 passed, 1 failed, 4 skipped\n", Some((2, 1))),
            ("===== 2 failed, 3 passed, 1 skipped in 0.12s =====\n", Some((3, 2))),
            ("\u{1b}[32m\u{1b}[1m3 passed\u{1b}[0m\u{1b}[32m in 0.01s\u{1b}[0m\n", Some((3, 0))),
            ("no tests ran in 0.00s\n", Some((0, 0))),
            ("5 deselected in 0.02s", Some((0, 0))),
            ("ok  \texample.com/a\t0.01s\n?   \texample.com/b\t[no test files]\n", Some((1, 0))),
            ("ok  \texample.com/a\t0.01s [no tests to run]\n", Some((0, 0))),
            ("--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\texample.com/a\t0.01s\n", Some((1, 1))),
            (
                "--- FAIL: TestB (0.00s)\n--- FAIL: TestC (0.00s)\nFAIL\nFAIL\tx/b\t0.01s\nok  \tx/a\t0.01s\n",
                Some((1, 1)),
            ),
            ("=== RUN   TestB\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\tx/b\t0.01s\n", Some((0, 1))),
            ("Tests:       1 failed, 2 skipped, 2 passed, 5 total\n", Some((2, 1))),
            ("No tests found, exiting with code 0\n", Some((0, 0))),
            ("      Tests  1 failed | 2 passed (3)\n", Some((2, 1))),
            ("  3 passing (12ms)\n  1 failing\n", Some((3, 1))),
            (
                "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.1 s\n[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1\n",
                Some((2, 0)),
            ),
            ("Ran 3 tests in 0.001s\n\nOK\n", Some((3, 0))),
            ("Ran 3 tests in 0.001s\n\nOK (skipped=3)\n", Some((0, 0))),
            ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", Some((0, 0))),
            ("Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)\n", Some((2, 2))),
            ("# tests 4\n# pass 2\n# fail 1\n# skipped 1\n", Some((2, 1))),
            ("ℹ tests 1\nℹ pass 0\nℹ fail 0\nℹ skipped 1\n", Some((0, 0))),
            ("OK (3 tests, 5 assertions)\n", Some((3, 0))),
            ("Tests: 3, Assertions: 5, Failures: 1, Skipped: 1.\n", Some((1, 1))),
            ("No tests executed!\n", Some((0, 0))),
            ("3 examples, 1 failure, 1 pending\n", Some((1, 1))),
            ("4 runs, 5 assertions, 1 failures, 1 errors, 1 skips\n", Some((1, 2))),
            ("3 tests, 0 failures, 3 skipped\n", Some((0, 0))),
            (
                "Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 5 ms - a.dll\n",
                Some((3, 0)),
            ),
            ("OK\nOK (fine)\n", None),
            ("all good\n10 files in 3s\n", None),
            ("", None),
        ];
        for (output, want) in cases {
            assert_eq!(scan(output), *want, "{output}");
        }
    }

    #[test]
    fn a_flood_without_line_ends_costs_no_memory() {
        let mut scanner = TestScanner::default();
        for _ in 0..1000 {
            scanner.feed(&[b'x'; 4096]);
        }
        assert!(scanner.partial.len() <= LINE_MAX);
    }
}
