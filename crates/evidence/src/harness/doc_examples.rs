//! Examples in documentation that are run as tests: `>>>` of Python's `doctest`, fenced code in comments of Rust.

use std::collections::BTreeMap;
use std::ops::Range;

/// How keys of examples begin.
pub(super) const EXAMPLE: &str = "example of ";

/// An example: whose it is, and which lines it takes.
struct Example {
    key: String,
    lines: Range<usize>,
}

/// The examples of a text, in order.
fn examples(text: &str) -> Vec<Example> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut found, mut owner, mut at) = (Vec::<Example>::new(), String::new(), 0);
    while at < lines.len() {
        let bare = lines[at].trim();
        let head = bare.strip_prefix("async ").unwrap_or(bare);
        if let Some(name) = head.strip_prefix("def ").or_else(|| head.strip_prefix("class ")) {
            owner = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        }
        if !(bare.starts_with(">>> ") || bare == ">>>") {
            at += 1;
            continue;
        }
        let from = at;
        // Until a line that is empty, or ends the text that it stands in.
        while at < lines.len() && !lines[at].trim().is_empty() && !is_quote(lines[at]) {
            at += 1;
        }
        let number = found.iter().filter(|known| known.key.split(' ').next() == Some(&owner)).count();
        let key = if number == 0 { owner.clone() } else { format!("{owner} {number}") };
        found.push(Example { key, lines: from..at });
    }
    found
}

fn is_quote(line: &str) -> bool {
    let bare = line.trim();
    bare.starts_with("\"\"\"") || bare.starts_with("'''") || bare.starts_with("```")
}

/// The examples of a text by whose they are.
pub(super) fn doc_examples(text: Option<&str>) -> BTreeMap<String, String> {
    let text = text.unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let said = |example: Example| {
        let key = format!("{EXAMPLE}{}", if example.key.is_empty() { "the file" } else { &example.key });
        (key, lines.get(example.lines).unwrap_or_default().join("\n"))
    };
    examples(text).into_iter().map(said).collect()
}

/// `new` with the examples of `old` in the place of its own. Those whose function is gone are gone.
pub fn with_examples_of(old: Option<&str>, new: &str) -> String {
    let before = old.unwrap_or_default();
    let old_lines: Vec<&str> = before.lines().collect();
    let known: BTreeMap<String, Range<usize>> =
        examples(before).into_iter().map(|example| (example.key, example.lines)).collect();
    let lines: Vec<&str> = new.lines().collect();
    let (mut out, mut at): (Vec<&str>, usize) = (Vec::new(), 0);
    for example in examples(new) {
        out.extend(lines.get(at..example.lines.start).unwrap_or_default());
        if let Some(range) = known.get(&example.key) {
            out.extend(old_lines.get(range.clone()).unwrap_or_default());
        }
        at = example.lines.end;
    }
    out.extend(lines.get(at..).unwrap_or_default());
    out.join("\n") + "\n"
}

/// Fenced code in comments of Rust that is run as a test, by the item that it documents, each with its bytes.
pub(super) fn rust_examples(text: &str) -> Vec<(String, Range<usize>)> {
    let mut found: Vec<(String, Range<usize>)> = Vec::new();
    // Of the comment before the next item.
    let mut open: Vec<Range<usize>> = Vec::new();
    let (mut at, mut fence) = (0, None);
    for line in text.split_inclusive('\n') {
        let (start, bare) = (at, line.trim());
        at += line.len();
        let comment = bare.strip_prefix("///").or_else(|| bare.strip_prefix("//!")).map(str::trim);
        match (comment, fence) {
            (Some(said), None) if said.starts_with("```") => fence = Some((start, is_run(&said[3..]))),
            (Some(said), Some((from, run))) if said.starts_with("```") => {
                fence = None;
                let whole = from..at;
                match (run, bare.starts_with("//!")) {
                    (true, true) => found.push((format!("{EXAMPLE}the file"), whole)),
                    (true, false) => open.push(whole),
                    (false, _) => {}
                }
            }
            (Some(_), _) => {}
            (None, _) => {
                fence = None;
                // Attributes stand between a comment and its item.
                if bare.is_empty() || bare.starts_with("#[") || bare.starts_with("//") {
                    continue;
                }
                let name = item_name(bare);
                found.extend(open.drain(..).map(|range| (format!("{EXAMPLE}{name}"), range)));
            }
        }
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (key, _) in &mut found {
        let number = seen.entry(key.clone()).or_default();
        *number += 1;
        if *number > 1 {
            key.push_str(&format!(" {number}"));
        }
    }
    found
}

/// Whether fenced code with this mark is run or at least built as a test.
fn is_run(mark: &str) -> bool {
    let known =
        ["rust", "should_panic", "no_run", "compile_fail", "edition2018", "edition2021", "edition2024"];
    let mut words = mark.split([',', ' ', '{', '}']).filter(|word| !word.is_empty());
    words.all(|word| known.contains(&word))
}

/// The name in the first line of an item of Rust.
fn item_name(line: &str) -> String {
    let words: Vec<&str> =
        line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).collect();
    let kinds = ["fn", "struct", "enum", "trait", "mod", "static", "type", "union", "macro_rules"];
    let at = words.iter().position(|word| kinds.contains(word));
    at.and_then(|at| words.get(at + 1)).or(words.first()).map(|name| (*name).to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "def two():\n    \"\"\"\n    >>> two()\n    2\n    \"\"\"\n    return 1\n";

    #[test]
    fn examples_are_the_test_and_the_rest_is_product() {
        let fixed = OLD.replace("return 1", "return 2");
        assert_eq!(doc_examples(Some(OLD)), doc_examples(Some(&fixed)));
        let cheat = OLD.replace("    2\n", "    1\n");
        assert_ne!(doc_examples(Some(OLD)), doc_examples(Some(&cheat)));
        assert_eq!(with_examples_of(Some(OLD), &cheat), OLD);
        assert_eq!(
            with_examples_of(Some(OLD), &cheat.replace("return 1", "return 3")),
            OLD.replace("return 1", "return 3")
        );
        assert_eq!(doc_examples(Some(OLD)).keys().collect::<Vec<_>>(), ["example of two"]);
    }
}
