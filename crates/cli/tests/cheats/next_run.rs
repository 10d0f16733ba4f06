//! What one run leaves for the next: changed tests that nobody approved do not become the user's own by lying there.

use super::scene::{PART, UNIT};
use super::{PROMISE, RALPH};
use ralph_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};

/// Rewrites the test to what the module says.
const CHEAT: &str = "sed -i \"s/'right'/'wrong'/\" test_part.py; echo more >> notes.txt";
/// Does nothing of it.
const NEXT: &str = "echo more >> notes.txt";
const HONEST: &str = "echo \"VALUE = 'right'\" > part.py";

/// A repo in which a first run has left changed tests, which a person was asked about.
fn left<'a>(env: &'a TestEnv, args: &[&str]) -> TestRepo<'a> {
    let repo = TestRepo::new(env, "left", &[UNIT, PART]);
    repo.write("PROMPT.md", "# Do the work\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "scene"]);
    agent(&repo, CHEAT);
    let first = repo.ralph(&[&["run", "--json"], args].concat());
    assert_eq!(first.code, Some(3), "{}", first.stderr);
    repo
}

fn agent(repo: &TestRepo<'_>, work: &str) {
    repo.config(&json!({
        "agents": [{"name": "stub", "command_argv": ["sh", "-c", format!("{work}\n{PROMISE}")]}],
        "verifiers": [{"name": "unit", "command_argv": ["sh", "-c", "python3 -m unittest -q"]}],
        "max_iterations": 1,
    }));
}

fn next(repo: &TestRepo<'_>, work: &str) -> Finished {
    agent(repo, work);
    repo.ralph(&["run", "--new", "--json"])
}

#[track_caller]
fn is_asked_about(run: &Finished, path: &str) {
    let json = run.json();
    assert_eq!((run.code, &json["level"]), (Some(3), &Value::Null), "{}\n{json}", run.stderr);
    assert!(run.stderr.contains(path) || json.to_string().contains(path), "{}\n{json}", run.stderr);
}

#[test]
fn the_next_run_in_the_folder_asks_about_tests_that_the_first_one_changed() {
    let env = TestEnv::new(RALPH);
    let repo = left(&env, &[]);
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    // And the one after that.
    is_asked_about(&next(&repo, NEXT), "test_part.py");
}

#[test]
fn the_next_run_on_the_branch_asks_about_tests_that_the_first_one_changed() {
    let env = TestEnv::new(RALPH);
    let repo = left(&env, &["--branch", "fix"]);
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    // Also beside it, from what is checked out here.
    agent(&repo, NEXT);
    is_asked_about(&repo.ralph(&["run", "--new", "--worktree", "--json"]), "test_part.py");
}

#[test]
fn what_the_user_commits_or_writes_is_the_users() {
    let env = TestEnv::new(RALPH);
    let repo = left(&env, &[]);
    repo.git(&["add", "test_part.py"]);
    repo.git(&["commit", "-q", "-m", "wrong is right"]);
    let run = next(&repo, NEXT);
    assert_eq!(run.code, Some(0), "{}", run.stderr);

    let env = TestEnv::new(RALPH);
    let repo = left(&env, &[]);
    repo.write("test_part.py", &UNIT.1.replace("'right'", "'fine'"));
    let run = next(&repo, "echo \"VALUE = 'fine'\" > part.py");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

#[test]
fn honest_work_goes_on_from_what_an_unfinished_run_left() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "left", &[UNIT, PART]);
    repo.write("PROMPT.md", "# Do the work\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "scene"]);
    agent(&repo, "echo 'HALF = 1' >> part.py");
    let first = repo.ralph(&["run", "--json"]);
    assert_eq!(first.code, Some(1), "{}", first.stderr);
    let run = next(&repo, HONEST);
    let json = run.json();
    assert_eq!((run.code, &json["level"]), (Some(0), &json!("independent")), "{}\n{json}", run.stderr);
}
