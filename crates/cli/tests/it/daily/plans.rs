//! Plans and working folders: what sessions see of them and may not change.

use super::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

const RUN: &[&str] = &["run", "--isolation", "none"];

const PLAN: &str = r#"{
  "project": "parts",
  "branchName": "ralph/parts",
  "description": "Two parts.",
  "verifyCommands": ["sh test.sh"],
  "userStories": [
    {"id": "US-002", "title": "b", "description": "Make b.txt.", "acceptanceCriteria": ["b.txt exists"],
     "priority": 1, "passes": false, "notes": "", "dependsOn": ["US-001"]},
    {"id": "US-001", "title": "a", "description": "Make a.txt.", "acceptanceCriteria": ["a.txt holds a letter"],
     "priority": 2, "passes": false, "notes": "ask Ana", "dependsOn": []}
  ]
}
"#;
const PROGRESS: &str =
    "# Progress\n\n## Patterns\n- tabs, never spaces\n\n---\n## Before\n- learnt: b needs a\n";

fn plan<'a>(env: &'a TestEnv, agent: &str) -> TestRepo<'a> {
    let files = [
        ("ralph/tasks.json", PLAN),
        ("ralph/prd.md", "# Parts\n"),
        ("ralph/prompt.md", "Do the next story.\n"),
        ("ralph/progress.txt", PROGRESS),
        ("test.sh", "true\n"),
    ];
    let repo = TestRepo::new(env, "repo", &files);
    let script = format!("cat > /dev/null\ni=$RALPH_ITERATION\n{agent}\necho worked");
    repo.configure(
        &[repo.agent("stub", &script)],
        "sh test.sh",
        &json!({"stuck_detection": {"disabled": true}}),
    );
    repo
}

fn prompt(repo: &TestRepo<'_>, n: u32) -> String {
    repo.run_file(&format!("iterations/{n}/prompt.md"))
}

const PASS: &str = r#"pass() { sed -i "/\"id\": \"$1\"/,/passes/ s/\"passes\": false/\"passes\": true/" ralph/tasks.json; }"#;

#[test]
fn every_prompt_has_the_next_story_and_last_learnings() {
    let env = TestEnv::new(RALPH);
    let agent = format!(
        "{PASS}\ncase $i in 1) echo a > a.txt; pass US-001; echo '- learnt: the letter is a' >> ralph/progress.txt;; *) echo b > b.txt; pass US-002;; esac"
    );
    let repo = plan(&env, &agent);
    repo.ralph(RUN).exits(0);
    let one = prompt(&repo, 1);
    for part in [
        "# The next story\n\n0 of 2 stories pass.\n\n**US-001: a**",
        "Make a.txt.",
        "- a.txt holds a letter",
        "ask Ana",
        "- tabs, never spaces",
        "- learnt: b needs a",
        "set its `passes` in `ralph/tasks.json` to true",
    ] {
        assert!(one.contains(part), "{part}: {one}");
    }
    let protected = one.lines().find(|line| line.contains("Never change")).unwrap();
    assert!(protected.contains("`ralph/prd.md`") && !protected.contains("tasks.json"), "{protected}");
    let two = prompt(&repo, 2);
    assert!(two.contains("1 of 2 stories pass.\n\n**US-002: b**"), "{two}");
    assert!(two.contains("- learnt: the letter is a"), "{two}");
}

#[test]
fn progress_entries_are_append_only_below_the_header() {
    let env = TestEnv::new(RALPH);
    let agent = format!(
        "{PASS}\npass US-001; pass US-002; echo a > a.txt\nprintf '# Progress\\n\\n## Patterns\\n- four spaces\\n\\n---\\n## Mine\\n- new\\n' > ralph/progress.txt"
    );
    let repo = plan(&env, &agent);
    repo.ralph(RUN).exits(0);
    let wanted =
        "# Progress\n\n## Patterns\n- four spaces\n\n---\n## Before\n- learnt: b needs a\n\n## Mine\n- new\n";
    assert_eq!(repo.read("ralph/progress.txt"), wanted);
    let restored = repo.events_named("restored");
    assert!(
        restored[0]["what"].as_str().unwrap().contains("entries of `ralph/progress.txt`"),
        "{restored:?}"
    );
    assert!(!repo.run_file("progress.txt.edited").contains("Before"));
}

#[test]
fn broken_plan_is_reported_with_path_field_and_reason() {
    for (change, told) in [
        (
            "sed -i 's/\"b.txt exists\"//' ralph/tasks.json",
            "`ralph/tasks.json`: `acceptanceCriteria` of `US-002`: one is gone: b.txt exists",
        ),
        ("sed -i 's/sh test.sh/true/' ralph/tasks.json", "`ralph/tasks.json`: `verifyCommands` was changed"),
        (
            "sed -i 's/\"passes\": false/\"passes\": no/' ralph/tasks.json",
            "`ralph/tasks.json`: it can no longer be read: line 8: ",
        ),
    ] {
        let env = TestEnv::new(RALPH);
        let repo = plan(&env, change);
        let done = repo.ralph(&[RUN, &["-n", "2", "-v"]].concat()).exits(1);
        assert!(done.stderr.contains(told), "{told}: {}", done.stderr);
        assert!(prompt(&repo, 2).contains(told), "{told}: {}", prompt(&repo, 2));
    }
}

#[test]
fn working_folder_memory_is_not_part_of_the_result() {
    let env = TestEnv::new(RALPH);
    let task = json!({"task": "Make c.txt", "repository": {"working_dir": "packages/a"},
        "git": {"feature_branch": "feature/c"},
        "acceptance_criteria": [{"type": "file_exists", "path": "c.txt"}]});
    let files = [
        ("ralph.json", &*task.to_string()),
        ("packages/a/keep.txt", "x\n"),
        ("packages/b/other.txt", "y\n"),
        ("top.txt", "z\n"),
    ];
    let repo = TestRepo::new(&env, "repo", &files);
    let agent = "prompt=$(cat)\n[ $RALPH_ITERATION -lt 2 ] || touch c.txt\n\
        path=$(printf '%s' \"$prompt\" | sed -n 's/.*briefly in `\\([^`]*\\)`.*/\\1/p' | head -1)\n\
        echo \"written to $path\" >> \"$path\"\nmkdir -p .ralph; echo stray > .ralph/progress.md\n\
        echo more >> ../b/other.txt\necho step >> keep.txt";
    repo.configure(&[repo.agent("stub", agent)], "true", &json!({}));
    let done = repo.ralph(&[RUN, &["--worktree", "--publish", "none", "-v"]].concat()).exits(0);
    let one = prompt(&repo, 1);
    assert!(one.contains("Note briefly in `../../.ralph/progress.md`"), "{one}");
    assert!(one.contains("# Files in `packages/a/` (first 200)\n\nkeep.txt"), "{one}");
    assert!(!one.contains("other.txt"), "the tree is that folder's: {one}");
    assert!(prompt(&repo, 2).contains("written to ../../.ralph/progress.md"), "{}", prompt(&repo, 2));
    assert!(done.stderr.contains("edits outside `packages/a`: `packages/b/other.txt`"), "{}", done.stderr);
    let names = repo.git(&["ls-tree", "-r", "--name-only", "feature/c"]);
    assert!(names.contains("packages/a/c.txt") && !names.contains(".ralph"), "{names}");
}

/// Thousands of stories: the engine's own time counts against the run's time limit.
#[test]
fn plan_with_thousands_of_stories_stays_fast() {
    let env = TestEnv::new(RALPH);
    let story = |n: u32| {
        let needs: Vec<String> = (n > 0).then(|| format!("US-{}", n - 1)).into_iter().collect();
        json!({"id": format!("US-{n}"), "title": format!("part {n}"), "description": "Make it.", "passes": false,
            "acceptanceCriteria": [format!("part {n} is there")], "priority": n, "notes": "", "dependsOn": needs})
    };
    let stories: Vec<_> = (0..4000).map(story).collect();
    // On one line, as a program writes it.
    let plan = json!({"project": "parts", "branchName": "ralph/parts", "description": "Many parts.",
        "verifyCommands": ["sh test.sh"], "userStories": stories})
    .to_string();
    let files = [
        ("ralph/tasks.json", plan.as_str()),
        ("ralph/prd.md", "# Parts\n"),
        ("ralph/prompt.md", "Do the next story.\n"),
        ("test.sh", "true\n"),
    ];
    let repo = TestRepo::new(&env, "repo", &files);
    let all = "echo all > all.txt; sed -i 's/\"passes\":false/\"passes\":true/g' ralph/tasks.json";
    let one = "sed -i '0,/\"passes\":false/ s//\"passes\":true/' ralph/tasks.json";
    let configure = |work: &str| {
        let agent = repo.agent("stub", &format!("cat > /dev/null\n{work}\necho worked"));
        repo.configure(&[agent], "sh test.sh", &json!({"stuck_detection": {"disabled": true}}));
    };
    // One story per session, and sessions that take no time.
    configure(one);
    let run = repo.ralph(&[RUN, &["--json", "-n", "4000", "--max-seconds", "6"]].concat()).exits(1).json();
    assert_eq!(run["reason"], "timeout", "{run}");
    let done = run["iterations"].as_u64().unwrap();
    assert!((1..4000).contains(&done), "{run}");
    let left = repo.read("ralph/tasks.json").matches("\"passes\":false").count();
    assert_eq!(left as u64, 4000 - done, "what passes is marked, one a session");
    // All at once: the honest twin.
    configure(all);
    let run = repo.ralph(&[RUN, &["--new", "--json", "-n", "3"]].concat()).exits(0).json();
    assert_eq!(run["iterations"], 1, "{run}");
}
