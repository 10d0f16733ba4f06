//! Tests that stand in the product itself: items of Rust behind `#[cfg(test)]` or `#[test]`.

use super::doc_examples::{EXAMPLE, rust_examples};
use std::collections::BTreeMap;
use std::ops::Range;

/// The items of a source that are tests, by their heads, each with where it stands.
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
    let inside = |range: &Range<usize>| found.values().any(|item: &Range<usize>| item.contains(&range.start));
    let examples: Vec<(String, Range<usize>)> =
        rust_examples(text).into_iter().filter(|(_, range)| !inside(range)).collect();
    found.extend(examples);
    found
}

/// Files of modules that exist only for tests, as the source says: `#[cfg(test)] mod checks;`.
pub fn test_modules(text: &str) -> Vec<String> {
    let heads = items(text).into_keys().filter(|head| head.ends_with(';'));
    let name = |head: String| {
        let name =
            head.trim_end_matches([';', '\'']).rsplit_once("mod ").map(|(_, name)| name.trim().to_owned());
        name.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
    };
    heads.filter_map(name).collect()
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

/// The head of the item that follows the attribute which ends at `from`, and where the item ends.
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

/// Where the literal or comment that begins at `at` ends; `at` where none does.
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
    // A character, and no lifetime.
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

/// The tests of a source, by their heads.
pub(super) fn inline_tests(text: Option<&str>) -> BTreeMap<String, String> {
    let text = text.unwrap_or_default();
    items(text)
        .into_iter()
        .map(|(head, range)| (head, text.get(range).unwrap_or_default().to_owned()))
        .collect()
}

/// Whether a source has tests in it.
pub fn has_inline_tests(text: &str) -> bool {
    !items(text).is_empty()
}

/// Whether two sources have tests of the same heads, and at least one.
pub fn have_same_tests(old: &str, new: &str) -> bool {
    let (old, new) = (items(old), items(new));
    !old.is_empty() && old.keys().all(|head| new.contains_key(head))
}

/// `new` with the tests of `old` in the place of its own.
pub(super) fn with_tests_of(old: Option<&str>, new: &str) -> String {
    let mut before = inline_tests(old);
    let mut ranges: Vec<(String, Range<usize>)> = items(new).into_iter().collect();
    ranges.sort_by_key(|(_, range)| range.start);
    let (mut out, mut at) = (String::new(), 0);
    for (head, range) in ranges {
        out.push_str(new.get(at..range.start).unwrap_or_default());
        out.push_str(&before.remove(&head).unwrap_or_default());
        at = range.end;
    }
    out.push_str(new.get(at..).unwrap_or_default());
    // An example whose item is gone has no place.
    for text in before.into_iter().filter(|(head, _)| !head.starts_with(EXAMPLE)).map(|(_, text)| text) {
        out.push('\n');
        out.push_str(&text);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "pub fn f() -> char { '{' }\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn t() { assert_eq!(f(), \"}\".len()); }\n}\n";

    #[test]
    fn tests_in_the_product_are_found_whole() {
        let found = inline_tests(Some(OLD));
        assert_eq!(found.keys().collect::<Vec<_>>(), ["mod tests"]);
        assert!(found["mod tests"].starts_with("#[cfg(test)]") && found["mod tests"].ends_with("}\n}"));
        let other = "#[cfg(test)]\nuse a::{b, c};\n#[cfg(not(test))]\nfn x() {}\n#[test]\nfn t() { r#\"}\"#; }\n#[cfg(test)]\nmod more;\n";
        assert_eq!(
            inline_tests(Some(other)).keys().collect::<Vec<_>>(),
            ["fn t()", "mod more;", "use a::{b, c};"]
        );
    }

    #[test]
    fn examples_in_comments_are_tests_and_modules_for_tests_are_known() {
        let old = "/// Two.\n///\n/// ```\n/// assert_eq!(a::two(), 2);\n/// ```\npub fn two() -> u8 {\n    1\n}\n/// ```text\n/// x\n/// ```\nfn a() {}\n";
        assert_eq!(inline_tests(Some(old)).into_keys().collect::<Vec<_>>(), ["example of two"]);
        let cheat = old.replace("two(), 2", "two(), 1");
        assert_ne!(inline_tests(Some(old)), inline_tests(Some(&cheat)));
        assert_eq!(with_tests_of(Some(old), &cheat), old);
        assert_eq!(inline_tests(Some(old)), inline_tests(Some(&old.replace("    1", "    2"))));
        let source = "mod a;\n#[cfg(test)]\nmod checks;\n#[cfg(test)]\nmod tests { }\n";
        assert_eq!(test_modules(source), ["checks"]);
    }

    #[test]
    fn tests_of_the_start_come_back_into_the_work() {
        let new = OLD.replace("'{'", "'}'").replace("assert_eq!(f(), \"}\".len())", "").replace("char", "u8");
        let back = with_tests_of(Some(OLD), &new);
        assert_eq!(back, OLD.replace("'{'", "'}'").replace("char", "u8"));
        assert!(with_tests_of(Some(OLD), "pub fn f() {}\n").contains("mod tests {"));
        assert_eq!(with_tests_of(None, "fn a() {}\n#[cfg(test)]\nmod tests { }\n"), "fn a() {}\n\n");
    }
}
