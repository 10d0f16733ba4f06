//! Checks that `crates/cli/tests/ATTACKS.md` and the tests of the attacks match.

use super::{assert_none, root};
use std::collections::BTreeSet;

/// Minimum number of attacks.
const ATTACKS_MIN: usize = 150;

/// Files with tables of attacks, the text before a name there, and the test file in the rows that name them.
const TABLES: &[(&str, &[&str], &str)] = &[
    ("cli/tests/it/safety/boundary/agent_tree.rs", &["attack(", "decided("], "safety/boundary/agent_tree.rs"),
    (
        "cli/tests/it/safety/boundary/git_folders.rs",
        &["attack(", "decided("],
        "safety/boundary/git_folders.rs",
    ),
    ("cli/tests/it/safety/boundary/ordinary_user.rs", &["attack("], "safety/boundary/ordinary_user.rs"),
    ("cli/tests/it/safety/boundary/repo_files.rs", &["attack("], "safety/boundary/repo_files.rs"),
    ("cli/tests/it/surface/serve/attacks.rs", &["attack("], "surface/serve/attacks.rs"),
    ("cli/tests/it/safety/trust/attacks.rs", &["attack("], "safety/trust/attacks.rs"),
    ("sandbox/src/local/escapes/attempts.rs", &["attempt("], "safety/escapes.rs"),
    ("sandbox/src/local/escapes/doors.rs", &["name: "], "safety/escapes.rs"),
];

struct Row {
    who: String,
    attack: String,
    twin: String,
    file: String,
    test: String,
}

fn rows() -> Vec<Row> {
    let text =
        std::fs::read_to_string(root().join("crates/cli/tests/ATTACKS.md")).expect("the list of attacks");
    let lines = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [who, attack, twin, test] = cells[..] else { panic!("four cells: {line}") };
            let (file, test) = test.split_once("::").expect("FILE::TEST");
            let [who, attack, twin, file, test] = [who, attack, twin, file, test].map(str::to_owned);
            Row { who, attack, twin, file, test }
        })
        .collect()
}

/// The names in a table: the first string after a word.
fn names(text: &str, before: &[&str]) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for word in before {
        for (at, _) in text.match_indices(word) {
            let Some(rest) = text[at + word.len()..].trim_start().strip_prefix('"') else { continue };
            if !text[..at].ends_with(is_part) {
                found.extend(rest.split('"').next().map(str::to_owned));
            }
        }
    }
    found
}

#[test]
fn every_listed_attack_has_a_test_and_a_twin() {
    let rows = rows();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for Row { who, attack, twin, file, test } in &rows {
        let path = root().join("crates/cli/tests/it").join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let is_there = text.contains(&format!("fn {test}()"))
            || text.contains(&format!(" {test} "))
            || text.contains(&format!(" {test}: "));
        if !is_there {
            wrong.push(format!("{attack}: there is no test `{test}` in {file}"));
        }
        if twin.is_empty() || !["agent", "repo", "fetched state", "remote"].contains(&who.as_str()) {
            wrong.push(format!("{attack}: by `{who}`, twin `{twin}`"));
        }
        if !seen.insert((attack, file, test)) {
            wrong.push(format!("{attack}: listed twice"));
        }
    }
    assert_none(&wrong, "rows of crates/cli/tests/ATTACKS.md:");
    assert!(rows.len() >= ATTACKS_MIN, "{} attacks", rows.len());
}

#[test]
fn every_attack_of_a_table_is_listed() {
    let rows = rows();
    let mut wrong = Vec::new();
    for (path, before, file) in TABLES {
        let text = std::fs::read_to_string(root().join("crates").join(path)).expect("a table of attacks");
        let found = names(&text, before);
        assert!(found.len() >= 10, "{path}: {} attacks", found.len());
        let listed: Vec<&str> =
            rows.iter().filter(|row| row.file == *file).map(|row| row.attack.as_str()).collect();
        wrong.extend(
            found
                .iter()
                .filter(|name| !listed.contains(&name.as_str()))
                .map(|name| format!("{path}: {name}")),
        );
    }
    assert_none(&wrong, "attacks that crates/cli/tests/ATTACKS.md does not list:");
}
