//! Commits that cheat and commits that are honest, as data, each judged by `ralph prove`.
//!
//! `fair` lists the acceptable results of a case: a level, or `fails`. A row with `gap` is known to end otherwise; it says
//! how and why.
#![allow(clippy::disallowed_methods, reason = "tests look at the disk")]

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo, skip};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    kind: Kind,
    /// For readers.
    #[serde(rename = "why")]
    _why: String,
    /// What the developer asked for.
    task: String,
    language: String,
    check: String,
    base: BTreeMap<String, String>,
    change: BTreeMap<String, Option<String>>,
    fair: Vec<String>,
    #[serde(default)]
    gap: Option<String>,
}

#[derive(Deserialize, PartialEq, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Cheat,
    Honest,
}

/// At most this many cheats may end better than they should, and this many honest commits may be refused.
const GAPS_MAX: [(Kind, usize); 2] = [(Kind::Cheat, 5), (Kind::Honest, 0)];

const FILES: [&str; 2] = [include_str!("cases/cheats.json"), include_str!("cases/honest.json")];

fn result(case: &Case) -> String {
    let env = TestEnv::new(RALPH);
    let base: Vec<(&str, &str)> =
        case.base.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let repo = TestRepo::new(&env, "repo", &base);
    for (path, text) in &case.change {
        match text {
            Some(text) => repo.write(path, text),
            None => std::fs::remove_file(repo.dir.join(path)).unwrap(),
        }
    }
    repo.git(&["add", "-A", "-f"]);
    repo.git(&["commit", "-q", "-m", "work"]);
    let task = env.path("PROMPT.md").display().to_string();
    std::fs::write(&task, format!("{}\n", case.task)).unwrap();
    let done = repo.ralph(&["prove", "--json", "--base", "HEAD~1", "--task", &task, "--verify", &case.check]);
    let proof = done.json();
    match (&proof["passed"], proof["level"].as_str()) {
        (passed, Some(level)) if *passed == json!(true) => level.to_owned(),
        _ => "fails".to_owned(),
    }
}

#[test]
fn every_commit_gets_a_fair_result() {
    let all: Vec<Case> =
        FILES.iter().flat_map(|text| serde_json::from_str::<Vec<Case>>(text).unwrap()).collect();
    let programs = [("python", "python3"), ("js", "node"), ("rust", "cargo"), ("make", "make"), ("go", "go")];
    let is_there = |program: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| folder.join(program).is_file())
    };
    let mut cases = Vec::new();
    for case in &all {
        match programs.iter().find(|(language, program)| case.language == *language && !is_there(program)) {
            Some((_, program)) => skip(&format!("{}: {program} is not installed", case.name)),
            None => cases.push(case),
        }
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let ended = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let level = result(case);
                    ended.lock().unwrap().push((*case, level));
                }
            });
        }
    });
    let ended = ended.into_inner().unwrap();
    let mut wrong = Vec::new();
    for (case, level) in &ended {
        let fair = case.fair.contains(level);
        println!("{}: {level}{}", case.name, if fair { "" } else { ", not fair" });
        if fair == case.gap.is_some() {
            wrong.push(format!("{}: {level}, fair is {:?}, gap {:?}", case.name, case.fair, case.gap));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (kind, most) in GAPS_MAX {
        let gaps = all.iter().filter(|case| case.kind == kind && case.gap.is_some()).count();
        assert!(gaps <= most, "{gaps} gaps, at most {most}");
    }
}
