//! The examples of the repository: each has nothing to fix and is proven by its scripted agent.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use std::path::{Path, PathBuf};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
}

fn example<'a>(env: &'a TestEnv, name: &str) -> TestRepo<'a> {
    let examples: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let repo = TestRepo::new(env, "repo", &[]);
    copy(&examples.join(name), &repo.dir);
    repo.git(&["add", "-A", ".", ":!.ralph"]);
    repo.git(&["commit", "-q", "-m", "the example"]);
    repo
}

fn runs(name: &str, task: &str) {
    let env = TestEnv::new(RALPH);
    let repo = example(&env, name);
    let lint = repo.ralph(&["lint", "--probe-checks", "--json"]).exits(0).json();
    assert_eq!((&lint["file"], &lint["warnings"]), (&task.into(), &0.into()), "{lint}");
    let run = repo.run(&[]).exits(0).json();
    assert_eq!((&run["success"], &run["iterations"]), (&true.into(), &2.into()), "{run}");
}

#[test]
fn ralph_task() {
    runs("ralph_task", "ralph_task.md");
}

#[test]
fn ralph_json() {
    runs("ralph_json", "ralph.json");
}

#[test]
fn plan() {
    runs("plan", "ralph/tasks.json");
}

#[test]
fn prompt() {
    runs("prompt", "PROMPT.md");
}

#[test]
fn optimise() {
    let env = TestEnv::new(RALPH);
    let repo = example(&env, "optimise");
    repo.ralph(&["lint"]).exits(0);
    let run = repo.run(&[]).exits(0).json();
    assert_eq!((&run["success"], &run["iterations"]), (&true.into(), &3.into()), "{run}");
    assert_eq!(repo.events_named("went_back").len(), 1, "the second change made it worse");
    let summary = run["summary"].as_str().unwrap();
    assert!(summary.contains("Best: bench"), "{summary}");
}
