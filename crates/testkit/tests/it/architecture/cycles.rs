//! Checks that no two modules of a crate import each other, based on `crate::…` paths outside of tests.

use super::{assert_none, crates};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_of_a_crate_do_not_need_each_other() {
    let mut wrong = Vec::new();
    for found in crates() {
        let source = found.manifest.parent().expect("a manifest has a folder").join("src");
        let circles = circles(&graph(&source));
        wrong.extend(circles.iter().map(|circle| format!("{}: {}", found.name, circle.join(", "))));
    }
    assert_none(&wrong, "modules that need each other:");
}

/// The imports between the files of a crate, by module name.
fn graph(source: &Path) -> Graph {
    let mut files = Vec::new();
    super::collect(source, &mut files);
    let module = |file: &Path| -> Option<String> {
        let name =
            file.strip_prefix(source).ok()?.with_extension("").display().to_string().replace('/', "::");
        let name = name.strip_suffix("::mod").unwrap_or(&name).to_owned();
        let own = !["lib", "main"].contains(&name.as_str()) && !name.starts_with("bin::");
        (own && !name.ends_with("_tests")).then_some(name)
    };
    let named: Vec<_> = files.iter().filter_map(|file| Some((module(file)?, file))).collect();
    let known: BTreeSet<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let file_of = |path: &str| {
        let mut path = path;
        while !known.contains(path) {
            path = path.rsplit_once("::")?.0;
        }
        Some(path.to_owned())
    };
    let uses = |name: &str, file: &Path| {
        let code = code(&std::fs::read_to_string(file).expect("a source file can be read"));
        used_in(&code).iter().filter_map(|path| file_of(path)).filter(|used| used != name).collect()
    };
    named.iter().map(|(name, file)| (name.clone(), uses(name, file))).collect()
}

/// The text without its comments and its tests.
fn code(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take(super::lines_before_tests(text)).collect();
    lines.into_iter().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// All `crate::` paths, including those in braces, without the prefix and item names.
fn used_in(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, start) in code.match_indices("crate::") {
        // `ralph_crate::` isn't a path of this crate.
        if !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            add_paths("", &code[at + start.len()..], &mut used);
        }
    }
    used
}

fn add_paths(above: &str, text: &str, used: &mut BTreeSet<String>) {
    if let Some(group) = text.strip_prefix('{') {
        heads(group).into_iter().for_each(|head| add_paths(above, head.trim_start(), used));
        return;
    }
    let name: String =
        text.chars().take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_').collect();
    let path = match (above, name.as_str()) {
        (above, "" | "self") => above.to_owned(),
        ("", name) => name.to_owned(),
        (above, name) => format!("{above}::{name}"),
    };
    match text[name.len()..].strip_prefix("::") {
        Some(below) if !name.is_empty() => add_paths(&path, below, used),
        _ => drop(used.insert(path)),
    }
}

/// The parts of a group in braces, up to its end.
fn heads(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&group[start..at]);
                return parts;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts
}

/// Groups of files that all reach each other across more than one top-level module.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reach = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(next) = open.pop() {
            for used in graph.get(&next).into_iter().flatten() {
                if seen.insert(used.clone()) {
                    open.push(used.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = graph.keys().map(|name| (name, reach(name))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (name, far) in &reached {
        let circle: Vec<String> = far
            .iter()
            .filter(|other| reached.get(other).is_some_and(|f| f.contains(*name)))
            .cloned()
            .collect();
        let top = |name: &String| name.split("::").next().map(str::to_owned);
        if circle.iter().any(|name| top(name) != top(&circle[0])) {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

#[test]
fn paths_are_found_in_braces_and_not_in_comments() {
    let code =
        code("use crate::{a::B, c::{D, e::F}, g};\n// crate::h\nfn f(x: crate::i::J) {}\nuse my_crate::k;\n");
    let expected: BTreeSet<String> = ["a", "c", "c::e", "g", "i"].map(String::from).into();
    assert_eq!(used_in(&code), expected);
}

#[test]
fn cycle_of_three_is_found_and_a_chain_is_not_a_cycle() {
    let edge = |from: &str, to: &[&str]| {
        (from.to_owned(), to.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>())
    };
    let graph = Graph::from([edge("a", &["b"]), edge("b", &["c"]), edge("c", &["a", "d"]), edge("d", &[])]);
    assert_eq!(circles(&graph), [["a", "b", "c"]]);
}
