//! Task files through the real binary: lint with exact places and fixes, the files that `init` writes, conversions.

pub(crate) mod archive;
pub(crate) mod dialects;
pub(crate) mod examples;
pub(crate) mod plan;
pub(crate) mod proof;
pub(crate) mod prove;
pub(crate) mod schemas;

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};

const TASK: &str = "---
task_id: t-1
test_command: sh test.sh
max_iterations: 3
max_wall_time_minutes: 5
max_cost_usd_estimate: 1
---
# Task: Two files

Write two files.

## Success criteria
- [ ] M1.1 `a.txt` is there
  - verify: `test -f a.txt`
- [ ] M1.2 `b.txt` is there
  - verify: `test -f b.txt`
";

const PLAN: &str = r#"{
  "project": "Two files",
  "branchName": "ralph/two",
  "verifyCommands": ["sh test.sh"],
  "userStories": [
    {"id": "US-001", "title": "a", "acceptanceCriteria": ["a.txt is there"], "priority": 1, "passes": false},
    {"id": "US-002", "title": "b", "acceptanceCriteria": ["b.txt is there"], "priority": 2, "passes": false, "dependsOn": ["US-001"]}
  ]
}
"#;

/// Each finding of `ralph lint --json` as `file:line:column severity rule`.
fn findings(lint: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = lint["diagnostics"].as_array().unwrap().iter();
    all.map(|d| {
        let place = format!("{}:{}:{}", text(&d["file"]), d["line"], d["column"]);
        format!("{place} {} {}", text(&d["severity"]), text(&d["rule"]))
    })
    .collect()
}

fn lint(repo: &TestRepo<'_>, file: &str, code: i32) -> Vec<String> {
    let answer = repo.ralph(&["lint", file, "--json"]).exits(code).json();
    assert_eq!(answer["ok"], code == 0);
    findings(&answer)
}

#[test]
fn valid_tasks_of_every_dialect_lint_clean() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("test.sh", "true\n")]);
    repo.write("ralph_task.md", TASK);
    repo.write("ralph/tasks.json", PLAN);
    repo.write("ralph/prd.md", "# Two files\n\nBoth are wanted.\n");
    let json = json!({ "task": "Two files", "max_iterations": 3, "budget": { "max_tokens": 9 },
        "acceptance_criteria": [{ "type": "file_exists", "path": "a.txt" }] });
    repo.write("ralph.json", &json.to_string());
    repo.write(
        "PROMPT.md",
        "# Two files\n## Acceptance\n- both\n## Constraints\n- none\n## Verification\n- sh\n",
    );
    repo.stub("true", "sh test.sh");
    for file in ["ralph_task.md", "ralph.json", "ralph/tasks.json", "PROMPT.md", "ralph"] {
        assert!(lint(&repo, file, 0).is_empty(), "{file}: {:?}", lint(&repo, file, 0));
    }
    let several = repo.ralph(&["lint"]).exits(2);
    assert!(several.stderr.contains("`ralph_task.md`, `ralph.json`, `ralph/tasks.json`, `PROMPT.md`"));
    assert!(several.stdout.is_empty());
}

#[test]
fn lint_reports_line_and_column_as_text_and_json() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("test.sh", "true\n")]);
    repo.write(
        "ralph_task.md",
        &TASK.replace("max_iterations", "max_iteration").replace("- [ ] M1.2", "- [] M1.2"),
    );
    let said = repo.ralph(&["lint"]).exits(2);
    assert!(said.stdout.is_empty());
    assert!(said.stderr.starts_with("ralph_task.md:"), "{}", said.stderr);
    assert!(said.stderr.contains("ralph_task.md:4:1: error: "), "{}", said.stderr);
    assert!(said.stderr.contains("  fix: did you mean `max_iterations`?\n"), "{}", said.stderr);
    assert!(said.stderr.contains("ralph_task.md:15:3: error: "), "{}", said.stderr);

    repo.write("ralph.json", "{\n  \"task\": \"t\",\n  \"acceptance_criteria\": [\n    {\"type\": \"file_exist\", \"path\": \"a\"}\n  ]\n}\n");
    let found = lint(&repo, "ralph.json", 2);
    assert!(found.iter().any(|f| f.starts_with("ralph.json:4:") && f.contains(" error ")), "{found:?}");

    repo.write("ralph/tasks.json", &PLAN.replace("[\"US-001\"]", "[\"US-003\"]"));
    let found = lint(&repo, "ralph/tasks.json", 2);
    assert!(found.contains(&"ralph/tasks.json:7:5 error unknown-dependency".to_owned()), "{found:?}");

    repo.write("PROMPT.md", "\n");
    assert!(lint(&repo, "PROMPT.md", 2).contains(&"PROMPT.md:1:1 error empty-task".to_owned()));
    repo.write("PROMPT.md", "# Do\n");
    repo.write(".ralph/config.json", "{\n  \"max_iteration\": 1\n}");
    let found = lint(&repo, "PROMPT.md", 2);
    assert!(found.contains(&".ralph/config.json:2:17 error bad-config".to_owned()), "{found:?}");
}

#[test]
fn unreadable_task_file_is_a_usage_error() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[]);
    assert!(repo.ralph(&["lint"]).exits(2).stderr.contains("ralph init --task"));
    assert!(repo.ralph(&["lint", "no.md"]).exits(2).stderr.contains("`no.md` doesn't exist"));
    std::fs::write(repo.dir.join("PROMPT.md"), b"# \xff").unwrap();
    assert!(repo.ralph(&["lint"]).exits(2).stderr.contains("not UTF-8"));
    assert_eq!(repo.ralph(&["lint", "--json"]).exits(2).json()["success"], false);
    repo.write("ralph/tasks.json", PLAN);
    repo.write("ralph/prd.md", "# x");
    assert!(repo.ralph(&["lint", "ralph/prd.md"]).exits(2).stderr.contains("ralph/tasks.json"));
}

#[test]
fn lint_warns_about_missing_programs_and_checks_that_already_pass() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("test.sh", "false\n"), ("a.txt", "x\n")]);
    repo.write("ralph_task.md", &TASK.replace("sh test.sh", "no-such-tool-here --all"));
    assert_eq!(lint(&repo, "ralph_task.md", 0), ["ralph_task.md:3:1 warning missing-program"]);
    repo.write("ralph_task.md", TASK);
    assert!(lint(&repo, "ralph_task.md", 0).is_empty());
    let probed = repo.ralph(&["lint", "--probe-checks", "--json"]).exits(0).json();
    assert_eq!(findings(&probed), ["ralph_task.md:13:3 warning passes-already"]);
}

#[test]
fn probe_ends_a_hanging_check() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("test.sh", "true\n")]);
    repo.write("ralph_task.md", &TASK.replace("test -f a.txt", "sleep 600"));
    let probe = ["lint", "--probe-checks", "--probe-seconds", "1", "--json"];
    let probed = repo.ralph(&probe).exits(0).json();
    assert_eq!(findings(&probed), ["ralph_task.md:13:3 warning check-no-end"]);
    std::fs::remove_file(repo.dir.join("ralph_task.md")).unwrap();
    repo.write("PROMPT.md", "# Do\n\n## Verification\n\n- `sleep 600`\n");
    let probed = repo.ralph(&probe).exits(2).json();
    assert!(findings(&probed).contains(&"PROMPT.md:5:3 error check-no-end".to_owned()), "{probed}");
}

#[test]
fn verification_section_is_listed_tried_and_required() {
    let env = TestEnv::new(RALPH);
    let prompt = "# Do\n\n## Verification\n\n```sh\nsh test.sh\n${TOOL:-no-such-tool-here} --all\n```\n";
    let repo = TestRepo::new(&env, "repo", &[("test.sh", "test -f done.txt\n"), ("PROMPT.md", prompt)]);
    let probed = repo.ralph(&["lint", "--probe-checks", "--json"]).exits(2).json();
    assert!(findings(&probed).contains(&"PROMPT.md:7:1 error check-not-found".to_owned()), "{probed}");
    let sources: Vec<&str> =
        probed["checks"].as_array().unwrap().iter().map(|check| check["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["PROMPT.md:6", "PROMPT.md:7"]);
    // The configured check passes; the section's check fails until the second session of the second run.
    repo.write("PROMPT.md", "# Do\n\n## Verification\n\n- `sh test.sh`\n");
    repo.git(&["commit", "-qam", "verify"]);
    let script = "test -f first.txt && touch done.txt\ntouch first.txt\necho '<promise>COMPLETE</promise>'";
    repo.configure(&[repo.agent("stub", script)], "true", &json!({"max_iterations": 1}));
    let run = repo.ralph(&["run", "--isolation", "none"]).exits(1);
    assert!(run.stderr.contains("check     sh test.sh (PROMPT.md:5)"), "{}", run.stderr);
    assert!(run.stderr.contains("check     true (.ralph/config.json: verifiers.tests)"), "{}", run.stderr);
    repo.configure(&[repo.agent("stub", script)], "true", &json!({"max_iterations": 3}));
    assert_eq!(repo.run(&["--new"]).exits(0).json()["level"], "independent");
}

#[test]
fn fix_applies_safe_fixes_and_keeps_line_endings_and_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("test.sh", "true\n")]);
    let bad = TASK.replace("max_iterations: 3\n", "").replace("M1.1 ", "").replace('\n', "\r\n");
    repo.write("ralph_task.md", &bad);
    let path = repo.dir.join("ralph_task.md");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(
        lint(&repo, "ralph_task.md", 2)
            .contains(&"ralph_task.md:1:1 error missing-max-iterations".to_owned())
    );
    let fixed = repo.ralph(&["lint", "--fix"]).exits(0);
    assert!(fixed.stderr.contains("fixed: ralph_task.md:1: `max_iterations` is missing"), "{}", fixed.stderr);
    let text = repo.read("ralph_task.md");
    assert!(text.contains("max_iterations: 30\r\n") && text.contains("- [ ] M1.1 `a.txt`"), "{text}");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(lint(&repo, "ralph_task.md", 0).is_empty());
    let again = repo.ralph(&["lint", "--fix", "--json"]).exits(0).json();
    assert_eq!(again["fixed"], json!([]));
    assert_eq!(repo.read("ralph_task.md"), text);
}

#[test]
fn init_writes_a_clean_task_with_the_project_commands() {
    let kinds = [
        ("--task", "ralph_task.md"),
        ("--json-task", "ralph.json"),
        ("--plan", "ralph/tasks.json"),
        ("--prompt", "PROMPT.md"),
    ];
    for (flag, file) in kinds {
        for project in [&[("Cargo.toml", ""), ("src/lib.rs", "")][..], &[("readme", "x")][..]] {
            let env = TestEnv::new(RALPH);
            let repo = TestRepo::new(&env, "repo", project);
            let is_known = project.len() > 1;
            let told = repo.ralph(&[
                "init",
                flag,
                "--name",
                "Über \"alles\": 100 %",
                "--profile",
                "claude",
                "--json",
            ]);
            let told = told.exits(0).json();
            assert_eq!(told["commands"]["test"], if is_known { json!("cargo test") } else { Value::Null });
            let untouched = lint(&repo, file, 2);
            assert!(untouched.iter().any(|f| f.ends_with(" error untouched-template")), "{untouched:?}");
            let mut text = repo.read(file);
            for asked in [
                "Describe in two to four sentences what is wrong or missing, for whom, and where in the repository it belongs.",
                "Describe in a few sentences what is wrong or missing, for whom, and where in the repository it belongs.",
                "Describe what is wrong or missing, where in the repository it belongs, and what must not change.",
                "Describe in one sentence what the plan adds and for whom.",
                "Describe in two or three sentences what changes. Split a story that needs more.",
                "your test command",
                "Describe what works once this is done",
                "the command that checks it",
            ] {
                text = text.replace(asked, "The router loses messages.");
            }
            repo.write(file, &text);
            if flag == "--plan" {
                repo.write("ralph/prd.md", "# The router\n\nIt loses messages.\n");
            }
            let found = lint(&repo, file, 0);
            assert!(!found.iter().any(|f| f.contains(" error ")), "{flag}: {found:?}");
            assert_eq!(repo.read(file).contains("cargo test"), is_known, "{flag}");
            for state in ["guardrails.md", "progress.md", "notes.md", "diagnostics.md", "config.json"] {
                assert!(repo.dir.join(".ralph").join(state).is_file(), "{state}");
            }
            assert!(!repo.git(&["status", "--porcelain", "--untracked-files=all"]).contains(".ralph"));
            let added = repo.git(&["add", "--dry-run", "-A", "."]);
            assert!(added.contains("add '.ralph/config.json'"), "the configuration is the repo's to commit");
            assert_eq!(added.matches(".ralph/").count(), 1, "{added}");
            let config: Value = serde_json::from_str(&repo.read(".ralph/config.json")).unwrap();
            assert_eq!(config["max_iterations"], if flag == "--plan" { 10 } else { 30 });
        }
    }
}

#[test]
fn init_overwrites_nothing_and_lists_existing_files() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("ralph/prd.md", "mine\n"), ("ralph/prompt.md", "mine too\n")]);
    let refused = repo.ralph(&["init", "--plan"]).exits(2);
    assert!(refused.stderr.contains("`ralph/prd.md`, `ralph/prompt.md` already exist"), "{}", refused.stderr);
    assert!(!repo.dir.join("ralph/tasks.json").exists() && !repo.dir.join(".ralph").exists());
    repo.write(".ralph/config.json", "{\"max_iterations\": 7}");
    repo.ralph(&["init", "--plan", "--force"]).exits(0);
    assert!(repo.read("ralph/prd.md").contains("## 10. Open Questions"));
    assert_eq!(repo.read(".ralph/config.json"), "{\"max_iterations\": 7}", "a configuration stays");
    repo.ralph(&["init", "--plan", "--task"]).exits(2);
    repo.ralph(&["init", "--name", "x"]).exits(2);
}

/// The engine ticks boxes after an iteration's commit is made: branch, files and index follow.
#[test]
fn the_branch_is_the_proven_commit_with_its_boxes_ticked() {
    for args in
        [&["run", "--json"][..], &["run", "--json", "--isolation", "none"], &["run", "--json", "--worktree"]]
    {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::new(
            &env,
            "repo",
            &[("test.sh", "test -f a.txt && test -f b.txt\n"), ("ralph_task.md", TASK)],
        );
        let agent = repo.agent(
            "stub",
            "cat > /dev/null; if [ -f a.txt ]; then echo b > b.txt; else echo a > a.txt; fi; echo did it\n[ ! -f b.txt ] || echo '<promise>COMPLETE</promise>'",
        );
        repo.configure(&[agent], "", &json!({}));
        let done = repo.ralph(args);
        if done.code == Some(4) && done.stderr.contains("sandbox") {
            ralph_loop_testkit::skip(&done.stderr);
            continue;
        }
        let run = done.exits(0).json();
        let branch = run["branch"].as_str().unwrap();
        let events = repo.ralph(&["logs", run["run_id"].as_str().unwrap(), "--json"]).exits(0).stdout;
        let mut events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let proof = events.rfind(|e| e["kind"] == "proof_finished" && e["passed"] == true).unwrap();
        assert_eq!(repo.git(&["rev-parse", branch]), proof["commit"].as_str().unwrap(), "{args:?}");
        let task = repo.git(&["show", &format!("{branch}:ralph_task.md")]);
        assert_eq!(task.matches("- [x]").count(), 2, "{args:?}: {task}");
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{args:?}");
    }
}
