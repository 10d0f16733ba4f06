//! From nothing to a run.

use super::{RALPH, calc, capable_claude, claude_says, path, program, ralph_in};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::io::Write as _;
use std::process::Stdio;

#[test]
fn one_sentence_is_a_complete_task() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let done =
        ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "Make calc.x two in calc.py"]).exits(0);
    let said = &done.stderr;
    assert!(said.contains("agents    claude (found on this machine; `--agents A,B` chooses)"), "{said}");
    assert!(
        said.contains("check     python3 -m unittest discover (from test_calc.py; `--verify CMD` chooses)"),
        "{said}"
    );
    assert!(said.contains("place     this folder, without a sandbox"), "{said}");
    assert_eq!(repo.read("calc.py"), "x = 2\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M calc.py\n?? added.txt");
    let spec = std::fs::read_to_string(repo.record(&repo.latest()).join("spec.json")).unwrap();
    let spec: serde_json::Value = serde_json::from_str(&spec).unwrap();
    assert_eq!(spec["task"]["title"], "Make calc.x two in calc.py");
}

#[test]
fn task_can_come_from_stdin_or_a_flag() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let args = ["run", "--isolation", "none", "--json", "-"];
    let mut command = env.ralph_command(&repo.dir, &args);
    command.env("PATH", path(&env)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"# Two\n\nMake calc.x two.\n").unwrap();
    let done = TestEnv::wait(child).exits(0);
    assert_eq!(done.json()["success"], true);
    repo.git(&["checkout", "-q", "."]);
    ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "-p", "README.md"]).exits(0);
    let titles: Vec<String> =
        ralph_in(&env, &repo.dir, &["list", "--json"]).json().as_array().map_or_else(Vec::new, |runs| {
            runs.iter().map(|run| run["title"].as_str().unwrap().to_owned()).collect()
        });
    assert_eq!(titles, ["Two", "README.md"]);
}

#[test]
fn mistyped_file_and_two_sentences_start_nothing() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    for name in ["fix", "task.md", "docs/my task.md"] {
        let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", name]).exits(2);
        assert!(refused.stderr.contains("cannot read the task file"), "{}", refused.stderr);
        assert!(refused.stderr.contains("-p"), "{}", refused.stderr);
    }
    let refused = ralph_in(&env, &repo.dir, &["run", "Fix this first", "Then fix that"]).exits(2);
    assert!(refused.stderr.contains("one sentence at a time"), "{}", refused.stderr);
    let refused = ralph_in(&env, &repo.dir, &["run", "-p", " "]).exits(2);
    assert!(refused.stderr.contains("the task is empty"), "{}", refused.stderr);
    assert_eq!(repo.latest(), "");
}

#[test]
fn headless_run_without_a_check_reports_what_is_missing() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("readme.txt", "hello\n")]);
    capable_claude(&env);
    let run = ["run", "--isolation", "none", "Write a file"];
    let refused = ralph_in(&env, &repo.dir, &run).exits(2);
    assert!(refused.stderr.contains("nothing checks the result"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--verify"), "{}", refused.stderr);
    let more = [&run[..], &["--verify", "test -f added.txt"]].concat();
    let done = ralph_in(&env, &repo.dir, &more).exits(0);
    assert!(done.stderr.contains("check     test -f added.txt"), "{}", done.stderr);
}

#[test]
fn terminal_asks_for_the_check_once() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("readme.txt", "hello\n")]);
    capable_claude(&env);
    let line = format!("{RALPH} run --isolation none 'Write a file'");
    let mut shell = env.command("script", &repo.dir);
    shell.args(["-q", "-e", "-c", &line, "/dev/null"]).env("PATH", path(&env)).env("TERM", "xterm");
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = shell.spawn() else {
        return ralph_loop_testkit::skip("`script` makes the terminal");
    };
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"test -f added.txt\n").unwrap();
    let done = TestEnv::wait(child);
    drop(stdin);
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    assert_eq!(done.stdout.matches("Which command shows that it's done? ").count(), 1, "{}", done.stdout);
}

#[test]
fn all_missing_requirements_are_reported_together() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.config(&json!({
        "agents": [{ "name": "one", "command_argv": ["no-such-agent"] },
                   { "name": "two", "kind": "actions", "profile": "default-cheap" }],
        "verifiers": [{ "name": "tests", "command_argv": ["no-such-check"] }],
    }));
    let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none"]).exits(4);
    for what in ["no-such-agent", "no-such-check", "ZAI_API_KEY"] {
        assert!(refused.stderr.contains(what), "{what}: {}", refused.stderr);
    }
    // Its workspace and its push target, too.
    let refused = ralph_in(&env, &repo.dir, &["run", "--provider", "daytona", "--publish", "pr"]).exits(4);
    for what in ["DAYTONA_API_KEY", "ZAI_API_KEY", "the repo has no remote `origin`"] {
        assert!(refused.stderr.contains(what), "{what}: {}", refused.stderr);
    }
}

/// The configuration from the older tool's documentation, verbatim.
const SEED: &str = r#"{
  "modal_priority": ["claude", "codex", "gemini"],
  "modal_selection": "round_robin",
  "required_verifiers": ["tests"],
  "completion_promise": "COMPLETE",
  "checkpoint_commits": false,
  "modals": [
    {
      "name": "claude",
      "prompt_mode": "stdin",
      "command_argv": ["claude", "-p", "--output-format", "text", "--dangerously-skip-permissions"],
      "timeout_seconds": 300,
      "rate_limit_detection": { "patterns": ["429", "rate limit", "quota", "too many requests"], "default_cooldown_seconds": 900 }
    }
  ],
  "verifiers": [
    { "name": "tests", "command_argv": ["bash", "-lc", "test -f part.txt"], "run_when": "on_change", "timeout_seconds": 1800 }
  ]
}"#;

#[test]
fn the_sample_configuration_runs_as_it_is() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(".ralph/config.json", SEED);
    program(&env, "claude", "cat > /dev/null\necho x > part.txt\necho '<promise>COMPLETE</promise>'");
    let done = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "-n", "3"]).exits(0);
    assert!(done.stderr.contains("not installed and left out: codex, gemini"), "{}", done.stderr);
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    program(&env, "gemini", &format!("cat > /dev/null\necho x > part.txt\n{}", claude_says("x")));
    let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--modal", "codex"]).exits(4);
    assert!(refused.stderr.contains("`codex` of agent `codex`"), "{}", refused.stderr);
    let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--modal", "unknown"]).exits(2);
    assert!(refused.stderr.contains("agent `unknown` doesn't exist"), "{}", refused.stderr);
    let elsewhere = env.path("home");
    let dir = repo.dir.display().to_string();
    ralph_in(
        &env,
        &elsewhere,
        &["run", "-d", &dir, "--isolation", "none", "-m", "opus", "--agents", "claude"],
    )
    .exits(0);
}

#[test]
fn model_profile_named_in_a_task_must_exist() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("test.sh", "test -f part.txt\n")]);
    program(&env, "claude", "cat > /dev/null\necho x > part.txt\necho '<promise>COMPLETE</promise>'");
    repo.write(
        "ralph_task.md",
        "---\ntask_id: t-1\ntest_command: sh test.sh\nmax_iterations: 3\nmax_wall_time_minutes: 5\nmax_cost_usd_estimate: 1\nmodel_profile_default: strong-docter\n---\n# Task: A file\n\n## Success criteria\n- [ ] M1.1 it is there\n  - verify: `test -f part.txt`\n- [ ] M1.2 tests pass\n  - verify: `sh test.sh`\n",
    );
    let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--publish", "none"]).exits(2);
    assert!(refused.stderr.contains("the model profile `strong-docter`"), "{}", refused.stderr);
    assert!(refused.stderr.contains("did you mean `strong-doctor`?"), "{}", refused.stderr);
}

#[test]
fn corrected_command_starts_if_the_first_had_no_session() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.config(
        &json!({"baseline": true, "agents": [repo.agent("stub", "echo x > part.txt; echo '<promise>COMPLETE</promise>'")]}),
    );
    // It is stopped once the missing program is reported.
    let mut wrong = env.ralph_command(&repo.dir, &["run", "--json", "--verify", "tesst -f part.txt"]);
    let wrong = TestEnv::finish(wrong.env("RALPH_FAULT", "prepare.after"));
    assert_ne!(wrong.code, Some(0), "{}", wrong.stderr);
    assert!(!repo.kinds().contains(&"iteration_started".to_owned()), "{}", wrong.stderr);
    let right = repo.ralph(&["run", "--json", "--verify", "test -f part.txt"]);
    assert_eq!(right.code, Some(0), "{}", right.stderr);
}
