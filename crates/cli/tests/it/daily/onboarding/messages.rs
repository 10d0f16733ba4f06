//! Messages that new users read: refusals with reasons, templates, branch names, wrapped text.

use crate::daily::{RALPH, calc, capable_claude, claude_says, program, ralph_in};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

#[test]
fn failed_final_check_is_reported_after_an_idle_iteration() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(
        &env,
        "repo",
        &[("PROMPT.md", "# Write a part\n\nInto part.txt.\n"), (".gitignore", "lib/\n")],
    );
    // It passes in the workspace but not in a clean checkout, which lacks untracked files.
    repo.write("lib/there", "x\n");
    repo.stub(
        "cat > /dev/null; echo x > part.txt; echo '<promise>COMPLETE</promise>'",
        "test -f part.txt && (test -f lib/there || (echo 'lib is not here'; exit 3))",
    );
    let done = repo.run(&["--max-iterations", "3"]);
    assert_ne!(done.code, Some(0));
    assert!(done.stderr.contains("lib is not here"), "{}", done.stderr);
    for args in [&["status"][..], &["show", "--checks"]] {
        let shown = repo.ralph(args).exits(0).stdout;
        assert!(shown.contains("lib is not here"), "{args:?}: {shown}");
    }
    let status = repo.ralph(&["status"]).exits(0).stdout;
    assert!(status.contains("not proven:"), "{status}");
    let told: Vec<String> =
        repo.events_named("iteration_ended").iter().map(|event| event["failing"].to_string()).collect();
    assert!(told.last().unwrap().contains("final check"), "{told:?}");
}

#[test]
fn only_available_agent_is_not_skipped() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agents = [repo.agent("a", "cat > /dev/null; echo x >> part.txt"), repo.agent("b", "cat > /dev/null")];
    repo.configure(&agents, "test -f never", &json!({}));
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none"]);
    TestEnv::finish(command.env("RALPH_FAULT", "checkpoint.committed"));
    repo.ralph(&["cooldown", "b", "--seconds", "3600"]);
    let mut command = env.ralph_command(&repo.dir, &["resume"]);
    TestEnv::finish(command.env("RALPH_FAULT", "judge.after"));
    let refused = repo.ralph(&["skip", "--agent", "a"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("no other agent") && refused.stderr.contains("b rests until"),
        "{}",
        refused.stderr
    );
    let logs = repo.ralph(&["logs"]).exits(0).stdout;
    assert!(logs.contains(": b for 1 h"), "{logs}");
}

#[test]
fn all_placeholders_are_reported() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    for words in ["Fix <describe the bug>", "Add {{thing}} to the page", "YOUR TASK HERE"] {
        let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", words]).exits(2);
        assert!(refused.stderr.contains("placeholder"), "{words}: {}", refused.stderr);
    }
    repo.write("PROMPT.md", "# {{title}}\n\nTODO: describe the change\n");
    let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none"]).exits(2);
    assert!(
        refused.stderr.contains("{{title}}") && refused.stderr.contains("TODO: describe"),
        "{}",
        refused.stderr
    );
    let linted = repo.ralph(&["lint", "--json"]).exits(2).json();
    let found = linted["diagnostics"].to_string();
    assert_eq!(found.matches("untouched-template").count(), 2, "{found}");
    std::fs::remove_file(repo.dir.join("PROMPT.md")).unwrap();
    repo.ralph(&["init", "--plan"]).exits(0);
    let tasks = json!({"project": "p", "branchName": "ralph/p", "description": "Adds a part for everyone.", "verifyCommands": ["test -f part.txt"],
        "userStories": [{"id": "US-001", "title": "The part", "description": "Write part.txt with one line.", "acceptanceCriteria": ["part.txt exists"], "priority": 1, "passes": false, "notes": "", "dependsOn": []}]});
    repo.write("ralph/tasks.json", &tasks.to_string());
    let linted = repo.ralph(&["lint"]).exits(2);
    let linted = format!("{}{}", linted.stdout, linted.stderr);
    assert!(linted.contains("prd.md") && linted.contains("it is still the template"), "{linted}");
}

#[test]
fn sentence_may_end_with_a_file_name_and_one_word_is_a_file() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let done = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--json", "Update the README.md"]);
    assert_eq!(done.exits(0).json()["success"], true);
    for file in ["README.md", "notes.json", "docs/my task.md"] {
        let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--new", file]).exits(2);
        assert!(refused.stderr.contains(file), "{file}: {}", refused.stderr);
    }
}

#[test]
fn new_task_has_the_test_command_once() {
    let env = TestEnv::new(RALPH);
    for flag in ["--plan", "--json-task"] {
        let repo = TestRepo::new(&env, flag.trim_start_matches('-'), &[("Cargo.toml", "")]);
        repo.ralph(&["init", flag]).exits(0);
        let config: serde_json::Value = serde_json::from_str(&repo.read(".ralph/config.json")).unwrap();
        assert_eq!(config["verifiers"], json!(null), "{flag}: {config}");
        let task = if flag == "--plan" { "ralph/tasks.json" } else { "ralph.json" };
        assert!(repo.read(task).contains("cargo test"), "{flag}");
    }
}

#[test]
fn doctor_counts_user_agents_and_ignores_unused_ones() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    program(&env, "mine", "cat > /dev/null; echo hello");
    let mine = env.path("bin/mine").display().to_string();
    env.user_config(&json!({
        "agents": [
            { "name": "mine", "kind": "cli", "command_argv": [mine] },
            { "name": "other", "kind": "cli", "command_argv": ["/nonexistent/other"] },
        ],
        "agent_priority": ["mine"],
    }));
    let home = ralph_in(&env, &repo.dir, &[]).exits(0).stdout;
    assert!(home.contains("your own configuration has mine"), "{home}");
    let doctor = ralph_in(&env, &repo.dir, &["doctor", "--json"]).json();
    let other =
        doctor["checks"].as_array().unwrap().iter().find(|c| c["name"] == "configured: other").unwrap();
    assert_eq!(other["status"], "warn", "{other}");
    let asked = ralph_in(&env, &repo.dir, &["probe", "--isolation", "none", "--json"]).json();
    assert_eq!(asked.as_array().unwrap().len(), 1, "{asked}");
    let asked = ralph_in(&env, &repo.dir, &["probe", "mine", "--isolation", "none", "--json"]).json();
    assert_eq!(asked[0]["name"], "mine", "{asked}");
    let refused = ralph_in(&env, &repo.dir, &["probe", "unknown"]).exits(2);
    assert!(refused.stderr.contains("agent `unknown` doesn't exist"), "{}", refused.stderr);
    let written = ralph_in(&env, &repo.dir, &["init", "--json"]).exits(0).json();
    assert_eq!(written["agents"], json!(["mine"]));
    assert!(!repo.read(".ralph/config.json").contains("mine"), "they need no entry here");
}

#[test]
fn json_output_has_branches_refs_codes_and_reports() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let run =
        ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--json", "Make it two"]).exits(0).json();
    let own = format!("refs/ralph/{}/work", run["run_id"].as_str().unwrap());
    assert_eq!((&run["branch"], &run["ref"]), (&json!(null), &json!(own)), "{run}");
    let status = repo.ralph(&["status", "--json"]).exits(0).json();
    assert_eq!((&status["branch"], &status["ref"]), (&json!(null), &json!(own)), "{status}");
    let told = repo.ralph(&["notify", "test", "--json"]).exits(4).json();
    assert_eq!(told["error"]["code"], "INVALID_INPUT", "{told}");
    let told = repo.ralph(&["models", "check", "--json"]).exits(4).json();
    assert_ne!(told["error"]["code"], "SANDBOX_INIT_FAILED", "{told}");
    let report = repo.ralph(&["bug-report", "-o", "-", "--json"]).exits(0).json();
    assert!(report["report"].as_str().unwrap().starts_with("# ralph bug report"), "{report}");
}

#[test]
fn run_without_changes_has_an_empty_diff() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("cat > /dev/null; echo nothing", "test -f never");
    repo.run(&["--max-iterations", "1"]);
    let diff = repo.ralph(&["diff"]).exits(0);
    assert!(diff.stdout.is_empty() && diff.stderr.contains("changed no files"), "{diff:?}");
    let json = repo.ralph(&["diff", "--json"]).exits(0).json();
    assert_eq!((&json["files"], &json["patch"]), (&json!([]), &json!("")), "{json}");
    let apply = repo.ralph(&["apply"]).exits(0);
    assert!(apply.stderr.contains("nothing to apply"), "{}", apply.stderr);
    assert_eq!(repo.ralph(&["apply", "--json"]).exits(0).json()["files"], json!([]));
}

#[test]
fn narrow_terminal_wraps_reasons_between_words() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("cat > /dev/null; echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    repo.run(&[]).exits(0);
    let mut command = env.ralph_command(&repo.dir, &["clean", "--older-than", "0d", "--dry-run"]);
    let shown = TestEnv::finish(command.env("COLUMNS", "60")).exits(0).stdout;
    assert!(shown.contains("stays:"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
    assert!(!shown.contains("nob\n") && shown.contains("`--unread`"), "{shown}");
}

#[test]
fn every_command_finds_a_plan_in_another_folder() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    program(&env, "claude", &claude_says("Nothing to do here."));
    let tasks = json!({"project": "p", "branchName": "ralph/p", "description": "Adds a part for everyone.", "verifyCommands": ["test -f part.txt"],
        "userStories": [{"id": "US-001", "title": "The part", "description": "Write part.txt with one line.", "acceptanceCriteria": ["part.txt exists"], "priority": 1, "passes": false, "notes": "", "dependsOn": []}]});
    repo.write("plans/a/tasks.json", &tasks.to_string());
    repo.write("plans/a/prd.md", "# A part\n\n## 1. Summary\n\nA part for everyone.\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "plan"]);
    let linted = repo.ralph(&["lint", "--ralph-dir", "plans/a", "--json"]).json();
    assert!(linted.to_string().contains("plans/a/tasks.json"), "{linted}");
    let doctor = ralph_in(&env, &repo.dir, &["doctor", "--ralph-dir", "plans/a"]).stdout;
    assert!(doctor.contains("plans/a/tasks.json"), "{doctor}");
    let done = repo.ralph(&["archive", "--ralph-dir", "plans/a"]).exits(0).stdout;
    assert!(done.contains("plans/a/prd.md"), "{done}");
    assert!(!repo.read("plans/a/prd.md").contains("A part for everyone"));
}
