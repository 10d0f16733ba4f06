//! `ralph archive` in a real repo: what it moves, what it resets, and what it leaves alone.

use crate::RALPH;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;

const TASKS: &str = r#"{
  "project": "Sign in",
  "branchName": "ralph/sign-in",
  "verifyCommands": ["sh test.sh"],
  "userStories": [
    {"id": "US-001", "title": "a form", "acceptanceCriteria": ["x"], "passes": true, "notes": "done"},
    {"id": "US-002", "title": "a session", "acceptanceCriteria": ["y"], "passes": false}
  ]
}
"#;

fn with_plan(env: &TestEnv) -> TestRepo<'_> {
    TestRepo::new(
        env,
        "repo",
        &[
            ("readme.txt", "hello\n"),
            ("test.sh", "true\n"),
            ("ralph/tasks.json", TASKS),
            ("ralph/prd.md", "# Sign in\n"),
            ("ralph/progress.txt", "# Progress\nStarted: 2026-11-01\n---\nUS-001 done\n"),
            ("ralph/prompt.md", "Work.\n"),
        ],
    )
}

#[test]
fn archive_moves_resets_and_commits_only_the_plan() {
    let env = TestEnv::new(RALPH);
    let repo = with_plan(&env);
    repo.write("readme.txt", "hello\nmine\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("untracked.txt", "mine\n");
    let before = repo.git(&["rev-parse", "HEAD"]);

    let told = repo.ralph(&["archive", "--json"]).exits(0).json();

    let archive = told["archived"].as_str().unwrap();
    assert!(archive.starts_with("ralph-archive/20") && archive.ends_with("-ralph-sign-in"), "{archive}");
    assert_eq!((&told["done"], &told["total"]), (&json!(1), &json!(2)));
    assert_eq!(repo.read(format!("{archive}/tasks.json")), TASKS);
    assert_eq!(repo.read(format!("{archive}/prd.md")), "# Sign in\n");
    assert_eq!(repo.read(format!("{archive}/prompt.md")), "Work.\n");
    assert!(repo.read(format!("{archive}/progress.txt")).contains("US-001 done"));
    let summary = repo.read(format!("{archive}/summary.md"));
    for line in
        ["- stories: 1 of 2 done", "- started: 2026-11-01", "- [x] US-001 a form", "- [ ] US-002 a session"]
    {
        assert!(summary.contains(line), "{line}\n{summary}");
    }
    assert_eq!(repo.read("ralph/prompt.md"), "Work.\n");
    assert!(repo.read("ralph/prd.md").contains("## 1. Summary"));
    assert!(!repo.read("ralph/progress.txt").contains("US-001"));
    let fresh: serde_json::Value = serde_json::from_str(&repo.read("ralph/tasks.json")).unwrap();
    assert_eq!(fresh["verifyCommands"], json!(["sh test.sh"]), "the project's checks stay");
    let lint = repo.ralph(&["lint", "ralph/tasks.json"]).exits(2);
    assert!(lint.stderr.contains("it is still the template"), "{}", lint.stderr);

    assert_eq!(told["commit"], repo.git(&["rev-parse", "HEAD"]));
    assert_eq!(repo.git(&["rev-parse", "HEAD^"]), before);
    let mut want: Vec<String> = ["summary.md", "prd.md", "tasks.json", "progress.txt", "prompt.md"]
        .iter()
        .map(|name| format!("{archive}/{name}"))
        .chain(["ralph/prd.md", "ralph/progress.txt", "ralph/tasks.json"].map(str::to_owned))
        .collect();
    want.sort();
    let committed = repo.git(&["diff", "--no-renames", "--name-only", "HEAD^", "HEAD"]);
    assert_eq!(committed.lines().collect::<Vec<_>>(), want);
    let status = repo.git(&["status", "--porcelain"]);
    assert_eq!(
        status.lines().map(str::trim).collect::<Vec<_>>(),
        ["M readme.txt", "A  staged.txt", "?? untracked.txt"]
    );

    let again = repo.ralph(&["archive"]).exits(2);
    assert!(again.stderr.contains("nothing to archive"), "{}", again.stderr);
}

#[test]
fn second_archive_of_the_same_name_gets_a_number() {
    let env = TestEnv::new(RALPH);
    let repo = with_plan(&env);
    let first = repo.ralph(&["archive", "--label", "One thing", "--json"]).exits(0).json();
    repo.write("ralph/tasks.json", TASKS);
    let second = repo.ralph(&["archive", "--label", "One thing", "--json"]).exits(0).json();
    assert!(first["archived"].as_str().unwrap().ends_with("-one-thing"));
    assert_eq!(second["archived"], format!("{}-2", first["archived"].as_str().unwrap()));
}

#[test]
fn ignored_plan_is_archived_without_a_commit() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[(".gitignore", "ralph/\nralph-archive/\n")]);
    repo.write("ralph/tasks.json", TASKS);
    let before = repo.git(&["rev-parse", "HEAD"]);
    let told = repo.ralph(&["archive", "--json"]).exits(0).json();
    assert_eq!(told["commit"], json!(null));
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn archive_refuses_during_a_run_or_a_merge() {
    let env = TestEnv::new(RALPH);
    let repo = with_plan(&env);
    repo.write("PROMPT.md", "# Wait\n");
    repo.stub(
        "touch started; while [ ! -e go ]; do sleep 0.02; done; echo '<promise>COMPLETE</promise>'",
        "true",
    );
    let run = env.spawn(&repo.dir, &["run", "PROMPT.md", "--isolation", "none", "--json"]);
    until("the session", || repo.dir.join("started").exists().then_some(()));
    let refused = repo.ralph(&["archive"]).exits(2);
    assert!(refused.stderr.contains("is running now"), "{}", refused.stderr);
    repo.write("go", "");
    TestEnv::wait(run).exits(0);
    repo.write(".git/MERGE_HEAD", "");
    assert!(repo.ralph(&["archive"]).exits(2).stderr.contains("a merge is in progress"));
    std::fs::remove_file(repo.dir.join(".git/MERGE_HEAD")).unwrap();
    assert_eq!(repo.read("ralph/tasks.json"), TASKS);
    repo.write("ralph/tasks.json", "{");
    assert!(repo.ralph(&["archive"]).exits(2).stderr.contains("cannot be read"));
}

#[test]
fn archive_counts_the_runs_of_the_plan() {
    let env = TestEnv::new(RALPH);
    let repo = with_plan(&env);
    let work = "sed -i 's/\"passes\": false/\"passes\": true, \"notes\": \"done\"/' ralph/tasks.json\necho x > part.txt\necho '<promise>COMPLETE</promise>'";
    repo.stub(work, "true");
    repo.ralph(&["run", "ralph/tasks.json", "--isolation", "none", "--json"]).exits(0);
    let told = repo.ralph(&["archive", "--json"]).exits(0).json();
    assert_eq!((&told["runs"], &told["iterations"], &told["done"]), (&json!(1), &json!(1), &json!(2)));
}
