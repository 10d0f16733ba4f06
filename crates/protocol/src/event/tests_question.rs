//! What a person is asked where a run changed tests of the start, and its work does not pass them as they were.

use super::CheckResult;
use crate::level::HarnessChange;
use crate::text::{count, one_line};
use serde::{Deserialize, Serialize};

/// Names in the sentence.
const NAMED: usize = 3;
/// Changes below it.
const CHANGES: usize = 10;
/// Lines that each check printed last.
const LINES: usize = 5;

/// Whether changed tests are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "tests_question"))]
pub struct TestsQuestion {
    /// Tests, and what sets them up, that the run changed.
    pub changed: Vec<HarnessChange>,
    /// Checks that fail on the work with the originals restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<CheckResult>,
    /// What else did not hold then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

impl TestsQuestion {
    /// What happened, in a sentence or two; `who` did it.
    pub fn message(&self, who: &str) -> String {
        let only_tests = self.changed.iter().all(|change| change.what.starts_with("a test"));
        let what = if only_tests { "tests" } else { "tests or what sets them up" };
        let added = self.changed.iter().any(|change| change.what.starts_with("a test of the run's own"));
        let how = if added { "changed or added" } else { "changed" };
        let mut names: Vec<&str> = self.changed.iter().map(|change| change.path.as_str()).collect();
        names.dedup();
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        names.truncate(NAMED);
        format!("{who} {how} {what}: {}{more}. As they were at the start, {}", names.join(", "), self.fails())
    }

    /// `1 of 44 tests fails: test_drain`; `tests fails: exit code 1`.
    fn fails(&self) -> String {
        let counted = self.failing.iter().filter_map(|result| result.tests);
        let (failed, all) = counted.fold((0, 0), |sum, t| (sum.0 + t.failed, sum.1 + t.executed()));
        let names = self.failing.iter().find_map(|result| result.failing_words(NAMED));
        let names = names.and_then(|words| words.strip_prefix("failing: ").map(|names| format!(": {names}")));
        match (failed, self.failing.first(), self.why.first()) {
            (1.., ..) => {
                let verb = if failed == 1 { "fails" } else { "fail" };
                format!("{failed} of {} {verb}{}", count(all as usize, "test"), names.unwrap_or_default())
            }
            (0, Some(result), _) => {
                let why = result.why.as_deref().unwrap_or("it does not pass");
                format!("`{}` fails: {}", result.name, one_line(why, 160))
            }
            (0, None, Some(why)) => one_line(why, 200),
            (0, None, None) => "the checks do not pass".to_owned(),
        }
    }

    /// The same line by line: what was changed, and what the checks of the start say in their own words.
    pub fn details(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.changed.iter().take(CHANGES).map(HarnessChange::line).collect();
        if self.changed.len() > CHANGES {
            lines.push(format!("and {} more", count(self.changed.len() - CHANGES, "change")));
        }
        for result in &self.failing {
            let why = result.why.as_deref().unwrap_or("failed");
            lines.push(format!("{} with the tests of the start: {why}", result.name));
            lines.extend(result.evidence(LINES).into_iter().map(|line| format!("  {line}")));
        }
        lines.extend(self.why.iter().cloned());
        lines
    }

    /// What the next session is told where it has to bring the tests back.
    pub fn reasons(&self) -> Vec<String> {
        let back = |change: &HarnessChange| {
            let with = if change.is_new() { "without" } else { "with" };
            format!("{}; {}, and make the work pass {with} it", change.line(), change.cure())
        };
        let mut lines: Vec<String> = self.changed.iter().take(CHANGES).map(back).collect();
        for result in &self.failing {
            let why = result.why.as_deref().unwrap_or("failed");
            let said = result.evidence(LINES).join(" | ");
            lines.push(format!("with the tests of the start {} does not pass: {why}. {said}", result.name));
        }
        lines.extend(self.why.iter().cloned());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Digest, TreeId};
    use crate::test_counts::TestCounts;

    fn change(path: &str, what: &str) -> HarnessChange {
        HarnessChange { path: path.into(), key: None, what: what.into(), tests: true }
    }

    fn failing(tests: Option<TestCounts>) -> CheckResult {
        CheckResult {
            name: "tests".into(),
            tree: TreeId::from("t"),
            passed: false,
            why: Some("exit code 1".into()),
            exit_code: Some(1),
            duration_ms: 1,
            tests,
            log: "proof/start/check-tests.log".into(),
            log_digest: Digest::of(b""),
            failing: vec!["test_drain".into()],
            last_lines: vec!["expected [1, 2, 3], got [1, 3, 2]".into()],
        }
    }

    #[test]
    fn it_says_what_was_changed_and_what_fails_without_that() {
        let question = TestsQuestion {
            changed: vec![
                change("tests/a.py", "a test, changed by the run"),
                change("tests/b.py", "a test, removed"),
            ],
            failing: vec![failing(Some(TestCounts { passed: 43, failed: 1 }))],
            why: Vec::new(),
        };
        assert_eq!(
            question.message("codex"),
            "codex changed tests: tests/a.py, tests/b.py. As they were at the start, 1 of 44 tests fails: test_drain"
        );
        let details = question.details().join("\n");
        for word in
            ["tests/a.py: a test, changed", "tests with the tests of the start: exit code 1", "got [1, 3, 2]"]
        {
            assert!(details.contains(word), "{word}: {details}");
        }
        assert!(question.reasons()[0].contains("bring it back as it was at the start"));
        let new = TestsQuestion {
            changed: vec![change("pytest.ini", "it configures tests, added by the run")],
            ..question
        };
        assert!(new.reasons()[0].ends_with("take it out, and make the work pass without it"));
    }

    #[test]
    fn without_numbers_the_check_speaks_for_itself() {
        let question = TestsQuestion {
            changed: vec![change("pytest.ini", "it configures tests, added by the run")],
            failing: vec![failing(None)],
            why: Vec::new(),
        };
        assert_eq!(
            question.message("the run"),
            "the run changed tests or what sets them up: pytest.ini. As they were at the start, `tests` fails: exit code 1"
        );
    }
}
