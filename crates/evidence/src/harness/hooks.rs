//! Product that has a say in which tests run: hooks that a runner of tests calls wherever it finds them.

use std::collections::BTreeSet;

/// Whether `new`, a source of Python, defines a hook of a runner of tests that `old` did not.
pub fn hooks_into_tests(old: Option<&str>, new: &str) -> bool {
    let known = hooks(old.unwrap_or_default());
    hooks(new).iter().any(|hook| !known.contains(hook))
}

/// The hooks that a source defines, assigns or takes in.
fn hooks(text: &str) -> BTreeSet<&str> {
    text.lines().flat_map(of_line).collect()
}

fn of_line(line: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    if let Some((_, taken)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) {
        let names = taken.split(|c: char| !is_name(c));
        return names.filter(|name| is_hook(name)).collect();
    }
    let bare = line.strip_prefix("async ").unwrap_or(line);
    let (defined, bare) = match bare.strip_prefix("def ") {
        Some(bare) => (true, bare.trim_start()),
        None => (false, bare),
    };
    let name = bare.split(|c: char| !is_name(c)).next().unwrap_or_default();
    let rest = bare[name.len()..].trim_start();
    let given = rest.starts_with([':', '=', ',']) && !rest.starts_with("==");
    if is_hook(name) && (defined || given) { vec![name] } else { Vec::new() }
}

fn is_hook(name: &str) -> bool {
    name.starts_with("pytest_") || matches!(name, "load_tests" | "__unittest")
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
        for text in [
            "pytest_pyfunc_call = lambda pyfuncitem: True\n",
            "async def pytest_runtest_call(item): pass\n",
            "pytest_plugins: list = []\n",
            "from deep import helper, pytest_runtest_protocol\n",
            "from deep import go as load_tests\n",
            "__unittest = True\n",
        ] {
            assert!(hooks_into_tests(Some("X = 1\n"), text), "{text}");
        }
        for text in [
            "import pytest_asyncio\n",
            "from pytest_mock import MockerFixture\n",
            "pytest_x()\n",
            "    pytest_y = 1\n",
        ] {
            assert!(!hooks_into_tests(None, text), "{text}");
        }
    }
}
