//! A run exists before it has a workspace: killed in between, it can be resumed or cancelled.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::Value;
use std::fs;

const WORKER: &str = "echo work > part.txt; echo '<promise>COMPLETE</promise>'";
const BOUNDARIES: [&str; 3] = ["place.before", "place.made", "place.after"];

/// Starts a run that is killed at a boundary, and returns its id.
fn start_killed(env: &TestEnv, repo: &TestRepo<'_>, args: &[&str], at: &str) -> String {
    repo.stub(WORKER, "grep -q work part.txt");
    let args = [&["run", "--isolation", "none", "--json"], args].concat();
    let done = TestEnv::finish(env.ralph_command(&repo.dir, &args).env("RALPH_FAULT", at));
    assert_eq!(done.code, None, "{at} did not kill: {}", done.stderr);
    let runs = repo.ralph(&["list", "--json"]).exits(0).json();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{at}: {runs}");
    assert_eq!(runs[0]["status"], "interrupted", "{at}: {runs}");
    runs[0]["run_id"].as_str().unwrap().to_owned()
}

fn kinds(repo: &TestRepo<'_>, run: &str) -> Vec<String> {
    let kind = |event: &Value| event["kind"].as_str().unwrap().to_owned();
    repo.events_of(run).iter().map(kind).collect()
}

#[test]
fn run_killed_during_placement_resumes() {
    for at in BOUNDARIES {
        for place in [&["--worktree"][..], &["--clone", "."], &["--branch", "fix"], &[]] {
            let env = TestEnv::new(RALPH);
            let repo = TestRepo::with_task(&env);
            let run = start_killed(&env, &repo, place, at);
            let placed = kinds(&repo, &run).contains(&"placed".to_owned());
            assert_eq!(placed, at == "place.after", "{at} {place:?}");
            let done = repo.ralph(&["resume", &run, "--json"]).exits(0).json();
            assert_eq!(done["run_id"].as_str(), Some(run.as_str()), "{at} {place:?}");
            let kinds = kinds(&repo, &run);
            assert_eq!(kinds.iter().filter(|kind| *kind == "placed").count(), 1, "{at} {place:?}: {kinds:?}");
            assert!(!repo.record(&run).join("place.json").exists(), "{at} {place:?}");
            let branches = repo.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
            assert!(branches.lines().count() <= 2, "{at} {place:?}: {branches}");
        }
    }
}

#[test]
fn run_killed_during_placement_can_be_cancelled() {
    for at in &BOUNDARIES[..2] {
        for place in [&["--worktree"][..], &["--clone", "."], &[]] {
            let env = TestEnv::new(RALPH);
            let repo = TestRepo::with_task(&env);
            let run = start_killed(&env, &repo, place, at);
            repo.ralph(&["cancel", &run]).exits(0);
            let listed = repo.ralph(&["list", "--json"]).exits(0).json();
            assert_eq!(listed[0]["status"], "stopped", "{at} {place:?}");
            assert_eq!(repo.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]), "main");
            assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1, "{at} {place:?}");
            let left = fs::read_dir(env.path("state/ralph/workspaces")).into_iter().flatten().count();
            assert_eq!(left, 0, "{at} {place:?}");
            let shown = repo.dir.join(".ralph/runs").join(&run);
            assert!(fs::symlink_metadata(shown).unwrap().is_dir(), "{at} {place:?}: a copy is left");
        }
    }
}

#[test]
fn run_killed_before_its_first_event_does_not_exist() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let record = repo.record("20261115-143307-k3f9");
    fs::create_dir_all(&record).unwrap();
    std::os::unix::fs::symlink(env.path("nowhere"), record.join("lock")).unwrap();
    repo.ralph(&["list", "--all"]).exits(0);
    assert!(!record.exists());
}

#[test]
fn a_refused_run_leaves_nothing() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORKER, "true");
    repo.git(&["branch", "taken"]);
    for (args, code) in [
        (&["--branch", "taken"][..], 2),
        (&["--clone", "/nonexistent/x"], 4),
        (&["--worktree", "--branch", "a b"], 2),
    ] {
        repo.run(args).exits(code);
        assert_eq!(repo.ralph(&["list", "--json"]).exits(0).json(), serde_json::json!([]), "{args:?}");
        assert_eq!(repo.latest(), "", "{args:?}");
    }
}
