//! No two modules of one crate that need each other: found in the text of `crate::…` paths, tests left out.

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

/// Who uses whom among the modules that stand directly below `source`.
fn graph(source: &Path) -> Graph {
    let mut graph = Graph::new();
    let entries: Vec<_> = std::fs::read_dir(source).expect("a crate has sources").flatten().collect();
    let module = |name: &str| match name.strip_suffix(".rs") {
        Some(stem) => (!["lib", "main"].contains(&stem)).then(|| stem.to_owned()),
        None => (!["bin", "snapshots"].contains(&name)).then(|| name.to_owned()),
    };
    for entry in &entries {
        let Some(name) = module(&entry.file_name().to_string_lossy()) else { continue };
        let mut files = Vec::new();
        match entry.path().is_dir() {
            true => super::collect(&entry.path(), &mut files),
            false => files.push(entry.path()),
        }
        let used = graph.entry(name).or_default();
        for file in files.iter().filter(|file| !file.to_string_lossy().ends_with("_tests.rs")) {
            used.extend(used_in(&code(&std::fs::read_to_string(file).expect("a source file can be read"))));
        }
    }
    let known: BTreeSet<String> = graph.keys().cloned().collect();
    for (name, used) in &mut graph {
        used.retain(|other| other != name && known.contains(other));
    }
    graph
}

/// The text without its comments and its tests.
fn code(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take(super::lines_before_tests(text)).collect();
    lines.into_iter().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The first names of all paths that begin with `crate::`, also of those in braces.
fn used_in(code: &str) -> BTreeSet<String> {
    let name_at = |text: &str| -> String {
        text.chars().take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_').collect()
    };
    let mut used = BTreeSet::new();
    for (at, path) in code.match_indices("crate::") {
        // `ralph_crate::` is no path of ours.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + path.len()..];
        match rest.strip_prefix('{') {
            None => drop(used.insert(name_at(rest))),
            Some(group) => used.extend(heads(group).into_iter().map(|head| name_at(head.trim_start()))),
        }
    }
    used
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

/// Groups of modules that all reach each other.
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
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

#[test]
fn paths_are_found_in_braces_and_not_in_comments() {
    let code =
        code("use crate::{a::B, c::{D, e::F}, g};\n// crate::h\nfn f(x: crate::i::J) {}\nuse my_crate::k;\n");
    let expected: BTreeSet<String> = ["a", "c", "g", "i"].map(String::from).into();
    assert_eq!(used_in(&code), expected);
}

#[test]
fn a_circle_of_three_is_found_whole_and_a_line_is_none() {
    let edge = |from: &str, to: &[&str]| {
        (from.to_owned(), to.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>())
    };
    let graph = Graph::from([edge("a", &["b"]), edge("b", &["c"]), edge("c", &["a", "d"]), edge("d", &[])]);
    assert_eq!(circles(&graph), [["a", "b", "c"]]);
}
