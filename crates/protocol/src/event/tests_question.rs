//! The question to the user if a run changed original tests, and its work doesn't pass the originals.

use super::CheckResult;
use crate::display::text::{count, one_line};
use crate::proof::level::{HarnessChange, ProofLevel};
use serde::{Deserialize, Serialize};

const NAMED: usize = 3;
const CHANGES: usize = 10;
const LINES: usize = 5;

/// Whether changed tests are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "tests_question"))]
pub struct TestsQuestion {
    /// Changed tests and test setup.
    pub changed: Vec<HarnessChange>,
    /// Checks that fail on the work with the originals restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<CheckResult>,
    /// What else didn't pass then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

impl TestsQuestion {
    /// The strength of the result after your approval. If only the required level was missed, it stays what the
    /// differences show.
    pub fn level_if_approved(&self, shows_difference: bool) -> ProofLevel {
        match shows_difference || !self.failing.is_empty() {
            true => ProofLevel::OwnTests,
            false => ProofLevel::Unverified,
        }
    }

    /// Who accepted changed originals; without those, an approval changes no headline.
    pub fn accepted<'a>(&self, level: Option<ProofLevel>, by: Option<&'a str>) -> Option<&'a str> {
        by.filter(|_| level != Some(ProofLevel::OwnTests) || !self.failing.is_empty())
    }

    /// What happened, in a sentence or two; `who` did it.
    pub fn message(&self, who: &str) -> String {
        let mut names: Vec<&str> = self.changed.iter().map(|change| change.path.as_str()).collect();
        if self.failing.is_empty() && !self.why.is_empty() {
            return self.why.join(": ");
        }
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        names.truncate(NAMED);
        format!(
            "{who} changed tests or build files that decide the checks: {}{more}. With the originals, {}",
            names.join(", "),
            self.fails()
        )
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

    /// The details line by line: each change, and what the checks print with the originals.
    pub fn details(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.changed.iter().take(CHANGES).map(HarnessChange::line).collect();
        if self.changed.len() > CHANGES {
            lines.push(format!("and {} more", count(self.changed.len() - CHANGES, "change")));
        }
        for result in &self.failing {
            let why = result.why.as_deref().unwrap_or("failed");
            lines.push(format!("{} with the originals: {why}", result.name));
            lines.extend(result.evidence(LINES).into_iter().map(|line| format!("  {line}")));
        }
        lines.extend(self.why.iter().cloned());
        lines
    }

    /// What the next session gets if it has to restore the originals.
    pub fn reasons(&self) -> Vec<String> {
        let back = |change: &HarnessChange| {
            let with = if change.added { "without" } else { "with" };
            format!("{}; {}, and make the work pass {with} it", change.line(), change.cure())
        };
        let mut lines: Vec<String> = self.changed.iter().take(CHANGES).map(back).collect();
        for result in &self.failing {
            let why = result.why.as_deref().unwrap_or("failed");
            let said = result.evidence(LINES).join(" | ");
            lines.push(format!("with the originals {} fails: {why}. {said}", result.name));
        }
        lines.extend(self.why.iter().cloned());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Digest, TreeId};
    use crate::proof::level::HarnessSource;
    use crate::proof::test_counts::TestCounts;

    fn change(path: &str, added: bool) -> HarnessChange {
        let what = if added { "added: tests" } else { "changed: tests" };
        HarnessChange {
            path: path.into(),
            added,
            source: HarnessSource::Glob,
            named: false,
            what: what.into(),
        }
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
    fn names_the_changes_and_what_fails_with_the_originals() {
        let question = TestsQuestion {
            changed: vec![change("tests/a.py", false), change("tests/b.py", false)],
            failing: vec![failing(Some(TestCounts { passed: 43, failed: 1 }))],
            why: Vec::new(),
        };
        assert_eq!(
            question.message("codex"),
            "codex changed tests or build files that decide the checks: tests/a.py, tests/b.py. With the originals, 1 of 44 tests fails: test_drain"
        );
        let details = question.details().join("\n");
        for word in ["tests/a.py: changed: tests", "tests with the originals: exit code 1", "got [1, 3, 2]"] {
            assert!(details.contains(word), "{word}: {details}");
        }
        assert!(question.reasons()[0].contains("restore the original"));
        let new = TestsQuestion { changed: vec![change("pytest.ini", true)], ..question };
        assert!(new.reasons()[0].ends_with("remove it, and make the work pass without it"));
        let without_counts = TestsQuestion { failing: vec![failing(None)], ..new };
        assert!(
            without_counts.message("the run").ends_with("With the originals, `tests` fails: exit code 1")
        );
    }
}
