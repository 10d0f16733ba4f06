//! Parallel runs, next to a working user: they don't interfere.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use crate::RALPH;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::process::Child;

/// Writes one part in each session, and waits in its first for `go` outside the repo.
const AGENT: &str = r#"
cat > /dev/null
echo x >> "$HERE/started"
while [ $RALPH_ITERATION = 1 ] && [ ! -e "$HERE/go" ]; do sleep 0.02; done
echo "part $RALPH_ITERATION" > part$RALPH_ITERATION.txt
echo "did part $RALPH_ITERATION"
[ $RALPH_ITERATION -lt 3 ] || echo '<promise>COMPLETE</promise>'
"#;

fn repo(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    let mut agent = repo.agent("stub", AGENT);
    agent["env"] = json!({ "HERE": env.path("").to_str().unwrap() });
    repo.configure(&[agent], "test -f part3.txt", &json!({ "max_iterations": 6 }));
    repo
}

fn started(env: &TestEnv, runs: usize) {
    until("the sessions", || {
        let lines = std::fs::read_to_string(env.path("started")).unwrap_or_default().lines().count();
        (lines >= runs).then_some(())
    });
}

fn proven(child: Child) -> serde_json::Value {
    let run = TestEnv::wait(child).exits(0).json();
    assert_eq!(run["success"], true, "{run}");
    run
}

#[test]
fn parallel_worktrees_and_user_commits_do_not_interfere() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    let start = || env.spawn(&repo.dir, &["run", "--isolation", "none", "--worktree", "--json"]);
    let runs = [start(), start(), start()];
    started(&env, 3);
    repo.write("mine.txt", "the user's own\n");
    repo.git(&["add", "mine.txt"]);
    repo.git(&["commit", "-qm", "mine"]);
    repo.git(&["branch", "another"]);
    repo.git(&["tag", "v1"]);
    std::fs::write(env.path("go"), "").unwrap();
    let ends = runs.map(proven);
    let branches: std::collections::BTreeSet<&str> =
        ends.iter().map(|run| run["branch"].as_str().unwrap()).collect();
    assert_eq!(branches.len(), 3, "{branches:?}");
    for branch in branches {
        assert_eq!(repo.git(&["show", &format!("{branch}:part3.txt")]), "part 3");
    }
    assert_eq!(repo.git(&["log", "-1", "--format=%s", "main"]), "mine");
}

/// A session killed during `git commit` leaves git's locks in the run's worktree.
#[test]
fn git_locks_of_a_killed_session_are_removed() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent(
        "stub",
        "cat > /dev/null; for file in index HEAD \"$(git symbolic-ref HEAD)\"; do : > \"$(git rev-parse --git-path $file).lock\"; done
         echo x > part.txt; echo '<promise>COMPLETE</promise>'",
    );
    repo.configure(&[agent], "test -f part.txt", &json!({}));
    let run = repo.ralph(&["run", "--isolation", "none", "--worktree", "--json"]).exits(0).json();
    let branch = run["branch"].as_str().unwrap();
    assert_eq!(repo.git(&["show", &format!("{branch}:part.txt")]), "x");
    let id = run["run_id"].as_str().unwrap();
    for file in
        [format!("refs/heads/{branch}"), format!("worktrees/{id}/HEAD"), format!("worktrees/{id}/index")]
    {
        assert!(repo.dir.join(".git").join(&file).exists(), "{file}");
        assert!(!repo.dir.join(format!(".git/{file}.lock")).exists(), "{file}");
    }
}

/// All starts request the same branch name; later ones get the next free name.
#[test]
fn simultaneous_starts_get_separate_branches() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    std::fs::write(env.path("go"), "").unwrap();
    let args = ["run", "--isolation", "none", "--worktree", "--branch", "work/same", "--json"];
    let runs: Vec<Child> = (0..4).map(|_| env.spawn(&repo.dir, &args)).collect();
    let mut branches: Vec<String> =
        runs.into_iter().map(|run| proven(run)["branch"].as_str().unwrap().to_owned()).collect();
    branches.sort();
    assert_eq!(branches, ["work/same", "work/same-v2", "work/same-v3", "work/same-v4"]);
}

#[test]
fn user_commits_during_a_sandboxed_in_place_run_ask_nothing() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    let child = env.spawn(&repo.dir, &["run", "--json"]);
    // The agent's variable names a folder that the sandbox doesn't have, so a file in the tree ends its wait.
    until("the first session", || repo.kinds().iter().any(|kind| kind == "iteration_started").then_some(()));
    repo.write("mine.txt", "the user's own\n");
    repo.git(&["add", "mine.txt"]);
    repo.git(&["commit", "-qm", "mine"]);
    repo.git(&["tag", "v1"]);
    let _ = child.id();
    TestEnv::finish(env.command("kill", &repo.dir).args(["-TERM", &child.id().to_string()])).exits(0);
    let run = TestEnv::wait(child);
    if run.code == Some(4) && run.stderr.contains("sandbox") {
        ralph_loop_testkit::skip(&run.stderr);
        return;
    }
    assert_eq!(run.exits(130).json()["reason"], "suspended");
    assert!(repo.events_named("needs_human").is_empty());
    assert!(repo.events_named("refs_moved").is_empty());
}

/// Whatever an agent does to branches and commits in its copy, worktree or clone, `ralph` keeps its files and reports the change.
#[test]
fn agent_may_switch_branches_and_commit_in_its_workspace() {
    let doings = [
        "git checkout -q -b feature",
        "git checkout -q -b feature; git add -A; git -c user.name=a -c user.email=a@b commit -qm mine",
        "git add -A; git -c user.name=a -c user.email=a@b commit -qm mine",
        "git checkout -q --detach",
    ];
    for (n, doing) in doings.iter().enumerate() {
        for place in
            [&["--isolation", "none", "--worktree"][..], &["--isolation", "none", "--clone", "."], &[]]
        {
            let env = TestEnv::new(RALPH);
            let repo = TestRepo::with_task(&env);
            let script = format!(
                "cat > /dev/null\necho \"part $RALPH_ITERATION\" > part$RALPH_ITERATION.txt\n{doing}\necho did a part\n[ $RALPH_ITERATION -lt 2 ] || echo '<promise>COMPLETE</promise>'"
            );
            let agent = repo.agent("stub", &script);
            repo.configure(
                &[agent],
                "test -f part1.txt && test -f part2.txt",
                &json!({ "max_iterations": 4 }),
            );
            let mut args = vec!["run", "--json"];
            args.extend(place);
            let done = repo.ralph(&args);
            if done.code == Some(4) {
                ralph_loop_testkit::skip(&done.stderr);
                continue;
            }
            let what = format!("{doing} {place:?}");
            let run = done.exits(0).json();
            assert_eq!(run["success"], true, "{what}: {run}");
            let folder = std::path::Path::new(run["run_dir"].as_str().unwrap());
            let events = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
            assert!(!events.contains("\"needs_human\""), "{what}");
            if n == 0 && place.len() == 3 {
                assert!(events.contains("\"refs_moved\""), "{what}: the change is reported");
            }
        }
    }
}
