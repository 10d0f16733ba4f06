//! Whether every check that decides has said something.

use ralph_domain::event::CheckResult;

/// Why the required checks that have no result have not passed.
pub(crate) fn without_result(required: &[String], results: &[CheckResult]) -> Vec<String> {
    if required.is_empty() {
        return vec!["no check is required, so nothing is proven".to_owned()];
    }
    let has_one = |name: &&String| results.iter().any(|result| result.name == **name);
    required.iter().filter(|name| !has_one(name)).map(|name| format!("{name}: it has no result")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_domain::id::{Digest, TreeId};

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
