//! Workspaces that are half-made, removed or moved: the run resumes, or can at least be ended.
#![allow(clippy::disallowed_methods, reason = "tests start and kill processes")]

use crate::RALPH;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

/// Writes one part in each session, and waits in its second for `go`.
const AGENT: &str = r#"
cat > /dev/null
echo "part $RALPH_ITERATION" > part$RALPH_ITERATION.txt
[ $RALPH_ITERATION = 2 ] && : > "$HERE/second"
while [ $RALPH_ITERATION = 2 ] && [ ! -e "$HERE/go" ]; do sleep 0.02; done
echo "did part $RALPH_ITERATION"
[ $RALPH_ITERATION -lt 3 ] || echo '<promise>COMPLETE</promise>'
"#;

fn repo(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    let mut agent = repo.agent("stub", AGENT);
    agent["env"] = json!({ "HERE": env.path("").to_str().unwrap() });
    repo.configure(&[agent], "test -f part1.txt && test -f part3.txt", &json!({ "max_iterations": 6 }));
    repo
}

/// A run in a worktree that was killed in its second session.
fn killed_run(env: &TestEnv, repo: &TestRepo<'_>) -> String {
    let mut child = env.spawn(&repo.dir, &["run", "--isolation", "none", "--worktree", "--json"]);
    until("the second session", || env.path("second").exists().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(env.path("go"), "").unwrap();
    let listed = repo.ralph(&["list", "--all", "--json"]).exits(0).json();
    listed[0]["run_id"].as_str().unwrap().to_owned()
}

fn assert_resumes(repo: &TestRepo<'_>, id: &str) {
    let run = repo.ralph(&["--json", "resume", id]).exits(0).json();
    let branch = run["ref"].as_str().unwrap();
    assert_eq!(repo.git(&["show", &format!("{branch}:part1.txt")]), "part 1");
    assert_eq!(repo.git(&["show", &format!("{branch}:part3.txt")]), "part 3");
}

/// Git keeps running after the process that started it is killed.
#[test]
fn clone_with_a_git_process_left_running_is_recreated() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    std::fs::write(env.path("go"), "").unwrap();
    let real = TestEnv::finish(env.command("sh", &repo.dir).args(["-c", "command -v git"])).exits(0).stdout;
    let shims = env.path("shims");
    std::fs::create_dir_all(&shims).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' clone '*)\n: > '{here}/cloning'; for last; do :; done\n\
         for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do mkdir -p \"$last/x\"; echo $n > \"$last/x/$n\"; sleep 0.1; done;;\nesac\nexec {real} \"$@\"\n",
        here = env.path("").display(),
        real = real.trim()
    );
    let shim = shims.join("git");
    std::fs::write(&shim, script).unwrap();
    std::fs::set_permissions(&shim, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "--clone", ".", "--json"]);
    let path = command
        .get_envs()
        .find(|(key, _)| *key == "PATH")
        .and_then(|(_, value)| value.map(std::ffi::OsStr::to_owned))
        .or_else(|| std::env::var_os("PATH"))
        .unwrap();
    command.env("PATH", format!("{}:{}", shims.display(), path.display()));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the clone", || env.path("cloning").exists().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let run = repo.ralph(&["--json", "resume"]).exits(0).json();
    assert_eq!(run["success"], true, "{run}");
    let clone = std::path::PathBuf::from(run["workspace"].as_str().unwrap());
    assert!(clone.join("part3.txt").exists() && !clone.join("x").exists());
}

/// A tracked configuration isn't a user edit.
#[test]
fn killed_run_in_a_worktree_with_tracked_config_resumes() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    repo.git(&["add", "-f", ".ralph/config.json"]);
    repo.git(&["commit", "-qm", "configuration"]);
    let id = killed_run(&env, &repo);
    assert_resumes(&repo, &id);
    assert!(!repo.git(&["log", "--all", "--format=%s"]).is_empty());
}

#[test]
fn removed_worktree_is_restored_from_the_record() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    let id = killed_run(&env, &repo);
    std::fs::remove_dir_all(env.path("state/ralph/workspaces").join(&id)).unwrap();
    assert_resumes(&repo, &id);
}

#[test]
fn deleted_branch_is_restored_from_the_record() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    let id = killed_run(&env, &repo);
    repo.git(&["update-ref", "-d", &format!("refs/heads/ralph/{id}")]);
    assert_resumes(&repo, &id);
}

/// The record alone is enough to end a run.
#[test]
fn run_with_a_deleted_repo_can_be_cancelled() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    let id = killed_run(&env, &repo);
    let elsewhere = repo.dir.with_file_name("moved");
    std::fs::rename(&repo.dir, &elsewhere).unwrap();
    let refused = env.ralph(&elsewhere, &["resume", &id]).exits(4);
    assert!(refused.stderr.contains(&format!("the repo of run {id} is gone")), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("`ralph cancel {id}`")), "{}", refused.stderr);
    env.ralph(&elsewhere, &["cancel", &id]).exits(0);
    let over = env.ralph(&elsewhere, &["resume", &id]);
    assert_ne!(over.code, Some(0), "{over:?}");
    std::fs::rename(&elsewhere, &repo.dir).unwrap();
    let status = repo.ralph(&["status", &id, "--json"]).exits(0).json();
    assert_eq!(status["finished"]["reason"], "cancelled");
}
