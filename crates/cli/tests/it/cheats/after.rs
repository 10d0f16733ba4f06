//! The run after another one: what it is configured with, and how it must end.

use super::PROMISE;
use ralph_loop_testkit::{Finished, TestRepo};
use serde_json::{Value, json};

/// Adds something that decides nothing.
pub const NEXT: &str = "echo more >> notes.txt";
/// Does the work.
pub const HONEST: &str = "echo \"VALUE = 'right'\" > part.py";

/// One iteration of an agent that does this, judged by `check`.
pub fn configure(repo: &TestRepo<'_>, check: &str, work: &str) {
    repo.config(&json!({
        "agents": [{"name": "stub", "command_argv": ["sh", "-c", format!("{work}\n{PROMISE}")]}],
        "verifiers": [{"name": "unit", "command_argv": ["sh", "-c", check]}],
        "max_iterations": 1,
    }));
}

/// A new run with such an agent.
pub fn next(repo: &TestRepo<'_>, check: &str, work: &str) -> Finished {
    configure(repo, check, work);
    repo.ralph(&["run", "--new", "--json"])
}

/// A person is asked, and this is named.
#[track_caller]
pub fn is_asked_about(run: &Finished, path: &str) {
    let json = run.json();
    assert_eq!((run.code, &json["level"]), (Some(3), &Value::Null), "{}\n{json}", run.stderr);
    assert!(run.stderr.contains(path) || json.to_string().contains(path), "{}\n{json}", run.stderr);
}

/// It is done, by what was there at the start.
#[track_caller]
pub fn is_proven(run: &Finished) {
    let json = run.json();
    assert_eq!((run.code, &json["level"]), (Some(0), &json!("independent")), "{}\n{json}", run.stderr);
}
