//! Plans and working folders: what sessions are told of them, and what they may not change.

use super::RALPH;
use ralph_testkit::{TestEnv, TestRepo};
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
fn the_next_story_and_the_last_learnings_stand_in_every_prompt() {
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
    let protected = one.lines().find(|line| line.contains("protected paths")).unwrap();
    assert!(protected.contains("`ralph/prd.md`") && !protected.contains("tasks.json"), "{protected}");
    let two = prompt(&repo, 2);
    assert!(two.contains("1 of 2 stories pass.\n\n**US-002: b**"), "{two}");
    assert!(two.contains("- learnt: the letter is a"), "{two}");
}

#[test]
fn entries_of_the_progress_only_grow_and_its_top_may_change() {
    let env = TestEnv::new(RALPH);
    let agent = format!(
        "{PASS}\npass US-001; pass US-002\nprintf '# Progress\\n\\n## Patterns\\n- four spaces\\n\\n---\\n## Mine\\n- new\\n' > ralph/progress.txt"
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
fn a_broken_or_changed_plan_is_told_with_its_path_its_field_and_the_reason() {
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
fn with_a_working_folder_memory_is_where_the_prompt_says_and_never_part_of_the_work() {
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
        path=$(printf '%s' \"$prompt\" | sed -n 's/.*learnt into `\\([^`]*\\)`.*/\\1/p' | head -1)\n\
        echo \"written to $path\" >> \"$path\"\nmkdir -p .ralph; echo stray > .ralph/progress.md\n\
        echo more >> ../b/other.txt\necho step >> keep.txt";
    repo.configure(&[repo.agent("stub", agent)], "true", &json!({}));
    let done = repo.ralph(&[RUN, &["--worktree", "--publish", "none", "-v"]].concat()).exits(0);
    let one = prompt(&repo, 1);
    assert!(one.contains("into `../../.ralph/progress.md`"), "{one}");
    assert!(one.contains("# Files of `packages/a/` (the first 200)\n\nkeep.txt"), "{one}");
    assert!(!one.contains("other.txt"), "the tree is that folder's: {one}");
    assert!(prompt(&repo, 2).contains("written to ../../.ralph/progress.md"), "{}", prompt(&repo, 2));
    assert!(done.stderr.contains("edits outside `packages/a`: `packages/b/other.txt`"), "{}", done.stderr);
    let names = repo.git(&["ls-tree", "-r", "--name-only", "feature/c"]);
    assert!(names.contains("packages/a/c.txt") && !names.contains(".ralph"), "{names}");
}
