//! Inline tests of Rust sources: items behind `#[cfg(test)]` or `#[test]`.

use std::collections::BTreeMap;
use std::ops::Range;

/// Whether the tests in a source differ; `None` is a file that doesn't exist.
pub fn tests_differ(old: Option<&str>, new: &str) -> bool {
    tests(old.unwrap_or_default()) != tests(new)
}

/// `product` with the inline tests of `tests_from`.
pub fn with_tests_of(tests_from: Option<&str>, product: &str) -> String {
    let mut wanted = tests(tests_from.unwrap_or_default());
    let mut ranges: Vec<(String, Range<usize>)> = items(product).into_iter().collect();
    ranges.sort_by_key(|(_, range)| range.start);
    let (mut out, mut at) = (String::new(), 0);
    for (head, range) in ranges {
        out.push_str(product.get(at..range.start).unwrap_or_default());
        out.push_str(wanted.remove(&head).unwrap_or_default());
        at = range.end;
    }
    out.push_str(product.get(at..).unwrap_or_default());
    for text in wanted.into_values() {
        out.push('\n');
        out.push_str(text);
        out.push('\n');
    }
    out
}

fn tests(text: &str) -> BTreeMap<String, &str> {
    items(text).into_iter().filter_map(|(head, range)| Some((head, text.get(range)?))).collect()
}

/// The test items of a source, by their heads.
fn items(text: &str) -> BTreeMap<String, Range<usize>> {
    let mut found = BTreeMap::new();
    let mut at = 0;
    while let Some(next) = text[at..].find("#[").map(|n| at + n) {
        let Some(close) = text[next..].find(']').map(|n| next + n + 1) else { break };
        if !is_test_attribute(&text[next..close]) || is_commented(text, next) {
            at = close;
            continue;
        }
        let (head, end) = item_from(text, close);
        let mut key = head;
        while found.contains_key(&key) {
            key.push('\'');
        }
        found.insert(key, next..end);
        at = end.max(close);
    }
    found
}

fn is_test_attribute(attribute: &str) -> bool {
    let inner = attribute.trim_start_matches("#[").trim_end_matches(']').trim();
    if let Some(condition) = inner.strip_prefix("cfg") {
        let mut words = condition.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        return words.any(|word| word == "test") && !condition.contains("not(test");
    }
    let path = inner.split('(').next().unwrap_or(inner).trim();
    path.rsplit("::").next().is_some_and(|last| last.ends_with("test") || last == "test_case")
}

fn is_commented(text: &str, at: usize) -> bool {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    line.contains("//") || line.contains('"')
}

/// The head of the item after the attribute that ends at `from`, and the item's end.
fn item_from(text: &str, from: usize) -> (String, usize) {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut opened) = (from, 0_i32, false);
    let mut head = String::new();
    let is_use = text[from..].trim_start().trim_start_matches("pub ").starts_with("use ");
    while at < bytes.len() {
        let skip = literal_or_comment(text, at);
        if skip > at {
            at = skip;
            continue;
        }
        match bytes[at] {
            b'{' => {
                depth += 1;
                opened |= !is_use;
            }
            b'}' => depth -= 1,
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth -= 1,
            _ => {}
        }
        if !opened && let Some(c) = text[at..].chars().next() {
            head.push(c);
        }
        at += text[at..].chars().next().map_or(1, char::len_utf8);
        let last = if opened { b'}' } else { b';' };
        if depth == 0 && bytes[at - 1] == last {
            break;
        }
    }
    (head.split_whitespace().collect::<Vec<_>>().join(" "), at)
}

/// The end of the literal or comment at `at`, or `at` if there isn't one.
fn literal_or_comment(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let until =
        |end: &str, from: usize| rest[from..].find(end).map_or(text.len(), |n| at + from + n + end.len());
    if rest.starts_with("//") {
        return until("\n", 2);
    }
    if rest.starts_with("/*") {
        return until("*/", 2);
    }
    if let Some(raw) = rest.strip_prefix('r').filter(|raw| raw.starts_with(['"', '#'])) {
        let hashes = raw.chars().take_while(|c| *c == '#').count();
        if raw[hashes..].starts_with('"') {
            return until(&format!("\"{}", "#".repeat(hashes)), hashes + 2);
        }
    }
    let bytes = rest.as_bytes();
    if bytes[0] == b'"' {
        let mut n = 1;
        while n < bytes.len() && bytes[n] != b'"' {
            n += if bytes[n] == b'\\' { 2 } else { 1 };
        }
        return (at + n + 1).min(text.len());
    }
    // A character, not a lifetime.
    if bytes[0] == b'\'' && bytes.len() > 2 {
        if bytes[1] == b'\\' {
            return until("'", 3);
        }
        let one = rest[1..].chars().next().map_or(1, char::len_utf8);
        if bytes.get(1 + one) == Some(&b'\'') {
            return at + one + 2;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "pub fn f() -> char { '{' }\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn t() { assert_eq!(f(), \"}\".len()); }\n}\n";

    #[test]
    fn finds_whole_items() {
        let found = super::tests(OLD);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["mod tests"]);
        assert!(found["mod tests"].starts_with("#[cfg(test)]") && found["mod tests"].ends_with("}\n}"));
        let other = "#[cfg(test)]\nuse a::{b, c};\n#[cfg(not(test))]\nfn x() {}\n#[test]\nfn t() { r#\"}\"#; }\n#[cfg(test)]\nmod more;\n";
        assert_eq!(
            super::tests(other).into_keys().collect::<Vec<_>>(),
            ["fn t()", "mod more;", "use a::{b, c};"]
        );
    }

    #[test]
    fn original_tests_come_back_into_the_work() {
        let new = OLD.replace("'{'", "'}'").replace("assert_eq!(f(), \"}\".len())", "").replace("char", "u8");
        assert!(tests_differ(Some(OLD), &new));
        assert_eq!(with_tests_of(Some(OLD), &new), OLD.replace("'{'", "'}'").replace("char", "u8"));
        assert!(with_tests_of(Some(OLD), "pub fn f() {}\n").contains("mod tests {"));
        assert_eq!(with_tests_of(None, "fn a() {}\n#[cfg(test)]\nmod tests { }\n"), "fn a() {}\n\n");
        assert!(!tests_differ(Some(OLD), &OLD.replace("'{'", "'}'")));
    }
}
