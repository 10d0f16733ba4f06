//! Session memory: sessions remember their run and the repo, and nothing of other runs.

use super::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

const RUN: &[&str] = &["run", "--isolation", "none"];

fn titles(repo: &TestRepo<'_>) -> Vec<String> {
    let listed = repo.ralph(&["guardrail", "list", "--json"]).exits(0).json();
    listed.as_array().unwrap().iter().map(|rule| rule["title"].as_str().unwrap().to_owned()).collect()
}

fn prompt(repo: &TestRepo<'_>, n: u32) -> String {
    repo.run_file(&format!("iterations/{n}/prompt.md"))
}

#[test]
fn run_sees_no_errors_notes_or_progress_of_other_runs() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let first = format!(
        "cat > /dev/null\necho 'half of part one' >> .ralph/progress.md\n{RALPH} note 'only for the first' > /dev/null 2>&1\necho x >> x.txt"
    );
    repo.configure(&[repo.agent("stub", &first)], "echo strange failure; exit 3", &json!({}));
    repo.ralph(&[RUN, &["-n", "2"]].concat()).exits(1);
    for of_first in ["strange failure", "only for the first", "half of part one"] {
        assert!(prompt(&repo, 2).contains(of_first), "{of_first}: {}", prompt(&repo, 2));
    }
    let before = repo.latest();
    repo.write(".ralph/notes.md", "# Notes\n\nThe database is read-only.\n");
    repo.write("PROMPT.md", "# Something else\n\nWrite `part.txt`.\n");
    let second = "cat > /dev/null\necho x > part.txt\n[ $RALPH_ITERATION -lt 2 ] || echo '<promise>COMPLETE</promise>'";
    repo.configure(&[repo.agent("stub", second)], "test -f part.txt", &json!({}));
    repo.ralph(RUN).exits(0);
    for n in [1, 2] {
        let text = prompt(&repo, n);
        for of_first in ["strange failure", "only for the first", "half of part one"] {
            assert!(!text.contains(of_first), "{of_first}: {text}");
        }
        assert!(text.contains("The database is read-only."), "{text}");
    }
    for kept in ["errors.log", "progress.md", "notes.md"] {
        assert!(repo.record(&before).join(kept).is_file(), "{kept} is kept with its run");
    }
}

#[test]
fn resumed_run_gets_its_own_memory_back() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = "cat > /dev/null\necho \"progress of $RALPH_RUN_ID\" >> .ralph/progress.md\necho x >> x.txt";
    repo.configure(&[repo.agent("stub", agent)], "echo failure of $(wc -l < x.txt); exit 3", &json!({}));
    repo.ralph(&[RUN, &["-n", "1"]].concat()).exits(1);
    let first = repo.latest();
    repo.ralph(&[RUN, &["-n", "1", "--new"]].concat()).exits(1);
    let second = repo.latest();
    assert_ne!(first, second);
    repo.ralph(&["resume", &first, "--max-iterations", "2"]).exits(1);
    let text = repo.read(repo.record(&first).join("iterations/2/prompt.md"));
    assert!(text.contains("failure of 1") && !text.contains("failure of 2"), "{text}");
    assert!(repo.read(".ralph/progress.md").contains("# Progress"));
    assert!(repo.record(&second).join("progress.md").is_file());
}

#[test]
fn guardrails_are_managed_without_a_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.ralph(&["guardrail", "list"]).exits(0);
    repo.ralph(&["guardrail", "add", "never edit generated files"]).exits(0);
    repo.ralph(&["guardrail", "keep the public API"]).exits(0);
    repo.ralph(&["guardrail", "add", " "]).exits(2);
    assert!(!repo.git(&["status", "--porcelain"]).contains(".ralph"));
    let all = titles(&repo);
    assert_eq!(all[all.len() - 2..], ["never edit generated files", "keep the public API"]);
    let refused = repo.ralph(&["guardrail", "remove", "99"]).exits(2);
    assert!(refused.stderr.contains("guardrail 99 doesn't exist"), "{}", refused.stderr);
    let refused = repo.ralph(&["guardrail", "remove", "e"]).exits(2);
    assert!(refused.stderr.contains("guardrails say `e`"), "{}", refused.stderr);
    repo.ralph(&["guardrail", "remove", "generated files", "1"]).exits(0);
    let left = titles(&repo);
    assert_eq!(left.len(), all.len() - 2);
    assert!(!left.contains(&all[0]) && left.contains(&"keep the public API".to_owned()), "{left:?}");
    let shown = repo.ralph(&["guardrail", "list"]).exits(0).stdout;
    assert!(shown.contains("keep the public API"), "{shown}");
}

/// A session during which the user removes a rule: the agent adds one and tries to remove another.
fn rule_changing_agent(person: &str) -> String {
    format!(
        "cat > /dev/null\n[ $RALPH_ITERATION -gt 1 ] || {{ {person}; }}\n\
         printf '\\n### guardrail: lesson %s\\n- instruction: look twice\\n' $RALPH_ITERATION >> .ralph/guardrails.md\n\
         echo x >> x.txt\n[ $RALPH_ITERATION -lt 3 ] || echo '<promise>COMPLETE</promise>'"
    )
}

#[test]
fn removed_guardrails_stay_removed_during_a_run() {
    for place in [&["--isolation", "none"][..], &["--isolation", "none", "--worktree"], &[]] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.ralph(&["guardrail", "add", "never edit generated files"]).exits(0);
        let here = repo.dir.display();
        // A sandboxed agent can't reach `ralph`, so the user acts beforehand.
        let sandboxed = place.is_empty();
        let person = format!("{RALPH} -C {here} guardrail remove 'generated files' > /dev/null 2>&1");
        let person = if sandboxed { "true".to_owned() } else { person };
        repo.configure(&[repo.agent("stub", &rule_changing_agent(&person))], "test -f x.txt", &json!({}));
        let done = repo.ralph(&[&["run"][..], place].concat());
        if sandboxed && done.code == Some(4) {
            ralph_loop_testkit::skip("no sandbox here");
            continue;
        }
        let done = done.exits(0);
        let left = titles(&repo);
        assert_eq!(left.contains(&"never edit generated files".to_owned()), sandboxed, "{place:?} {left:?}");
        for lesson in ["lesson 1", "lesson 2", "lesson 3"] {
            let times = left.iter().filter(|title| *title == lesson).count();
            assert_eq!(times, 1, "{place:?} {left:?} {}", done.stderr);
        }
        assert!(prompt(&repo, 2).contains("lesson 1"), "{place:?}");
        assert_eq!(prompt(&repo, 2).contains("never edit generated files"), sandboxed, "{place:?}");
        assert!(!repo.kinds().contains(&"restored".to_owned()), "{place:?} {:?}", repo.kinds());
    }
}

#[test]
fn an_agent_cannot_remove_a_guardrail() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.ralph(&["guardrail", "add", "never edit generated files"]).exits(0);
    let agent = "cat > /dev/null\nsed -i '/generated/d' .ralph/guardrails.md\necho x > x.txt\necho '<promise>COMPLETE</promise>'";
    repo.configure(&[repo.agent("stub", agent)], "test -f x.txt", &json!({}));
    repo.ralph(RUN).exits(0);
    assert!(titles(&repo).contains(&"never edit generated files".to_owned()));
    assert!(repo.kinds().contains(&"restored".to_owned()));
}

/// The length of the common prefix of two prompts.
fn shared(one: &str, two: &str) -> usize {
    one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count()
}

const TASK_MD: &str = "---\ntask_id: t-1\ntest_command: sh test.sh\nmax_iterations: 4\nmax_wall_time_minutes: 5\nmax_cost_usd_estimate: 1\n---\n# Task: A file\n\n## Success criteria\n- [ ] M1.1 it is there\n  - verify: `test -f never.txt`\n- [ ] M1.2 tests pass\n  - verify: `sh test.sh`\n";

#[test]
fn stable_prompt_parts_come_first_in_every_dialect() {
    let json_task = json!({"task": "Make c.txt", "repository": {"working_dir": "packages/a"},
        "context_files": ["readme.txt", "packages/a/notes.txt"],
        "acceptance_criteria": [{"type": "file_exists", "path": "never.txt"}]})
    .to_string();
    let plan = json!({"project": "p", "branchName": "ralph/p", "description": "Parts.", "verifyCommands": ["test -f never.txt"],
        "userStories": [{"id": "US-001", "title": "a", "description": "Make a.", "acceptanceCriteria": ["a exists"],
        "priority": 1, "passes": false, "notes": "", "dependsOn": []}]})
    .to_string();
    let tasks: [(&str, &[(&str, &str)]); 4] = [
        ("PROMPT.md", &[("PROMPT.md", "# Do it\n\nWrite never.txt.\n")]),
        ("ralph_task.md", &[("ralph_task.md", TASK_MD)]),
        ("ralph.json", &[("ralph.json", &json_task)]),
        (
            "ralph/tasks.json",
            &[
                ("ralph/tasks.json", &plan),
                ("ralph/prd.md", "# The PRD\n\nAll of it.\n"),
                ("ralph/prompt.md", "# A plan of {{max_iterations}} sessions\n\nDo the next story.\n"),
                ("ralph/progress.txt", "# Progress\n\n---\n"),
            ],
        ),
    ];
    for (name, files) in tasks {
        let env = TestEnv::new(RALPH);
        let more = [
            ("test.sh", "test -f never.txt\n"),
            ("readme.txt", "what it is\n"),
            ("packages/a/notes.txt", "edited by sessions\n"),
        ];
        let repo = TestRepo::new(&env, "repo", &[files, &more].concat());
        repo.write(".ralph/notes.md", "# Notes\n\nThe database is read-only.\n");
        // Every session leaves new files, edits one that the task shows, and writes down what it did.
        let agent = "cat > /dev/null\ntop=$(git rev-parse --show-toplevel)\necho x > new$RALPH_ITERATION.txt\n\
            echo $RALPH_ITERATION >> $top/packages/a/notes.txt\necho \"- step $RALPH_ITERATION\" >> $top/.ralph/progress.md\n\
            [ ! -d $top/ralph ] || echo \"- step $RALPH_ITERATION\" >> $top/ralph/progress.txt";
        repo.configure(
            &[repo.agent("stub", agent)],
            "test -f never.txt",
            &json!({"stuck_detection": {"disabled": true}}),
        );
        repo.ralph(&[RUN, &["-n", "3", "--publish", "none", name]].concat()).exits(1);
        let [two, three] = [2, 3].map(|n| prompt(&repo, n));
        let same = shared(&two, &three);
        let changing = [
            "\n# Progress so far",
            "\n# Files of",
            "\n# The next story",
            "\n# Recent errors",
            "\n# Changes so far",
        ];
        let first = changing.iter().filter_map(|title| three.find(title)).min().unwrap();
        assert!(same >= first, "{name}: {same} of {first} bytes are shared\n{}", &three[..first]);
        for fixed in ["# How you work", "# Task (`", "# Guardrails"] {
            assert!(three[..same].contains(fixed), "{name}: {fixed}\n{three}");
        }
        let shown = three[..same].matches("# File `").count();
        assert_eq!(shown, usize::from(name.contains('/') || name == "ralph.json"), "{name}\n{three}");
    }
}

#[test]
fn end_of_run_shows_files_last_message_and_cached_cost() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let says = "cat > /dev/null\necho x > part.txt\ncat <<'END'\n{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\\n\\n<promise>COMPLETE</promise>\",\"total_cost_usd\":0.02,\"usage\":{\"input_tokens\":1000,\"output_tokens\":5,\"cache_read_input_tokens\":90000},\"modelUsage\":{\"claude-sonnet-4-5\":{\"inputTokens\":1000,\"outputTokens\":5,\"cacheReadInputTokens\":90000}}}\nEND";
    super::program(&env, "claude", says);
    repo.config(&json!({"verifiers": [{"name": "tests", "command_argv": ["test", "-f", "part.txt"]}]}));
    let done = super::ralph_in(&env, &repo.dir, &[RUN, &["--json"]].concat()).exits(0);
    assert_eq!(done.json()["tokens"]["cached"], 90_000);
    assert!(done.stderr.contains("files     part.txt"), "{}", done.stderr);
    assert!(done.stderr.contains("said      claude: done"), "{}", done.stderr);
    let cost = repo.ralph(&["cost"]).exits(0).stdout;
    assert!(cost.contains("90.0k of 91.0k tokens of prompts read from the providers' caches"), "{cost}");
}
