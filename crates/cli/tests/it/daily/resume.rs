//! Resuming after the user changed something: an edited task, an installed program, uncommitted work.

use super::{RALPH, calc, capable_claude, claude_says, path, program, ralph_in};
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use std::process::Stdio;

/// A `claude` whose first session waits for the file `go` and then writes a second file.
fn waiting_claude(env: &TestEnv) {
    let (began, go) = (env.path("began"), env.path("go"));
    let script = format!(
        "cat > /dev/null\necho 'x = 2' > calc.py\nif [ -f {began} ]; then echo words > README; else touch {began}; while [ ! -f {go} ]; do sleep 0.05; done; fi\n{}",
        claude_says("Set `calc.x` to two."),
        began = began.display(),
        go = go.display(),
    );
    program(env, "claude", &script);
}

fn go(env: &TestEnv) {
    std::fs::write(env.path("go"), "").unwrap();
}

#[test]
fn promise_for_the_old_task_does_not_end_an_edited_run() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    waiting_claude(&env);
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "Make calc.x two"]);
    command.env("PATH", path(&env)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = command.spawn().unwrap();
    until("the first session", || env.path("began").exists().then_some(()));
    std::fs::write(env.path("new.md"), "Make calc.x two, and write a README\n").unwrap();
    repo.ralph(&["edit", "--file", env.path("new.md").to_str().unwrap()]).exits(0);
    go(&env);
    let done = TestEnv::wait(run).exits(0);
    assert_eq!(repo.verdicts(), ["not_promised", "candidate"], "{}", done.stderr);
    assert_eq!(repo.read("README"), "words\n");
    assert!(done.stderr.contains("the task was edited during this session"), "{}", done.stderr);
    assert!(repo.run_file("iterations/2/prompt.md").contains("write a README"));
}

#[test]
fn pending_pause_is_shown_during_the_session() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    waiting_claude(&env);
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "Make calc.x two"]);
    command.env("PATH", path(&env)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = command.spawn().unwrap();
    until("the first session", || env.path("began").exists().then_some(()));
    let status = repo.ralph(&["status"]).exits(0).stdout;
    assert!(!status.contains("not run yet") && status.contains("failed"), "the start was checked: {status}");
    repo.ralph(&["pause"]).exits(0);
    let status = repo.ralph(&["status"]).exits(0).stdout;
    assert!(status.contains("pauses after this session (asked by"), "{status}");
    let json = repo.ralph(&["status", "--json"]).exits(0).stdout;
    assert!(json.contains("pauses after this session"), "{json}");
    repo.ralph(&["resume"]).exits(0);
    let status = repo.ralph(&["status"]).exits(0).stdout;
    assert!(!status.contains("pauses after"), "{status}");
    go(&env);
    TestEnv::wait(run).exits(0);
}

#[test]
fn second_run_builds_on_the_first_uncommitted_result() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    for isolation in ["none", "auto"] {
        ralph_in(&env, &repo.dir, &["run", "--isolation", isolation, "Make calc.x two"]).exits(0);
        let more = claude_says("Added a second module.");
        program(&env, "claude", &format!("cat > /dev/null\necho 'y = 3' > other.py\n{more}"));
        let done = ralph_in(&env, &repo.dir, &["run", "--isolation", isolation, "Add other.py"]).exits(0);
        assert!(done.stderr.contains("together with your own changes of"), "{}", done.stderr);
        assert!(done.stderr.contains("`calc.py`"), "{}", done.stderr);
        let proof: serde_json::Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
        assert!(proof["beside"].as_array().unwrap().contains(&"calc.py".into()), "{proof}");
        assert!(repo.ralph(&["show", "--proof"]).exits(0).stdout.contains("checked with your own changes"));
        repo.ralph(&["apply", "--squash"]).exits(0);
        assert_eq!(repo.git(&["show", "--name-only", "--format="]), "other.py", "the run's own part alone");
        repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
        repo.git(&["clean", "-qfd"]);
        capable_claude(&env);
    }
}

#[test]
fn published_result_must_contain_all_check_inputs() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    repo.write("calc.py", "x = 2\n");
    program(&env, "claude", &format!("cat > /dev/null\necho 1 > other.py\n{}", claude_says("Added it.")));
    let run = ["run", "--isolation", "none", "--branch", "topic", "Add other.py"];
    let refused = ralph_in(&env, &repo.dir, &run).exits(3);
    assert!(refused.stderr.contains("need `calc.py`, which you have not committed"), "{}", refused.stderr);
}

#[test]
fn resume_after_an_install_checks_before_any_cost() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let run = ["run", "--isolation", "none", "--verify", "mytool calc.py", "Make calc.x two"];
    let paused = ralph_in(&env, &repo.dir, &run).exits(3);
    assert_eq!(paused.stderr.matches("`mytool` is not installed").count(), 2, "{}", paused.stderr);
    assert_eq!(repo.verdicts().len(), 1, "{}", paused.stderr);
    let again = ralph_in(&env, &repo.dir, &["resume"]).exits(3);
    assert!(again.stderr.contains("still lack what they need"), "{}", again.stderr);
    assert_eq!(repo.verdicts().len(), 1, "no second session runs for the same failure: {}", again.stderr);
    program(&env, "mytool", "grep -q 2 \"$1\"");
    let done = ralph_in(&env, &repo.dir, &["resume", "--json"]).exits(0).json();
    assert_eq!((&done["iterations"], &done["cost_usd"]), (&1.into(), &0.02.into()), "{done}");
    assert_eq!(done["level"], "independent", "the original files were checked again: {done}");
}

#[test]
fn resume_repeats_initial_checks_that_lacked_a_program() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let args = ["run", "--isolation", "none", "--verify", "mytool calc.py", "Make calc.x two"];
    let mut command = env.ralph_command(&repo.dir, &args);
    TestEnv::finish(command.env("PATH", path(&env)).env("RALPH_FAULT", "prepare.after"));
    program(&env, "mytool", "grep -q 2 \"$1\"");
    ralph_in(&env, &repo.dir, &["resume"]).exits(0);
    let starts = repo.events_named("prepared");
    let exits: Vec<_> = starts.iter().map(|event| &event["checks"]["results"][0]["exit_code"]).collect();
    assert_eq!(exits, [127, 1]);
}

/// Several criteria often name one command: it runs once on each tree.
#[test]
fn identical_checks_run_once_per_tree() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let log = env.path("ran");
    let check = |line: &str| serde_json::json!({ "name": line, "command_argv": ["sh", "-c", format!("echo x >> {}; test -f part.txt", log.display())] });
    let other = serde_json::json!({ "name": "other", "command_argv": ["sh", "-c", format!("echo {}; echo y >> {}", "$RALPH_VERIFIER", log.display())] });
    let more = serde_json::json!({
        "verifiers": [check("tests"), check("unit"), check("all"), other],
        "required_verifiers": ["tests", "unit", "all", "other"],
    });
    repo.configure(
        &[repo.agent("stub", "echo x > part.txt; echo '<promise>COMPLETE</promise>'")],
        "true",
        &more,
    );
    repo.run(&[]).exits(0);
    assert_eq!(repo.events_named("check_finished").len(), 4, "each has its result");
    // Twice at the start, because it fails there; once in the workspace, and once in the final check.
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "x\nx\ny\nx\ny\nx\ny\n");
}
