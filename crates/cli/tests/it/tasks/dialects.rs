//! Tasks in every dialect, end to end: boxes, stories and criteria are claims until the engine's own checks confirm them.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};

const RUN: &[&str] = &["run", "--isolation", "none"];

const TASK: &str = r#"---
task_id: "task-001"
target_branch_slug: parts
max_iterations: 8
max_wall_time_minutes: 10
max_cost_usd_estimate: 1
test_command: "sh test.sh"
verify_commands:
  - "sh test.sh"
---

# Task: two parts

## Context
- [ ] M9.9 a box that does not count

## Success criteria

### Milestone M1 — parts
- [ ] M1.1 a.txt holds the letter a
  - verify: `grep -q a a.txt`
- [ ] M1.2 b.txt holds the letter b
  - verify: `grep -q b b.txt`
- [ ] M1.3 the readme tells of both
"#;

const PLAN: &str = r#"{
  "project": "parts",
  "branchName": "ralph/parts",
  "description": "Two parts.",
  "verifyCommands": ["sh test.sh"],
  "userStories": [
    {"id": "US-001", "title": "a", "description": "Make a.txt.", "acceptanceCriteria": ["a.txt exists"],
     "priority": 1, "passes": false, "notes": "", "dependsOn": []},
    {"id": "US-002", "title": "b", "description": "Make b.txt.", "acceptanceCriteria": ["b.txt exists"],
     "priority": 2, "passes": false, "notes": "", "dependsOn": ["US-001"]}
  ]
}
"#;

fn task_repo<'a>(env: &'a TestEnv, agent: &str) -> TestRepo<'a> {
    let repo = TestRepo::new(env, "repo", &[("ralph_task.md", TASK), ("test.sh", "[ -f a.txt ]\n")]);
    with_agent(&repo, agent);
    repo
}

fn plan_repo<'a>(env: &'a TestEnv, agent: &str) -> TestRepo<'a> {
    let files = [
        ("ralph/tasks.json", PLAN),
        ("ralph/prd.md", "# Parts\n"),
        ("ralph/prompt.md", "Iteration {{iteration}} of $RALPH_MAX_ITERATIONS: do the next story.\n"),
        ("ralph/progress.txt", "# Progress\n"),
        ("test.sh", "[ -f a.txt ]\n"),
    ];
    let repo = TestRepo::new(env, "repo", &files);
    with_agent(&repo, agent);
    repo
}

fn with_agent(repo: &TestRepo<'_>, agent: &str) {
    let script =
        repo.script("agent.sh", &format!("cat > /dev/null\ni=$RALPH_ITERATION\n{agent}\necho worked"));
    repo.config(&json!({"agents": [{"name": "stub", "command_argv": [script]}], "stuck_detection": {"disabled": true}}));
}

/// Creates a, then b, then claims the box that has no check.
const THREE_STEPS: &str = "case $i in
1) echo a > a.txt;;
2) echo b > b.txt;;
*) sed -i 's/\\[ \\] M1.3/[x] M1.3/' ralph_task.md; echo both > README;;
esac";

#[test]
fn engine_ticks_boxes_as_their_checks_pass() {
    let env = TestEnv::new(RALPH);
    let repo = task_repo(&env, THREE_STEPS);
    let result = repo.ralph(&[RUN, &["--json"]].concat()).exits(0).json();
    assert_eq!((&result["iterations"], &result["branch"]), (&json!(3), &json!("ralph/task-001/parts")));
    let ticked = |ids: &[&str]| {
        ids.iter().fold(TASK.to_owned(), |t, id| t.replace(&format!("[ ] {id}"), &format!("[x] {id}")))
    };
    for (n, ids) in [&["M1.1"][..], &["M1.1", "M1.2"], &["M1.1", "M1.2", "M1.3"]].iter().enumerate() {
        let commit = format!("ralph/task-001/parts~{}", 2 - n);
        assert_eq!(
            format!("{}\n", repo.git(&["show", &format!("{commit}:ralph_task.md")])),
            ticked(ids),
            "iteration {}",
            n + 1
        );
    }
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn run_killed_while_ticking_ends_the_same() {
    for fault in [
        "judge.before#1",
        "judge.receipt#2",
        "checkpoint.committed#2",
        "checkpoint.after#4",
        "judge.after#2",
        "prove.ran",
    ] {
        let env = TestEnv::new(RALPH);
        let repo = task_repo(&env, THREE_STEPS);
        let killed = TestEnv::finish(env.ralph_command(&repo.dir, RUN).env("RALPH_FAULT", fault));
        assert_eq!(killed.code, None, "{fault}: {}", killed.stderr);
        repo.ralph(RUN).exits(0);
        let log = repo.git(&[
            "log",
            "--format=%(trailers:key=Ralph-Iteration,valueonly,separator=)",
            "main..ralph/task-001/parts",
        ]);
        assert_eq!(log, "3\n2\n1", "{fault}");
        assert!(!repo.read("ralph_task.md").contains("[ ] M1."), "{fault}");
    }
}

#[test]
fn rewritten_criteria_do_not_count_as_done() {
    for cheat in [
        "sed -i '/M1.2/d' ralph_task.md; echo a > a.txt",
        "sed -i 's/grep -q b b.txt/true/' ralph_task.md; echo a > a.txt",
        "sed -i 's/sh test.sh/true/' ralph_task.md; echo b > b.txt; echo a > a.txt",
    ] {
        let env = TestEnv::new(RALPH);
        let repo = task_repo(&env, &format!("{cheat}\nsed -i 's/\\[ \\] M1.3/[x] M1.3/' ralph_task.md"));
        repo.ralph(&[RUN, &["--max-iterations", "2"]].concat()).exits(1);
        assert!(repo.kinds().contains(&"protected_changed".to_owned()), "{cheat}");
        assert!(repo.run_file("iterations/2/prompt.md").contains("may only be marked"), "{cheat}");
    }
}

#[test]
fn tick_without_the_work_is_reverted() {
    let env = TestEnv::new(RALPH);
    let repo = task_repo(
        &env,
        "sed -i 's/\\[ \\] M1/[x] M1/' ralph_task.md; [ $i -lt 2 ] || echo a > a.txt; [ $i -lt 3 ] || echo b > b.txt",
    );
    let result = repo.ralph(&[RUN, &["--json"]].concat()).exits(0).json();
    assert_eq!(result["iterations"], 3);
    let first = repo.git(&["show", "ralph/task-001/parts~2:ralph_task.md"]);
    assert!(!first.contains("[x]"), "{first}");
}

#[test]
fn story_passes_if_claimed_and_all_its_checks_pass() {
    let env = TestEnv::new(RALPH);
    let agent = r#"pass() { sed -i "/\"id\": \"$1\"/,/passes/ s/\"passes\": false, \"notes\": \"\"/\"passes\": true, \"notes\": \"seen\"/; /\"id\": \"$1\"/,/passes/ s/\"passes\": false/\"passes\": true/" ralph/tasks.json; }
case $i in
1) pass US-001;;
2) echo a > a.txt; pass US-001; git add -A; git commit -qm "feat: [US-001] - a";;
*) echo b > b.txt; pass US-002;;
esac"#;
    let repo = plan_repo(&env, agent);
    let result = repo.ralph(&[RUN, &["--json"]].concat()).exits(0).json();
    assert_eq!((&result["iterations"], &result["branch"]), (&json!(3), &json!("ralph/parts")));
    let early = repo.git(&["show", "ralph/parts~3:ralph/tasks.json"]);
    assert!(!early.contains("\"passes\": true"), "the early claim was taken back: {early}");
    assert_eq!(repo.read("ralph/tasks.json").matches("\"passes\": true").count(), 2);
    let prompt = repo.run_file("iterations/2/prompt.md");
    assert!(prompt.contains("Iteration 2 of 30: do the next story."), "{prompt}");
}

#[test]
fn story_added_by_the_agent_must_pass() {
    let env = TestEnv::new(RALPH);
    let agent = r#"echo a > a.txt
[ $i -gt 1 ] || sed -i 's/"userStories": \[/"userStories": [\n    {"id": "US-003", "title": "c", "description": "More.", "acceptanceCriteria": ["c"], "priority": 3, "passes": false, "notes": ""},/' ralph/tasks.json
sed -i '/US-00[12]/,/passes/ s/"passes": false, "notes": ""/"passes": true, "notes": "seen"/' ralph/tasks.json
[ $i -lt 3 ] || sed -i 's/"passes": false, "notes": ""/"passes": true, "notes": "seen"/' ralph/tasks.json"#;
    let repo = plan_repo(&env, agent);
    let result = repo.ralph(&[RUN, &["--json"]].concat()).exits(0).json();
    assert_eq!(result["iterations"], 3);
}

#[test]
fn plan_that_loses_a_criterion_is_not_done() {
    let env = TestEnv::new(RALPH);
    let agent = r#"echo a > a.txt; sed -i 's/"b.txt exists"//; s/"passes": false/"passes": true/' ralph/tasks.json; sed -i 's/"notes": ""/"notes": "x"/' ralph/tasks.json"#;
    let repo = plan_repo(&env, agent);
    repo.ralph(&[RUN, &["--max-iterations", "2"]].concat()).exits(1);
    assert!(repo.kinds().contains(&"protected_changed".to_owned()));
}

#[test]
fn every_criterion_of_ralph_json_is_checked() {
    let env = TestEnv::new(RALPH);
    let task = json!({"task": "Make c.txt", "max_iterations": 5, "acceptance_criteria": [
        {"type": "file_exists", "path": "c.txt"},
        {"type": "file_contains", "path": "c.txt", "pattern": "^c+$"},
        {"type": "command_succeeds", "command": "test -s c.txt"},
        {"type": "command_output", "command": "cat c.txt", "pattern": "cc"}]});
    let repo = TestRepo::new(&env, "repo", &[("ralph.json", &task.to_string())]);
    with_agent(&repo, "case $i in 1) : ;; 2) echo x > c.txt;; *) echo cc > c.txt;; esac");
    let result = repo.ralph(&[RUN, &["--json"]].concat()).exits(0).json();
    assert_eq!(result["iterations"], 3);
    let proof: serde_json::Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
    assert_eq!(proof["checks"].as_array().unwrap().len(), 4);
}

#[test]
fn bad_task_is_refused_before_a_run_is_created() {
    let env = TestEnv::new(RALPH);
    let repo = task_repo(&env, "true");
    repo.write("ralph_task.md", &TASK.replace("max_iterations: 8", "max_iteration: 8"));
    let refused = repo.ralph(RUN).exits(2);
    assert!(
        refused.stderr.contains("ralph_task.md:4:") && refused.stderr.contains("max_iterations"),
        "{}",
        refused.stderr
    );
    assert_eq!(repo.latest(), "");
    let task = json!({"task": "x", "acceptance_criteria": [{"type": "pr_checks_pass"}, {"type": "file_exists", "path": "a"}]});
    repo.write("other.json", &task.to_string());
    let refused = repo.ralph(&[RUN, &["other.json"]].concat()).exits(2);
    assert!(refused.stderr.contains("`C1` needs a pull request"), "{}", refused.stderr);
}

#[test]
fn two_tasks_in_a_folder_need_a_choice() {
    let env = TestEnv::new(RALPH);
    let repo = task_repo(&env, THREE_STEPS);
    repo.write("PROMPT.md", "# Another\n");
    let refused = repo.ralph(RUN).exits(2);
    assert!(refused.stderr.contains("ralph_task.md, PROMPT.md"), "{}", refused.stderr);
    repo.ralph(&[RUN, &["ralph_task.md"]].concat()).exits(0);
}

#[test]
fn several_tasks_run_in_parallel_in_separate_clones() {
    let env = TestEnv::new(RALPH);
    let task = |name: &str| {
        json!({"task": format!("Make {name}"), "acceptance_criteria": [{"type": "file_exists", "path": name}]}).to_string()
    };
    let repo = TestRepo::new(
        &env,
        "repo",
        &[("one.json", &task("one.txt")), ("two.json", &task("two.txt")), ("never.json", &task("never.txt"))],
    );
    with_agent(&repo, "touch one.txt two.txt");
    let before = repo.git(&["status", "--porcelain"]);
    let args =
        [RUN, &["one.json", "two.json", "never.json", "--jobs", "2", "--max-iterations", "2", "--json"]]
            .concat();
    let all = repo.ralph(&args).exits(1).json();
    assert_eq!((&all["success"], &all["proven"]), (&json!(false), &json!(2)));
    let codes: Vec<_> =
        all["runs"].as_array().unwrap().iter().map(|r| r["exit_code"].as_i64().unwrap()).collect();
    assert_eq!(codes, [0, 0, 1]);
    // Except `.ralph/`, which stays out of the user's commits.
    let before = before.replace("?? .ralph/", "");
    assert_eq!(repo.git(&["status", "--porcelain"]), before, "the user's own folder is as it was");
}

#[test]
fn several_tasks_use_the_requested_workspace() {
    let env = TestEnv::new(RALPH);
    let task = |name: &str| {
        json!({"task": format!("Make {name}"), "acceptance_criteria": [{"type": "file_exists", "path": name}]}).to_string()
    };
    let files = [
        ("one.json", &*task("one.txt")),
        ("two.json", &*task("two.txt")),
        ("a/b.txt", "b"),
        ("c/d.txt", "d"),
    ];
    let repo = TestRepo::new(&env, "repo", &files);
    with_agent(&repo, "touch one.txt two.txt; ls > seen.txt");
    let both = [RUN, &["one.json", "two.json", "--json"]].concat();
    let branches = |all: &Value| -> Vec<String> {
        let runs = all["runs"].as_array().unwrap().iter();
        runs.map(|run| run["result"]["branch"].as_str().unwrap().to_owned()).collect()
    };
    let all = repo.ralph(&[&both[..], &["--worktree"]].concat()).exits(0).json();
    for branch in branches(&all) {
        // A worktree shares the refs of the folder that it was made from; a clone does not.
        repo.git(&["rev-parse", "--verify", &branch]);
    }
    let here = repo.dir.display().to_string();
    let part = ["--clone", &here, "--depth", "1", "--sparse", "a"];
    let all = repo.ralph(&[&both[..], &part].concat()).exits(0).json();
    for run in all["runs"].as_array().unwrap() {
        let folder = env.path("state/ralph/workspaces").join(run["result"]["run_id"].as_str().unwrap());
        let seen = std::fs::read_to_string(folder.join("seen.txt")).unwrap();
        assert!(seen.lines().any(|name| name == "a") && !seen.lines().any(|name| name == "c"), "{seen}");
    }
    let refused = repo.ralph(&[&both[..], &["--branch", "mine"]].concat()).exits(2);
    assert!(refused.stderr.contains("one branch cannot hold several runs"), "{}", refused.stderr);
}

#[test]
fn append_only_files_are_restored_when_they_shrink() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[]);
    repo.write("PROMPT.md", "# T\n");
    let script = repo.script(
        "agent.sh",
        "cat > /dev/null; echo 'no rules' > .ralph/guardrails.md; : > .ralph/activity.log; echo x > x.txt; echo '<promise>COMPLETE</promise>'",
    );
    repo.config(&json!({"agents": [{"name": "stub", "command_argv": [script]}],
        "verifiers": [{"name": "tests", "command_argv": ["test", "-f", "x.txt"]}]}));
    repo.ralph(RUN).exits(0);
    let restored = repo.kinds().iter().filter(|k| *k == "restored").count();
    assert_eq!(restored, 2);
    assert!(repo.read(".ralph/guardrails.md").contains("### guardrail: "), "the rules are back");
    assert_eq!(repo.run_file("guardrails.md.edited"), "no rules\n");
}

#[test]
fn state_files_exist_and_progress_starts_empty() {
    let env = TestEnv::new(RALPH);
    let repo = task_repo(&env, &format!("echo 'step' >> .ralph/progress.md\n{THREE_STEPS}"));
    repo.ralph(RUN).exits(0);
    for name in ["guardrails.md", "progress.md", "notes.md", "diagnostics.md"] {
        assert!(!repo.read(format!(".ralph/{name}")).is_empty(), "{name}");
    }
    let first = repo.latest();
    repo.git(&["switch", "-q", "main"]);
    repo.ralph(&[RUN, &["--new"]].concat()).exits(0);
    assert!(repo.read(format!(".ralph/runs/{first}/progress.md")).contains("step"));
    assert_eq!(repo.git(&["branch", "--show-current"]), "ralph/task-001/parts-v2", "a rerun steps aside");
}

#[test]
fn agent_stays_in_its_working_folder() {
    let env = TestEnv::new(RALPH);
    let task = json!({"task": "Make c.txt", "repository": {"working_dir": "packages/a"},
        "acceptance_criteria": [{"type": "file_exists", "path": "c.txt"}]});
    let repo =
        TestRepo::new(&env, "repo", &[("ralph.json", &task.to_string()), ("packages/a/keep.txt", "x\n")]);
    with_agent(&repo, "touch c.txt");
    repo.ralph(RUN).exits(0);
    assert!(repo.dir.join("packages/a/c.txt").is_file());
    assert!(repo.run_file("iterations/1/prompt.md").contains("keep.txt"), "the file tree is context");
}

#[test]
fn user_edit_changes_the_criteria_and_a_bad_one_is_refused() {
    let env = TestEnv::new(RALPH);
    // It waits in its second session for the user's message.
    let wait = env.path("spoken");
    let repo = task_repo(
        &env,
        &format!(
            "echo a > a.txt; echo c > c.txt; sed -i 's/\\[ \\] M1.3/[x] M1.3/' ralph_task.md; [ $i -ne 2 ] || while [ ! -f {} ]; do sleep 0.05; done",
            wait.display()
        ),
    );
    let child = env.spawn(&repo.dir, RUN);
    ralph_loop_testkit::env::until("the second session", || {
        (repo.kinds().iter().filter(|k| *k == "iteration_started").count() == 2).then_some(())
    });
    repo.write("bad.md", "no frontmatter");
    repo.ralph(&["edit", "--file", "bad.md"]);
    let edited = TASK
        .replace("b.txt holds the letter b", "c.txt holds the letter c")
        .replace("grep -q b b.txt", "grep -q c c.txt");
    repo.write("new.md", &edited);
    repo.ralph(&["edit", "--file", "new.md"]).exits(0);
    std::fs::write(&wait, "").unwrap();
    TestEnv::wait(child).exits(0);
    let kinds = repo.kinds();
    assert!(
        kinds.contains(&"control_refused".to_owned()) && kinds.contains(&"spec_changed".to_owned()),
        "{kinds:?}"
    );
    assert!(
        repo.read("ralph_task.md").contains("[x] M1.2 c.txt holds the letter c"),
        "{}",
        repo.read("ralph_task.md")
    );
}

#[test]
fn task_sets_base_branch_and_ticket() {
    let env = TestEnv::new(RALPH);
    let task = json!({"task": "Make c.txt for {{ticket_id}}", "repository": {"branch": "stacked"},
        "git": {"feature_branch": "feature/{{ticket_id}}"},
        "acceptance_criteria": [{"type": "file_exists", "path": "c.txt"}, {"type": "file_exists", "path": "below.txt"}]});
    let repo = TestRepo::new(&env, "repo", &[("ralph.json", &task.to_string())]);
    repo.git(&["switch", "-q", "-c", "stacked"]);
    repo.write("below.txt", "x\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "below"]);
    repo.git(&["switch", "-q", "main"]);
    with_agent(&repo, "touch c.txt");
    let refused = repo.ralph(&[RUN, &["--ticket", "ABC-7"]].concat()).exits(2);
    assert!(refused.stderr.contains("starts from `stacked`"), "{}", refused.stderr);
    let dir = repo.dir.display().to_string();
    for place in [&["--worktree"][..], &["--clone", &dir]] {
        let result = repo.ralph(&[RUN, &["--ticket", "ABC-7", "--json"], place].concat()).exits(0).json();
        assert!(result["branch"].as_str().unwrap().starts_with("feature/ABC-7"), "{result}");
    }
    assert_eq!(repo.git(&["branch", "--show-current"]), "main");
}
