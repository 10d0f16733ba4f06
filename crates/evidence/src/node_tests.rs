//! Sources for `node --test`: whether running one must report tests.

/// Names of `node:test` that make no test.
const HELPERS: &[&str] = &[
    "mock",
    "before",
    "after",
    "beforeEach",
    "afterEach",
    "run",
    "snapshot",
    "assert",
    "only",
    "skip",
    "todo",
];
/// What makes a test where the library is taken in as a whole, or under the names that it has.
const CALLS: &[&str] = &["test", "it", "describe", "suite"];

/// Whether a source makes tests as soon as it is run: by a statement of its own, outside of any function.
pub fn has_node_tests(text: &str) -> bool {
    let Some(names) = bound_names(text) else { return false };
    let names: Vec<&str> = names.iter().map(String::as_str).chain(CALLS.iter().copied()).collect();
    let mut depth = 0_usize;
    // Whether a statement may begin here.
    let mut begins = true;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if begins && depth == 0 && names.iter().any(|name| calls(rest, name)) {
            return true;
        }
        let skipped = skipped(rest);
        if skipped > 0 {
            begins &= rest.starts_with('/');
            rest = &rest[skipped..];
            continue;
        }
        match first {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let word =
            rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$')).map(char::len_utf8);
        let word: usize = word.sum();
        begins = match first {
            ';' | '}' | '\n' => true,
            c if c.is_whitespace() => begins,
            _ => begins && &rest[..word] == "await",
        };
        rest = &rest[word.max(first.len_utf8())..];
    }
    false
}

/// Whether a text begins with a call of `name`, or of something of it.
fn calls(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(['(', '.']))
}

/// The length of a string or a comment at the beginning of a text. (A text with a slash that divides is read on.)
fn skipped(text: &str) -> usize {
    let to = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    match text.as_bytes() {
        // Its end of the line stays.
        [b'/', b'/', ..] => text.find('\n').unwrap_or(text.len()),
        [b'/', b'*', ..] => to("*/", 2),
        [quote @ (b'"' | b'\'' | b'`'), ..] => {
            let mut escaped = false;
            let end = text.bytes().enumerate().skip(1).find(|(_, b)| {
                let ends = !escaped && b == quote;
                escaped = !escaped && *b == b'\\';
                ends
            });
            end.map_or(text.len(), |(at, _)| at + 1)
        }
        _ => 0,
    }
}

/// The names that a source has for what makes tests; `None` where it does not take the library in.
fn bound_names(text: &str) -> Option<Vec<String>> {
    let mut found: Option<Vec<String>> = None;
    for (at, _) in text.match_indices("node:test") {
        if !text[at + "node:test".len()..].starts_with(['"', '\'', '`']) {
            continue;
        }
        let before = &text[..at];
        let words = ["import", "const", "let", "var"];
        let start = words.iter().filter_map(|word| Some(before.rfind(word)? + word.len())).max();
        let names = found.get_or_insert_default();
        let Some(start) = start else { continue };
        let between = before[start..].split('=').next().unwrap_or_default();
        let between = between.rsplit_once(" from").map_or(between, |(names, _)| names);
        for part in between.split([',', '{', '}']).map(str::trim).filter(|part| !part.is_empty()) {
            let (origin, name) = match part.split_once(" as ").or_else(|| part.split_once(':')) {
                Some((origin, name)) => (origin.trim(), name.trim()),
                None => (part, part),
            };
            let plain =
                !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
            if plain && !HELPERS.contains(&origin) {
                names.push(name.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_with_tests_is_told_from_one_that_only_helps() {
        for with in [
            "import test from 'node:test';\ntest('a', () => {});\n",
            "const t=require('node:test');const a=require('node:assert');t('x',()=>{a(1)})\n",
            "const { test: check, mock } = require(\"node:test\");\n  check('x', () => {});\n",
            "import {\n  it as one,\n} from 'node:test';\n// the first\none('x', () => {});\n",
            "import { describe } from 'node:test'\ndescribe.skip('x', () => {})\n",
            "const s = 'it\\'s'; import * as t from 'node:test'; await t.test('x');\n",
        ] {
            assert!(has_node_tests(with), "{with}");
        }
        for without in [
            "import {mock} from 'node:test';\nexport const help = () => test('a');\n",
            "const test = require('node:test');\nmodule.exports = (n) => test(n, () => {});\n",
            "const test = require('node:test');\nfunction all() {\n  test('x', () => {});\n}\nexports.all = all;\n",
            "const test = require('node:test');\n// test('x')\nexports.text = `\ntest('x')\n`;\n",
            "test('x', () => {});\n",
        ] {
            assert!(!has_node_tests(without), "{without}");
        }
    }
}
