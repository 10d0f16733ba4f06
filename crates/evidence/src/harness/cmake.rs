//! What a `CMakeLists.txt` says of tests: which there are, what they run, and from which sources that is built.

use super::parts::{Part, Role};
use crate::weakened::is_test_path;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A call: `add_test(NAME a COMMAND b)`.
struct Call {
    name: String,
    args: Vec<String>,
    range: Range<usize>,
}

fn calls(text: &str) -> Vec<Call> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'#' => at = end_of_comment(text, at),
            b'"' => at = end_of_quote(text, at),
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let end = at + bytes[at..].iter().take_while(|b| word(b)).count();
                let open = end + bytes[end..].iter().take_while(|b| b.is_ascii_whitespace()).count();
                if bytes.get(open) != Some(&b'(') {
                    at = end;
                    continue;
                }
                let (args, close) = arguments(text, open + 1);
                found.push(Call { name: text[at..end].to_ascii_lowercase(), args, range: at..close });
                at = close;
            }
            _ => at += 1,
        }
    }
    found
}

fn end_of_comment(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |n| at + n)
}

fn end_of_quote(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(text.len())
}

/// The words up to the bracket that closes, and where that is.
fn arguments(text: &str, from: usize) -> (Vec<String>, usize) {
    let bytes = text.as_bytes();
    let (mut args, mut word, mut depth, mut at) = (Vec::new(), Vec::new(), 0, from);
    let mut finish = |word: &mut Vec<u8>| {
        if !word.is_empty() {
            args.push(String::from_utf8_lossy(&std::mem::take(word)).into_owned());
        }
    };
    while at < bytes.len() {
        match bytes[at] {
            b'#' => {
                finish(&mut word);
                at = end_of_comment(text, at);
                continue;
            }
            b'"' => {
                let end = end_of_quote(text, at);
                word.extend(bytes.get(at + 1..end.saturating_sub(1)).unwrap_or_default());
                at = end;
                continue;
            }
            b')' if depth == 0 => {
                at += 1;
                break;
            }
            b')' => depth -= 1,
            b'(' => depth += 1,
            byte if byte.is_ascii_whitespace() || byte == b';' => finish(&mut word),
            byte => word.push(byte),
        }
        at += 1;
    }
    finish(&mut word);
    (args, at)
}

/// What a call says of tests, as a key.
fn test_key(call: &Call) -> Option<String> {
    let first = call.args.first().map_or("", String::as_str);
    match call.name.as_str() {
        "add_test" if first == "NAME" => Some(format!("add_test {}", call.args.get(1)?)),
        "add_test" | "set_tests_properties" => Some(format!("{} {first}", call.name)),
        "set_property" if first == "TEST" => Some(format!("set_property {}", call.args.get(1)?)),
        "enable_testing" => Some("enable_testing".to_owned()),
        "include" if first == "CTest" => Some("include CTest".to_owned()),
        "add_subdirectory" if is_test_path(&format!("{first}/a.c")) => {
            Some(format!("add_subdirectory {first}"))
        }
        name if name.ends_with("discover_tests") => Some(format!("{name} {first}")),
        _ => None,
    }
}

fn test_calls(text: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for call in calls(text) {
        if let Some(key) = test_key(&call) {
            let said = found.entry(key).or_default();
            said.push_str(&format!("{}({})\n", call.name, call.args.join(" ")));
        }
    }
    found
}

/// The programs that tests run, each with its sources.
fn tested_programs(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let all = calls(text);
    let runs: BTreeSet<String> = all
        .iter()
        .filter(|call| call.name == "add_test" || call.name.ends_with("discover_tests"))
        .flat_map(|call| &call.args)
        .map(|word| word.trim_start_matches("$<TARGET_FILE:").trim_end_matches('>').to_owned())
        .collect();
    let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for call in &all {
        let (first, rest) = match (call.name.as_str(), call.args.as_slice()) {
            ("set" | "add_executable" | "target_sources", [first, rest @ ..]) => (first, rest),
            ("list", [how, first, rest @ ..]) if how == "APPEND" => (first, rest),
            _ => continue,
        };
        let words = rest.iter().flat_map(|word| {
            let list = word.strip_prefix("${").and_then(|word| word.strip_suffix('}'));
            list.and_then(|list| lists.get(list).cloned()).unwrap_or_else(|| vec![word.clone()])
        });
        let words: Vec<String> = words.collect();
        if matches!(call.name.as_str(), "set" | "list") {
            lists.entry(first.clone()).or_default().extend(words);
        } else if runs.contains(first) {
            let source = |word: &String| word.contains('.') && !word.contains('$');
            found.entry(first.clone()).or_default().extend(words.into_iter().filter(source));
        }
    }
    found
}

/// Sources that programs of tests are no longer built from: the program, and the source.
fn lost_sources(old: &str, new: &str) -> Vec<(String, String)> {
    let now = tested_programs(new);
    // A program that no test runs any more has lost its test; that is told by the test.
    let lost = tested_programs(old).into_iter().filter_map(|(program, sources)| {
        let kept = now.get(&program)?;
        Some(sources.difference(kept).map(|source| (program.clone(), source.clone())).collect::<Vec<_>>())
    });
    lost.flatten().collect()
}

/// What of it decides, and changed.
pub(super) fn changed(old: Option<&str>, new: Option<&str>) -> Vec<Part> {
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let mut parts = super::parts::keyed(&test_calls(old), &test_calls(new));
    for (program, source) in lost_sources(old, new) {
        parts.push(Part {
            key: Some(format!("sources of {program}")),
            role: Role::Configuration,
            added: false,
            needs: Some(source),
        });
    }
    parts
}

/// `new` with the tests of `old`, built from the sources of then, as far as they are there; without what only new tests need.
pub(super) fn put_back(old: &str, new: &str, there: &dyn Fn(&str) -> bool) -> String {
    let was: BTreeMap<String, String> = test_calls(old);
    let known = |word: &String| old.contains(word.as_str());
    let mut made: BTreeSet<String> = BTreeSet::new();
    let (mut out, mut at, mut done) = (String::new(), 0, BTreeSet::new());
    for call in calls(new) {
        let none = String::new();
        let first = call.args.first().unwrap_or(&none);
        let new_tests: Vec<&String> = call.args.iter().filter(|w| is_test_path(w) && !known(w)).collect();
        let declares = matches!(call.name.as_str(), "add_executable" | "add_library");
        if declares && !known(first) && !new_tests.is_empty() {
            made.insert(first.clone());
        }
        let key = test_key(&call);
        let text = match &key {
            Some(key) if done.insert(key.clone()) => was.get(key).cloned().unwrap_or_default(),
            Some(_) => String::new(),
            None if made.contains(first) => String::new(),
            None if new_tests.is_empty() => continue,
            None => {
                let rest: Vec<&str> =
                    call.args.iter().filter(|w| !new_tests.contains(w)).map(String::as_str).collect();
                format!("{}({})", call.name, rest.join(" "))
            }
        };
        out.push_str(new.get(at..call.range.start).unwrap_or_default());
        out.push_str(&text);
        at = call.range.end;
    }
    out.push_str(new.get(at..).unwrap_or_default());
    for (_, text) in was.iter().filter(|(key, _)| !done.contains(*key)) {
        out.push('\n');
        out.push_str(text);
    }
    for (program, source) in lost_sources(old, new).into_iter().filter(|(_, source)| there(source)) {
        out.push_str(&format!("\ntarget_sources({program} PRIVATE {source})\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "project(a C)\nadd_executable(app main.c)\nenable_testing()\nadd_test(\n  NAME app # it\n  COMMAND app\n)\n";

    fn keys(new: &str) -> Vec<String> {
        changed(Some(OLD), Some(new)).into_iter().filter_map(|part| part.key).collect()
    }

    #[test]
    fn what_tests_run_decides_and_new_sources_do_not() {
        assert_eq!(keys(&OLD.replace("main.c", "main.c two.c")), [""; 0]);
        assert_eq!(keys(&OLD.replace("\n  NAME", " NAME")), [""; 0]);
        assert_eq!(keys(&OLD.replace("COMMAND app", "COMMAND true")), ["add_test app"]);
        assert_eq!(keys(&OLD.replace("main.c", "easy.c")), ["sources of app"]);
        let lists = "set(S main.c b.c)\nadd_executable(app ${S})\nadd_test(app app)\n";
        let lost = changed(Some(lists), Some(&lists.replace(" b.c", "")));
        assert_eq!(lost[0].needs.as_deref(), Some("b.c"));
    }

    #[test]
    fn the_tests_of_the_start_come_back_without_the_product_going() {
        let new = OLD.replace("main.c)", "main.c two.c)\nadd_executable(test_two tests/test_two.c two.c)\ntarget_link_libraries(test_two m)")
            + "add_test(NAME two COMMAND test_two)\n";
        let back = put_back(OLD, &new, &|_| true);
        assert!(back.contains("add_executable(app main.c two.c)") && !back.contains("test_two"), "{back}");
        assert_eq!(test_calls(&back), test_calls(OLD));
        let cheat = OLD.replace("COMMAND app", "COMMAND true").replace("main.c", "easy.c");
        let back = put_back(OLD, &cheat, &|path| path == "main.c");
        assert!(back.contains("add_test(NAME app COMMAND app)"), "{back}");
        assert!(back.contains("target_sources(app PRIVATE main.c)"), "{back}");
        assert!(!put_back(OLD, &cheat, &|_| false).contains("main.c"), "a source that is gone stays so");
    }
}
