//! The sandbox, through the real binary: no known escape works, and a sandboxed run still does its work.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

#[test]
fn sandbox_blocks_every_escape_route() {
    let env = TestEnv::new(RALPH);
    let tried = env.ralph(&env.path("tmp"), &["sandbox", "test", "--isolation", "bwrap", "--json"]);
    if tried.code == Some(4) {
        ralph_loop_testkit::skip(&tried.stderr);
        return;
    }
    let rows = tried.exits(0).json();
    let rows = rows["escapes"].as_array().unwrap();
    let count = |key: &str, word: &str| rows.iter().filter(|row| row[key] == word).count();
    assert_eq!(count("seen", "stopped"), rows.len());
    assert!(rows.len() >= 49 && count("without", "escaped") >= 15, "{rows:?}");
    assert!(std::fs::read_dir(env.path("state/ralph/fences")).unwrap().next().is_none(), "it cleans up");
}

/// An agent that does its work and writes down which escapes succeeded.
const CURIOUS: &str = r#"echo work > part.txt
exec 2>/dev/null
{ cat "$1/secret" && echo read-a-secret
  echo x > "$1/made" && echo wrote-outside
  echo x > "$1/repo/.git/hooks/post-commit" && echo planted-a-hook
  echo x > "$(git rev-parse --git-common-dir)/hooks/post-commit" && echo planted-a-hook
  rm .git && echo removed-git
  [ -n "$SECRET_OF_THE_USER" ] && echo saw-a-variable
} > seen.txt
git status --short >> status.txt && git log --oneline >> status.txt
echo '<promise>COMPLETE</promise>'"#;

/// A run in a worktree or a clone; returns the result and the successful escapes.
fn fenced_run(env: &TestEnv, args: &[&str], more: &serde_json::Value) -> Option<(serde_json::Value, String)> {
    std::fs::write(env.path("secret"), "secret\n").unwrap();
    let repo = TestRepo::with_task(env);
    // Landlock can't protect the git folder of the agent's copy: the run needs it, and hooks planted there never run
    // outside.
    let landlock = args.contains(&"landlock");
    let lines = CURIOUS.lines();
    let own = |line: &&str| line.contains("rm .git") || line.contains("git-common-dir");
    let lines = lines.filter(|line| !(landlock && own(line)));
    let mut agent = repo.agent("stub", &lines.collect::<Vec<_>>().join("\n"));
    agent["command_argv"].as_array_mut().unwrap().push(json!(env.path("")));
    repo.configure(&[agent], "grep -q work part.txt && test -s status.txt", more);
    let mut command = env.ralph_command(&repo.dir, &[&["run", "--json"], args].concat());
    command.env("SECRET_OF_THE_USER", "x");
    let done = TestEnv::finish(&mut command);
    if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
        ralph_loop_testkit::skip(&done.stderr);
        return None;
    }
    let run = done.exits(0).json();
    let branch = run["branch"].as_str().unwrap().to_owned();
    let folder = env.path("state/ralph/workspaces").join(run["run_id"].as_str().unwrap());
    let seen = std::fs::read_to_string(folder.join("seen.txt")).unwrap();
    assert!(!env.path("made").exists(), "it wrote outside");
    assert!(!branch.is_empty() && !repo.dir.join(".git/hooks/post-commit").exists());
    assert!(std::fs::read_dir(env.path("state/ralph/fences")).unwrap().next().is_none(), "its home is gone");
    // Writes to a folder that is deleted with the session don't count.
    Some((run, seen.replace("wrote-outside\n", "")))
}

#[test]
fn sandboxed_run_in_a_worktree_changes_only_its_files() {
    for more in [json!({}), json!({"allow_agent_commits": true})] {
        let env = TestEnv::new(RALPH);
        let Some((_, seen)) = fenced_run(&env, &["--worktree"], &more) else { return };
        assert_eq!(seen, "");
    }
}

#[test]
fn unsandboxed_agent_reaches_everything() {
    let env = TestEnv::new(RALPH);
    std::fs::create_dir_all(env.path("state/ralph/fences")).unwrap();
    std::fs::write(env.path("secret"), "secret\n").unwrap();
    let repo = TestRepo::with_task(&env);
    // All except those that would break the run's own repo.
    let script = CURIOUS
        .lines()
        .filter(|line| !line.contains("rm .git") && !line.contains("hooks"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut agent = repo.agent("stub", &script);
    agent["command_argv"].as_array_mut().unwrap().push(json!(env.path("")));
    repo.configure(&[agent], "grep -q work part.txt", &json!({}));
    let mut command = env.ralph_command(&repo.dir, &["run", "--json", "--isolation", "none", "--worktree"]);
    command.env("SECRET_OF_THE_USER", "x");
    let run = TestEnv::finish(&mut command).exits(0).json();
    let folder = env.path("state/ralph/workspaces").join(run["run_id"].as_str().unwrap());
    let seen = std::fs::read_to_string(folder.join("seen.txt")).unwrap();
    assert_eq!(seen, "secret\nread-a-secret\nwrote-outside\nsaw-a-variable\n");
}

#[test]
fn sandboxed_run_in_a_clone_changes_only_its_files() {
    let env = TestEnv::new(RALPH);
    let from = env.path("repo").display().to_string();
    let Some((_, seen)) = fenced_run(&env, &["--clone", &from], &json!({})) else { return };
    assert_eq!(seen, "");
}

#[test]
fn landlock_can_be_selected() {
    let env = TestEnv::new(RALPH);
    let Some((_, seen)) = fenced_run(&env, &["--worktree", "--isolation", "landlock"], &json!({})) else {
        return;
    };
    assert_eq!(seen, "");
}

#[test]
fn sandbox_denials_are_journaled() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let work = "curl -s -m 20 http://forbidden.example/x; curl -s -m 20 http://forbidden.example/y; echo done > part.txt; echo '<promise>COMPLETE</promise>'";
    repo.stub(work, "grep -q done part.txt");
    let done = repo.ralph(&["run", "--worktree", "--json"]);
    if done.code == Some(4) {
        return ralph_loop_testkit::skip("no sandbox can be had on this machine");
    }
    let run = done.exits(0).json();
    let journal = std::path::Path::new(run["run_dir"].as_str().unwrap()).join("events.jsonl");
    let text = std::fs::read_to_string(journal).unwrap();
    let refused: Vec<serde_json::Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|event: &serde_json::Value| event["kind"] == "egress_refused")
        .collect();
    assert_eq!(refused.len(), 1, "one host, told once: {text}");
    assert_eq!((&refused[0]["host"], &refused[0]["port"]), (&"forbidden.example".into(), &80.into()));
}
