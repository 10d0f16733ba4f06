//! Edge cases of daily use.

use super::{RALPH, calc, claude_says, path, program, ralph_in};
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::process::Stdio;

/// The latest work commit of a run: its message, and the files of its tree.
fn work(repo: &TestRepo<'_>, run: &str) -> (String, String) {
    let name = format!("refs/ralph/{run}/work");
    (repo.git(&["log", "-1", "--format=%B", &name]), repo.git(&["ls-tree", "-r", "--name-only", &name]))
}

#[test]
fn silent_agent_gets_a_commit_message_from_its_files() {
    let env = TestEnv::new(RALPH);
    let test = "import unittest, calc\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(calc.x, 2)\n";
    let tracked = ("kept/__pycache__/of_the_repo.txt", "1\n");
    let repo = TestRepo::new(&env, "repo", &[("calc.py", "x = 1\n"), ("test_calc.py", test), tracked]);
    let edits = "mkdir -p .pytest_cache/v src/__pycache__; touch .pytest_cache/v/x src/__pycache__/a.pyc\necho 'x = 2' > calc.py; echo a > added.txt; echo 2 > kept/__pycache__/of_the_repo.txt";
    program(&env, "claude", &format!("cat > /dev/null\n{edits}\n{}", claude_says("Done.")));
    for isolation in ["none", "auto"] {
        let args = ["run", "--new", "--json", "--isolation", isolation, "Make it two"];
        let run = ralph_in(&env, &repo.dir, &args).exits(0).json();
        let (message, files) = work(&repo, run["run_id"].as_str().unwrap());
        assert!(
            message.starts_with("Update added.txt and 2 more files\n\n- added.txt\n- calc.py\n"),
            "{message}"
        );
        assert!(!files.contains(".pyc") && !files.contains(".pytest_cache"), "{files}");
        assert_eq!(run["files_changed"], json!(["added.txt", "calc.py", "kept/__pycache__/of_the_repo.txt"]));
        repo.ralph(&["restore", run["run_id"].as_str().unwrap(), "--yes"]).exits(0);
    }
}

#[test]
fn branch_name_has_no_template_placeholders() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    program(
        &env,
        "claude",
        &format!("cat > /dev/null\necho 'x = 2' > calc.py\n{}", claude_says("Set it to two now.")),
    );
    let task = json!({
        "task": "Make calc.x two",
        "acceptance_criteria": [{"type": "command_succeeds", "command": "python3 -m unittest discover"}],
        "git": { "feature_branch": "feature/ralph-{{ticket_id}}-{{iteration}}", "pr_title": "[{{ticket_id}}] two" },
    });
    repo.write("ralph.json", &task.to_string());
    let run =
        ralph_in(&env, &repo.dir, &["run", "ralph.json", "--json", "--worktree", "--isolation", "none"])
            .json();
    let branch = run["branch"].as_str().unwrap_or_else(|| panic!("{run}"));
    assert!(branch.starts_with("feature/ralph-") && !branch.contains(['{', '}']), "{branch}");
    assert!(branch.len() > "feature/ralph-".len(), "the task id replaces the ticket: {branch}");
}

#[test]
fn unknown_price_is_shown_as_unknown() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    let config = json!({"agents": [{"name": "mine", "command_argv": ["mine"]}]});
    program(
        &env,
        "mine",
        "cat > /dev/null\necho 'x = 2' > calc.py\nprintf 'Set it to two.\\n<promise>COMPLETE</promise>\\n'",
    );
    env.user_config(&config);
    let run = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--agents", "mine", "Make it two"])
        .exits(0);
    let id = repo.ralph(&["list", "--json"]).json()[0]["run_id"].as_str().unwrap().to_owned();
    let faces = [
        run.stderr,
        repo.ralph(&["status"]).exits(0).stdout,
        repo.ralph(&["show"]).exits(0).stdout,
        repo.ralph(&["show", &id, "1"]).exits(0).stdout,
        repo.ralph(&["list"]).exits(0).stdout,
        repo.ralph(&["cost"]).exits(0).stdout,
    ];
    for face in &faces {
        assert!(face.contains("unknown"), "{face}");
        assert!(!face.contains("$0"), "{face}");
    }
}

#[test]
fn settings_unused_by_the_provider_are_reported_at_the_start() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    program(
        &env,
        "claude",
        &format!("cat > /dev/null\necho 'x = 2' > calc.py\n{}", claude_says("Set it to two now.")),
    );
    env.user_config(&json!({"sandbox": {"image": "debian:12", "vcpu": 2}}));
    let run = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "Make it two"]).exits(0);
    let want = "note: `sandbox.image`, `sandbox.vcpu` do not count: the provider `local` has no use for them";
    assert!(run.stderr.contains(want), "{}", run.stderr);
}

#[test]
fn done_file_of_the_agent_survives_the_copy() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    let edits = "echo 'x = 2' > calc.py; echo 'All of it.' > .ralph/DONE.md";
    program(&env, "claude", &format!("cat > /dev/null\n{edits}\n{}", claude_says("Set it to two now.")));
    ralph_in(&env, &repo.dir, &["run", "Make it two"]).exits(0);
    assert_eq!(std::fs::read_to_string(repo.dir.join(".ralph/DONE.md")).unwrap(), "All of it.\n");
}

#[test]
fn stopped_process_is_not_reported_as_running() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    program(&env, "claude", "cat > /dev/null\ntouch started\nexec sleep 300");
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "Make it two"]);
    let child =
        command.env("PATH", path(&env)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the session", || repo.dir.join("started").exists().then_some(()));
    let pid = child.id();
    let signal = |name: &str| {
        let done = std::process::Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
        assert!(done.success());
    };
    signal("-STOP");
    until("the stop", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')).then_some(())
    });
    let resumed = repo.ralph(&["resume"]).exits(3);
    let want = format!("can't continue: its process {pid} is stopped");
    assert!(
        resumed.stderr.contains(&want) && resumed.stderr.contains(&format!("kill -CONT {pid}")),
        "{resumed:?}"
    );
    assert!(repo.ralph(&["status"]).stdout.contains("is stopped (Ctrl-Z, SIGSTOP)"));
    let json = repo.ralph(&["resume", "--json"]).exits(3).json();
    assert_eq!((&json["taken"], &json["stopped_pid"]), (&false.into(), &pid.into()), "{json}");
    signal("-CONT");
    let resumed = repo.ralph(&["resume"]).exits(0);
    assert!(resumed.stderr.contains("continues"), "{resumed:?}");
    repo.ralph(&["cancel"]).exits(0);
    TestEnv::wait(child);
}

#[test]
fn headless_clean_lists_what_it_removed() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    program(
        &env,
        "claude",
        &format!("cat > /dev/null\necho 'x = 2' > calc.py\n{}", claude_says("Set it to two now.")),
    );
    let args = ["run", "--json", "--worktree", "--isolation", "none", "Make it two"];
    let run = ralph_in(&env, &repo.dir, &args).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    repo.ralph(&["show", &run]).exits(0);
    let cleaned = repo.ralph(&["clean", "--older-than", "0d", "--yes"]).exits(0);
    assert!(cleaned.stdout.contains(&run) && cleaned.stdout.contains("files "), "{cleaned:?}");
    assert!(cleaned.stderr.contains("of 1 finished run removed"), "{cleaned:?}");
}

/// Programs that walk the tree (such as `node --test`) fail on a dangling link.
#[test]
fn run_leaves_no_dangling_links_where_checks_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(
        "echo right > part.txt; echo '<promise>COMPLETE</promise>'",
        "grep -q right part.txt && test -z \"$(find -L . -type l)\"",
    );
    let done = repo.ralph(&["run", "--json"]);
    if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
        ralph_loop_testkit::skip(&done.stderr);
        return;
    }
    done.exits(0);
}

#[test]
fn empty_text_and_zero_cost_are_refused() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    super::capable_claude(&env);
    let refused = |args: &[&str], words: &str| {
        let done = ralph_in(&env, &repo.dir, args).exits(2);
        assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
    };
    refused(&["run", ""], "the task is empty");
    refused(&["run", "  "], "the task is empty");
    refused(&["run", "--max-cost", "0", "Make it two"], "above 0");
    refused(&["run", "--model", "", "Make it two"], "the name of a model; it is empty");
    refused(&["model", ""], "the name of a model; it is empty");
    refused(
        &["run", "Fix", "the", "failing", "tests"],
        "put it into quotes: `ralph run \"Fix the failing tests\"`",
    );
    repo.write("a.md", "# Do a\n");
    refused(&["run", "a.md", "./a.md"], "`./a.md` is named twice");
    assert_eq!(repo.ralph(&["list", "--json"]).exits(0).json(), json!([]), "no run was made");
}

#[test]
fn approve_is_refused_if_the_run_asks_for_nothing() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none"]);
    TestEnv::finish(command.env("RALPH_FAULT", "prepare.after"));
    let refused = repo.ralph(&["approve"]).exits(2);
    assert!(refused.stderr.contains("has nothing to approve"), "{}", refused.stderr);
}

#[test]
fn start_in_a_subfolder_says_where_checks_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    repo.write("services/api/readme.txt", "x\n");
    let args = ["run", "--isolation", "none", "Write part.txt please", "--verify", "test -f part.txt"];
    let done = TestEnv::finish(&mut env.ralph_command(&repo.dir.join("services/api"), &args));
    assert!(
        done.stderr.contains("not in `services/api`; `--verify 'cd services/api && test -f part.txt'`"),
        "{}",
        done.stderr
    );
}

#[test]
fn several_tasks_are_linted_separately() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    let task = json!({"task": "Make it", "acceptance_criteria": [{"type": "file_exists", "path": "a"}]});
    repo.write("one/ralph.json", &task.to_string());
    repo.write("two/ralph.json", "{}");
    let done = repo.ralph(&["lint", "one/ralph.json", "two/ralph.json", "--json"]).exits(2).json();
    assert_eq!((&done["ok"], &done["files"][0]["ok"]), (&false.into(), &true.into()), "{done}");
    assert_eq!(done["files"][1]["ok"], false, "{done}");
    let one = repo.ralph(&["lint", "one/ralph.json", "--json"]).exits(0).json();
    assert_eq!(one["ok"], true, "{one}");
}

#[test]
fn unfilled_template_starts_nothing() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    super::capable_claude(&env);
    repo.ralph(&["init", "--task"]).exits(0);
    let text = repo.read("ralph_task.md");
    assert!(!text.contains("new-task"), "the task doesn't exist: {text}");
    let asked = "Describe in two to four sentences what is wrong or missing, for whom, and where in the repository it belongs.";
    assert!(text.contains(asked));
    repo.write("ralph_task.md", &text.replace(asked, "calc.x is wrong."));
    repo.ralph(&["lint"]).exits(2);
    let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none"]).exits(2);
    assert!(refused.stderr.contains("the template's placeholder"), "{}", refused.stderr);
}

#[test]
fn doctor_passes_if_only_a_task_is_missing() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    super::capable_claude(&env);
    let found = ralph_in(&env, &repo.dir, &["doctor", "--json"]).exits(0).json();
    let rows: Vec<_> =
        found["checks"].as_array().unwrap().iter().filter(|row| row["name"] == "task").collect();
    assert_eq!((rows.len(), &rows[0]["status"]), (1, &"warn".into()), "{found}");
    // A refused task has no row that says it is fine, and no code host was requested.
    repo.ralph(&["init", "--task"]).exits(0);
    let found = ralph_in(&env, &repo.dir, &["doctor", "--json"]).exits(4).json();
    let of = |name: &str| -> Vec<String> {
        let rows = found["checks"].as_array().unwrap().iter().filter(|row| row["name"] == name);
        rows.map(|row| row["status"].as_str().unwrap().to_owned()).collect()
    };
    assert!(of("task").iter().all(|status| status == "missing"), "{found}");
    assert_eq!(of("code host"), ["warn"], "{found}");
}

#[test]
fn headless_run_reports_an_unenforceable_cost_cap() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    let done = repo.ralph(&["run", "--isolation", "none"]).exits(0);
    assert!(done.stderr.contains("the cap of $10 cannot hold for it"), "{}", done.stderr);
}

#[test]
fn copy_missed_by_a_killed_run_is_made_by_the_next_command() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none"]);
    TestEnv::finish(command.env("RALPH_FAULT", "finish.after"));
    let shown = repo.dir.join(".ralph/runs").join(repo.latest());
    assert!(shown.symlink_metadata().unwrap().is_symlink());
    repo.ralph(&["status"]).exits(0);
    assert!(shown.symlink_metadata().unwrap().is_dir());
}
