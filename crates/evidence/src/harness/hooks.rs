//! Product that has a say in which tests run: hooks that a runner of tests calls wherever it finds them.

/// Beginnings of lines that define such a hook.
const HOOKS: &[&str] =
    &["def load_tests(", "load_tests =", "def pytest_", "pytest_plugins =", "__unittest ="];

/// Whether `new`, a source of Python, defines a hook of a runner of tests that `old` did not.
pub fn hooks_into_tests(old: Option<&str>, new: &str) -> bool {
    let has = |text: &str, hook: &str| text.lines().any(|line| line.starts_with(hook));
    HOOKS.iter().any(|hook| has(new, hook) && !old.is_some_and(|old| has(old, hook)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_told_from_product() {
        let hook = "def load_tests(loader, tests, pattern):\n    return tests\n";
        assert!(hooks_into_tests(Some("x = 1\n"), hook) && hooks_into_tests(None, hook));
        assert!(!hooks_into_tests(Some(hook), &format!("{hook}x = 1\n")));
        assert!(!hooks_into_tests(None, "def load():\n    pass\n"));
    }
}
