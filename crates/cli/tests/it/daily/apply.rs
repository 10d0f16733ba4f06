//! `ralph apply`: taking the result into the user's own checkout.

use super::{RALPH, calc, capable_claude, ralph_in};
use ralph_loop_testkit::{TestEnv, TestRepo};

const RUN: &[&str] = &["run", "--isolation", "none", "Make calc.x two in calc.py"];

fn ran<'a>(env: &'a TestEnv, more: &[&str]) -> (TestRepo<'a>, String) {
    let repo = calc(env);
    capable_claude(env);
    let done = ralph_in(env, &repo.dir, &[RUN, more].concat()).exits(0);
    (repo, done.stderr)
}

#[test]
fn in_place_diff_shows_new_files_and_commits_only_the_result() {
    let env = TestEnv::new(RALPH);
    let (repo, said) = ran(&env, &[]);
    assert!(said.contains("result    2 files changed in this folder, not committed"), "{said}");
    assert!(said.contains("next: `ralph diff") && !said.contains("refs/ralph"), "{said}");
    let diff = repo.ralph(&["diff"]).exits(0).stdout;
    assert!(diff.contains("+x = 2") && diff.contains("added.txt") && diff.contains("+new"), "{diff}");
    let stat = repo.ralph(&["diff", "--stat"]).exits(0).stdout;
    assert!(stat.contains("new      added.txt"), "{stat}");
    let json = repo.ralph(&["diff", "--json"]).exits(0).json();
    assert_eq!(json["files"][0]["path"], "added.txt");
    assert_eq!(json["files"][0]["status"], "new");
    assert!(json["patch"].as_str().unwrap().contains("+new"), "{json}");
    repo.write("mine.txt", "of the user\n");
    repo.git(&["add", "mine.txt"]);
    let there = repo.ralph(&["apply"]).exits(0).stderr;
    assert!(there.contains("already in your folder, not committed"), "{there}");
    let json = repo.ralph(&["apply", "--squash", "--json"]).exits(0).json();
    assert_eq!((&json["how"], &json["proven"]), (&"squash".into(), &true.into()));
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Set `calc.x` to two");
    assert!(repo.git(&["log", "-1", "--format=%b"]).contains("Ralph-Run: "));
    assert_eq!(repo.git(&["show", "--name-only", "--format="]), "added.txt\ncalc.py");
    assert_eq!(repo.git(&["status", "--porcelain"]), "A  mine.txt", "what is the user's stays as it was");
    let again = repo.ralph(&["apply", "--commit", "--json"]).exits(0).json();
    assert_eq!(again["already_there"], true);
}

#[test]
fn worktree_result_applies_in_every_mode() {
    let env = TestEnv::new(RALPH);
    let (repo, said) = ran(&env, &["--worktree"]);
    assert!(said.contains("next: `ralph apply"), "{said}");
    assert_eq!(repo.read("calc.py"), "x = 1\n");
    repo.ralph(&["apply", "--branch", "fix-calc"]).exits(0);
    assert_eq!(repo.git(&["show", "fix-calc:added.txt"]), "new");
    assert_eq!(repo.git(&["log", "-1", "--format=%s", "fix-calc"]), "Set `calc.x` to two");
    assert_eq!(repo.git(&["branch", "--show-current"]), "main");
    let refused = repo.ralph(&["apply", "--branch", "fix-calc"]).exits(3);
    assert!(refused.stderr.contains("--branch fix-calc-v2"), "{}", refused.stderr);
    repo.write("calc.py", "x = 7\n");
    let refused = repo.ralph(&["apply"]).exits(3);
    assert!(refused.stderr.contains("does not fit your files: `calc.py`"), "{}", refused.stderr);
    assert!(!repo.dir.join("added.txt").exists(), "all or nothing");
    repo.git(&["checkout", "-q", "calc.py"]);
    repo.ralph(&["apply"]).exits(0);
    assert_eq!(repo.git(&["status", "--porcelain"]), " M calc.py\n?? added.txt");
    repo.ralph(&["apply", "--commit"]).exits(0);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Set `calc.x` to two");
}

#[test]
fn clone_result_applies_to_its_source_repo() {
    let env = TestEnv::new(RALPH);
    let (repo, _) = ran(&env, &["--clone", "."]);
    assert!(repo.ralph(&["diff"]).exits(0).stdout.contains("+new"));
    let place = repo.ralph(&["open", "--print"]).exits(0).stdout;
    assert_eq!(
        std::fs::read_to_string(std::path::Path::new(place.trim()).join("calc.py")).unwrap(),
        "x = 2\n"
    );
    repo.ralph(&["apply", "--squash", "-m", "Two"]).exits(0);
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Two");
    assert_eq!(repo.read("added.txt"), "new\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn apply_needs_a_result() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    let refused = repo.ralph(&["diff"]).exits(2);
    assert!(refused.stderr.contains("no run in"), "{}", refused.stderr);
    let refused = repo.ralph(&["apply", "nothing"]).exits(2);
    assert!(refused.stderr.contains("nothing"), "{}", refused.stderr);
    repo.ralph(&["apply", "--squash", "--commit"]).exits(2);
}

#[test]
fn apply_switches_branches_only_on_request_and_with_a_clean_tree() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    repo.write(
        "ralph_task.md",
        "---\ntask_id: t-1\ntarget_branch_prefix: \"ralph/t-1/\"\ntarget_branch_slug: \"two\"\ntest_command: python3 -m unittest\nmax_iterations: 3\nmax_wall_time_minutes: 5\nmax_cost_usd_estimate: 1\n---\n# Task: Two\n\n## Success criteria\n- [ ] M1.1 it is two\n  - verify: `python3 -m unittest`\n- [ ] M1.2 there is a file\n  - verify: `test -f added.txt`\n",
    );
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "task"]);
    repo.write("calc.py", "x = 3\n");
    let run = ["run", "--isolation", "none", "--publish", "none"];
    let refused = ralph_in(&env, &repo.dir, &run).exits(2);
    assert!(refused.stderr.contains("unfinished changes: `calc.py`"), "{}", refused.stderr);
    assert_eq!(repo.git(&["branch", "--show-current"]), "main");
    repo.git(&["checkout", "-q", "calc.py"]);
    let done = ralph_in(&env, &repo.dir, &run).exits(0);
    let branch = repo.git(&["branch", "--show-current"]);
    assert!(branch.starts_with("ralph/t-1/"), "{branch}");
    assert!(done.stderr.contains(&format!("from main to the new branch {branch}")), "{}", done.stderr);
}

/// User files that a run didn't touch aren't part of its result in any apply mode.
#[test]
fn apply_ignores_the_users_unfinished_changes() {
    let env = TestEnv::new(RALPH);
    for how in [&["--squash"][..], &["--commit"], &["--branch", "topic"], &[]] {
        let name = how.first().map_or("files", |flag| flag.trim_start_matches('-'));
        let repo = TestRepo::new(
            &env,
            name,
            &[("PROMPT.md", "# Task\n"), ("calc.py", "x = 1\n"), ("README", "a\n")],
        );
        repo.write("README", "my unfinished words\n");
        repo.write("ideas.txt", "mine\n");
        repo.stub("echo 'x = 2' > calc.py; echo '<promise>COMPLETE</promise>'", "grep -q 2 calc.py");
        repo.run(&[]).exits(0);
        let diff = repo.ralph(&["diff"]).exits(0).stdout;
        assert!(diff.contains("+x = 2") && !diff.contains("unfinished") && !diff.contains("ideas"), "{diff}");
        repo.ralph(&[&["apply"], how].concat()).exits(0);
        assert_eq!(repo.read("README"), "my unfinished words\n", "{name}");
        assert_eq!(repo.read("ideas.txt"), "mine\n", "{name}");
        let status = repo.git(&["status", "--porcelain"]);
        assert!(status.contains(" M README") && status.contains("?? ideas.txt"), "{name}: {status}");
        let commit = match name {
            "branch" => "topic",
            "files" => continue,
            _ => "HEAD",
        };
        let files = repo.git(&["show", "--format=", "--name-only", commit]);
        assert_eq!(files, "calc.py", "{name}");
    }
}

#[test]
fn restore_returns_to_the_previous_branch() {
    let env = TestEnv::new(RALPH);
    let (repo, _) = ran(&env, &["--branch", "topic"]);
    assert_eq!(repo.git(&["branch", "--show-current"]), "topic");
    let done = repo.ralph(&["restore", "--yes"]).exits(0);
    assert!(done.stderr.contains("back on the branch main"), "{}", done.stderr);
    assert_eq!(repo.git(&["branch", "--show-current"]), "main");
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "no edit is left that takes the commits back");
    assert_eq!(repo.git(&["show", "topic:calc.py"]), "x = 2");
}

#[test]
fn recreated_repo_at_the_same_path_starts_its_own_run() {
    let env = TestEnv::new(RALPH);
    capable_claude(&env);
    let repo = calc(&env);
    let mut command = env.ralph_command(&repo.dir, RUN);
    TestEnv::finish(command.env("PATH", super::path(&env)).env("RALPH_FAULT", "checkpoint.committed"));
    assert_eq!(repo.ralph(&["list", "--json"]).json().as_array().unwrap().len(), 1);
    std::fs::remove_dir_all(&repo.dir).unwrap();
    let repo = calc(&env);
    ralph_in(&env, &repo.dir, RUN).exits(0);
    assert_eq!(repo.read("calc.py"), "x = 2\n");
}

#[test]
fn switched_branch_is_reported_before_any_cost() {
    let env = TestEnv::new(RALPH);
    capable_claude(&env);
    let repo = calc(&env);
    let run = [RUN, &["--branch", "topic"]].concat();
    let mut command = env.ralph_command(&repo.dir, &run);
    TestEnv::finish(command.env("PATH", super::path(&env)).env("RALPH_FAULT", "prepare.after"));
    repo.git(&["checkout", "-q", "main"]);
    let refused = ralph_in(&env, &repo.dir, &["resume"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("topic"), "{refused:?}");
    assert!(repo.events_named("iteration_started").is_empty(), "no session ran: {}", refused.stderr);
    repo.git(&["checkout", "-q", "topic"]);
    ralph_in(&env, &repo.dir, &["resume"]).exits(0);
    assert_eq!(repo.git(&["show", "topic:calc.py"]), "x = 2");
}
