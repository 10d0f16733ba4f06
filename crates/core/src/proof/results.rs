//! Whether every check that decides has said something, and its number as often as at the start.

use ralph_loop_protocol::event::CheckResult;
use ralph_loop_task::config::VerifierConfig;

/// Why the required checks that have no result have not passed.
pub(crate) fn without_result(required: &[String], results: &[CheckResult]) -> Vec<String> {
    if required.is_empty() {
        return vec!["no check is required, so nothing is proven".to_owned()];
    }
    let has_one = |name: &&String| results.iter().any(|result| result.name == **name);
    required.iter().filter(|name| !has_one(name)).map(|name| format!("{name}: it has no result")).collect()
}

/// Checks that measure something and print another number of such lines than at the start, each with what is told of it:
/// somebody else may have printed one. `before` and `now` give the output of a check by its name.
pub(crate) fn other_measurements(
    verifiers: &[&VerifierConfig],
    before: &dyn Fn(&str) -> Option<String>,
    now: &dyn Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for verifier in verifiers {
        let Some(metric) = &verifier.metric else { continue };
        let count = |output: String| output.lines().filter(|line| metric.pattern.matches(line)).count();
        let first = before(&verifier.name).map(count).filter(|lines| *lines > 0);
        if let (Some(first), Some(last)) = (first, now(&verifier.name).map(count))
            && first != last
        {
            let what = format!("it printed its number in {last} lines, and in {first} at the start");
            found.push((verifier.name.clone(), what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_printed_more_often_than_at_the_start_is_noticed() {
        let text = r#"{"name":"bench","command_argv":["bench"],"metric":{"pattern":"score: ([0-9.]+)","better":"higher","target":10}}"#;
        let verifier: VerifierConfig = serde_json::from_str(text).unwrap();
        let told = |before: Option<&str>, now: &str| {
            let (before, now) = (before.map(str::to_owned), now.to_owned());
            other_measurements(&[&verifier], &|_| before.clone(), &|_| Some(now.clone())).len()
        };
        assert_eq!(told(Some("score: 3\n"), "score: 12\n"), 0);
        assert_eq!(told(Some("score: 3\n"), "score: 3\nscore: 99\n"), 1);
        assert_eq!(told(Some("score: 3\nscore: 4\n"), "score: 99\n"), 1);
        assert_eq!(told(Some("it does not build\n"), "score: 12\n"), 0, "nothing to compare with");
        assert_eq!(told(None, "score: 12\n"), 0);
    }
    use ralph_loop_protocol::id::{Digest, TreeId};

    fn result(name: &str) -> CheckResult {
        CheckResult {
            name: name.into(),
            tree: TreeId::from("t"),
            passed: true,
            why: None,
            exit_code: Some(0),
            duration_ms: 1,
            tests: None,
            log: "proof/check.log".into(),
            log_digest: Digest::of(b""),
            failing: Vec::new(),
            last_lines: Vec::new(),
        }
    }

    #[test]
    fn a_required_check_without_a_result_has_not_passed() {
        let required = ["tests".to_owned(), "lint".to_owned()];
        assert_eq!(without_result(&required, &[result("tests"), result("lint")]), Vec::<String>::new());
        assert_eq!(without_result(&required, &[result("tests")]), ["lint: it has no result"]);
        assert_eq!(without_result(&required, &[]).len(), 2);
        // What another check says counts for nobody else.
        assert_eq!(without_result(&required[..1], &[result("other")]), ["tests: it has no result"]);
    }

    #[test]
    fn nothing_required_proves_nothing() {
        assert_eq!(without_result(&[], &[result("tests")]).len(), 1);
    }
}
