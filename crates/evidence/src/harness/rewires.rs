//! Product that changes what runs its tests, that is equal to everything, or that looks its answers up in the tests: those that run
//! in its process say what it wants.

use crate::weakened::{is_source, is_test_source};
use std::collections::BTreeSet;

/// Whether the source at `path` has a line now that it had not, by which it rewrites a library of tests, or pretends to be equal to
/// whatever it is compared with. Plain lines only: who hides it well enough is found by nobody who reads.
pub fn rewires_tests(path: &str, old: Option<&str>, new: &str) -> bool {
    let known: BTreeSet<&str> = old.unwrap_or_default().lines().map(str::trim).collect();
    let lines: Vec<&str> = new.lines().map(str::trim).collect();
    let is_new = |line: &str| !line.is_empty() && !known.contains(line);
    let found = |rewires: &dyn Fn(&str) -> bool| lines.iter().any(|line| is_new(line) && rewires(line));
    if found(&reads_tests) {
        return true;
    }
    match path.rsplit_once('.').map_or("", |(_, end)| end) {
        "py" => found(&|line| line.split(';').any(|part| python(part.trim()))) || equals_all(&lines, &is_new),
        "js" | "cjs" | "mjs" | "ts" | "cts" | "mts" | "jsx" | "tsx" => {
            found(&|line| line.split(';').any(|part| script(part.trim())))
        }
        "rb" => found(&ruby),
        _ => false,
    }
}

/// Whether a line reads the source of a test: what it expects can be had from there.
fn reads_tests(line: &str) -> bool {
    const READ: &[&str] =
        &["open(", "read_text(", "readFileSync(", "readFile(", "File.read(", "read_to_string(", "ReadFile("];
    let quoted = line.split(['"', '\'', '`']).skip(1).step_by(2);
    READ.iter().any(|call| line.contains(call))
        && quoted.filter(|text| !text.contains(' ')).any(|text| is_source(text) && is_test_source(text))
}

/// What a line assigns to, where it does.
fn assigned(line: &str) -> Option<&str> {
    let at = line.find('=')?;
    let (to, rest) = line.split_at(at);
    let compares = rest.starts_with("==") || rest.starts_with("=>") || to.ends_with(['!', '<', '>', '=']);
    (!compares).then(|| to.trim_end_matches(['+', ':']).trim())
}

/// Whether a text begins with one of these, as a whole name or with something of it behind.
fn begins(text: &str, names: &[&str]) -> bool {
    names.iter().any(|name| {
        text.strip_prefix(name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

fn python(line: &str) -> bool {
    const LIBRARIES: &[&str] = &["unittest", "pytest", "_pytest", "doctest", "TestCase"];
    let plain = |text: &str| text.trim_start_matches(['"', '\'', '(']).to_owned();
    if let Some(to) = assigned(line).filter(|to| !to.contains(['(', ' ', '"', '\''])) {
        let of_library = begins(to, LIBRARIES) && to.contains('.') && !to.starts_with("unittest.mock");
        let of_class = to.contains(".TestCase.");
        if of_library || of_class || matches!(to, "builtins.AssertionError" | "__builtins__.AssertionError") {
            return true;
        }
    }
    let calls = ["setattr(", "patch(", "patch.object("].iter().filter_map(|call| line.split_once(call));
    let changes = |inside: &str| begins(inside, LIBRARIES) && !inside.starts_with("unittest.mock");
    let modules = line.contains("sys.modules[") && LIBRARIES[..3].iter().any(|name| line.contains(name));
    modules || calls.map(|(_, inside)| plain(inside)).any(|inside| changes(&inside))
}

fn script(line: &str) -> bool {
    let Some(to) = assigned(line) else { return false };
    let to = ["const ", "let ", "var "].iter().find_map(|word| to.strip_prefix(word)).unwrap_or(to);
    let globals = ["globalThis.", "global.", "window.", "self."];
    if let Some(name) = globals.iter().find_map(|global| to.strip_prefix(global)) {
        return begins(name, &["expect", "test", "it", "describe", "assert", "jest", "vi"]);
    }
    let required =
        ["require('assert')", "require(\"assert\")", "require('node:assert')", "require(\"node:assert\")"];
    let library = begins(to, &["assert", "chai", "expect", "jest"]);
    (library && to.contains('.') && !to.contains(' '))
        || required.iter().any(|it| to.starts_with(&format!("{it}.")))
}

fn ruby(line: &str) -> bool {
    let opened = ["class ", "module "].iter().find_map(|word| line.strip_prefix(word));
    let own = |name: &str| name.contains('<');
    opened.is_some_and(|name| begins(name, &["Minitest", "RSpec", "Test::Unit"]) && !own(name))
}

/// `def __eq__(self, other): return True`.
fn equals_all(lines: &[&str], is_new: &dyn Fn(&str) -> bool) -> bool {
    lines.iter().enumerate().any(|(at, line)| {
        let Some((_, body)) = line.split_once(':').filter(|(head, _)| head.starts_with("def __eq__")) else {
            return false;
        };
        let next = lines.get(at + 1).copied().unwrap_or_default();
        match body.trim() {
            "" => next == "return True" && (is_new(line) || is_new(next)),
            body => body == "return True" && is_new(line),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_library_of_tests_is_told_from_product() {
        for (path, line) in [
            ("part.py", "unittest.TestCase.assertEqual = lambda *a, **k: None"),
            ("part.py", "import unittest; unittest.case.TestCase.run = run"),
            ("part.py", "u.TestCase.assertEqual = same"),
            ("part.py", "setattr(unittest.TestCase, 'assertEqual', same)"),
            ("part.py", "mock.patch('unittest.TestCase.run').start()"),
            ("part.py", "sys.modules['pytest'].fail = print"),
            ("part.py", "builtins.AssertionError = Quiet"),
            ("part.py", "def __eq__(self, other): return True"),
            ("part.py", "def __eq__(self, other):\n    return True"),
            ("part.js", "global.expect = () => same"),
            ("part.js", "require('assert').strictEqual = () => {}"),
            ("part.mjs", "assert.deepEqual = () => {};"),
            ("part.rb", "class Minitest::Test"),
            ("part.py", "VALUE = open('test_part.py').read()[7:12]"),
            ("part.go", "text, _ := os.ReadFile(\"part_test.go\")"),
        ] {
            assert!(rewires_tests(path, Some("x = 1\n"), &format!("x = 1\n{line}\n")), "{line}");
            assert!(!rewires_tests(path, Some(line), line), "it was there: {line}");
        }
        for (path, line) in [
            ("part.py", "from unittest import mock"),
            ("part.py", "open('tests/data/words.txt')"),
            ("part.py", "print('see test_part.py', file=open('log', 'w'))"),
            ("part.py", "with unittest.mock.patch('shop.price') as price:"),
            ("part.py", "sys.modules[__name__] = Lazy()"),
            ("part.py", "suite = unittest.TestSuite()"),
            ("part.py", "assert x == unittest.VALUE"),
            ("part.py", "def __eq__(self, other): return self.x == other.x"),
            ("part.py", "def __eq__(self, other):\n    if self is other:\n        return True"),
            ("part.js", "const expected = 1"),
            ("part.js", "const test = require('x')"),
            ("part.js", "exports.assert = assert"),
            ("part.js", "module.exports = { expect: 1 }"),
            ("part.rb", "class Minitest::Reporter::Own < Minitest::Reporter"),
            ("part.go", "assert.Equal = nil"),
        ] {
            assert!(!rewires_tests(path, Some("x = 1\n"), &format!("x = 1\n{line}\n")), "{line}");
        }
    }
}
