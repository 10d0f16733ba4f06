//! Taking a result where the user has edited the same files, and a fork of a run that began with uncommitted changes.

use super::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

const LINES: &str = "one\ntwo\nthree\nfour\nfive\n";

/// A repo with a worktree run that changed `two` to `TWO` in its file and added another file.
fn ran<'a>(env: &'a TestEnv, name: &str, place: &[&str]) -> TestRepo<'a> {
    let repo = TestRepo::new(env, name, &[("PROMPT.md", "# Task\n"), ("list.txt", LINES)]);
    repo.stub(
        "sed -i s/^two/TWO/ list.txt; echo new > added.txt; echo 'Shouted it.'; echo '<promise>COMPLETE</promise>'",
        "grep -q TWO list.txt",
    );
    repo.run(place).exits(0);
    repo
}

/// The two edits are four lines apart: they don't overlap, but a plain patch would fail.
#[test]
fn nearby_user_edits_are_merged_in_every_apply_mode() {
    let env = TestEnv::new(RALPH);
    for (name, how) in [("files", None), ("squash", Some("--squash")), ("commit", Some("--commit"))] {
        let repo = ran(&env, name, &["--worktree"]);
        repo.write("list.txt", &LINES.replace("four", "FOUR"));
        let args: Vec<&str> = ["apply"].into_iter().chain(how).collect();
        let done = repo.ralph(&args).exits(0);
        assert_eq!(repo.read("list.txt"), "one\nTWO\nthree\nFOUR\nfive\n", "{name}");
        assert!(
            done.stderr.contains("merged with your own edits") && done.stderr.contains("`list.txt`"),
            "{}",
            done.stderr
        );
        if how.is_some() {
            assert_eq!(repo.git(&["show", "HEAD:list.txt"]), "one\nTWO\nthree\nfour\nfive", "{name}");
            assert_eq!(
                repo.git(&["status", "--porcelain"]),
                " M list.txt",
                "{name}: only the user's edit is left"
            );
        }
        // A second `apply` has nothing to do.
        let again = repo.ralph(&[args.as_slice(), &["--json"]].concat()).exits(0).json();
        assert_eq!(again["already_there"], true, "{name}: {again}");
    }
}

#[test]
fn committed_user_edits_are_merged() {
    let env = TestEnv::new(RALPH);
    let repo = ran(&env, "committed", &["--worktree"]);
    repo.write("list.txt", &LINES.replace("four", "FOUR"));
    repo.git(&["commit", "-q", "-a", "-m", "mine"]);
    let done = repo.ralph(&["apply", "--squash", "--json"]).exits(0).json();
    assert_eq!(done["files"], json!(["added.txt", "list.txt"]), "{done}");
    assert_eq!(repo.git(&["show", "HEAD:list.txt"]), "one\nTWO\nthree\nFOUR\nfive");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

/// Both sides changed the same line: `apply` changes nothing, and following the hint merges both.
#[test]
fn conflict_changes_nothing_and_its_hint_works() {
    let env = TestEnv::new(RALPH);
    let repo = ran(&env, "conflict", &["--worktree"]);
    repo.write("list.txt", &LINES.replace("two", "2"));
    for how in [&["apply"][..], &["apply", "--squash"], &["apply", "--commit"]] {
        let refused = repo.ralph(how).exits(3);
        assert!(
            refused.stderr.contains("does not fit your files: `list.txt`; nothing was changed"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains("commit your own changes first"), "{}", refused.stderr);
    }
    assert_eq!(repo.read("list.txt"), LINES.replace("two", "2"));
    assert!(!repo.dir.join("added.txt").exists(), "all or nothing");
    repo.git(&["commit", "-q", "-a", "-m", "mine"]);
    let refused = repo.ralph(&["apply", "--squash"]).exits(3).stderr;
    let hint = refused.lines().find(|line| line.contains("next:")).unwrap();
    let mut commands = hint.split('`').skip(1).step_by(2);
    let (apply, merge) = (commands.next().unwrap(), commands.next().unwrap());
    assert!(apply.starts_with("ralph apply ") && apply.ends_with("--branch from-ralph"), "{hint}");
    repo.ralph(&apply.split(' ').skip(1).collect::<Vec<_>>()).exits(0);
    assert_eq!(merge, "git merge from-ralph");
    let merged = TestEnv::finish(env.command("git", &repo.dir).args(["merge", "from-ralph"]));
    assert_eq!(merged.code, Some(1), "{merged:?}");
    let both = repo.read("list.txt");
    assert!(both.contains("\n2\n") && both.contains("\nTWO\n") && both.contains("<<<<<<<"), "{both}");
}

/// In place the files already have the result; committing it leaves later user edits uncommitted.
#[test]
fn in_place_commit_keeps_later_user_edits() {
    let env = TestEnv::new(RALPH);
    let repo = ran(&env, "place", &[]);
    let mine = "one\nTWO, and more\nthree\nfour\nfive\n";
    repo.write("list.txt", mine);
    repo.ralph(&["apply", "--squash"]).exits(0);
    assert_eq!(repo.read("list.txt"), mine);
    assert_eq!(repo.git(&["show", "HEAD:list.txt"]), "one\nTWO\nthree\nfour\nfive");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M list.txt");
}

#[test]
fn manually_committed_changes_are_not_listed_again() {
    let env = TestEnv::new(RALPH);
    let repo = ran(&env, "partly", &[]);
    repo.git(&["add", "added.txt"]);
    repo.git(&["commit", "-q", "-m", "part of it"]);
    let done = repo.ralph(&["apply", "--squash", "--json"]).exits(0).json();
    assert_eq!(done["files"], json!(["list.txt"]), "{done}");
    assert_eq!(repo.git(&["show", "--format=", "--name-only"]), "list.txt");
}

#[test]
fn skipped_commit_hooks_are_named_with_a_way_to_run_them() {
    let env = TestEnv::new(RALPH);
    let repo = ran(&env, "hooks", &["--worktree"]);
    let quiet = ran(&env, "quiet", &["--worktree"]);
    let ran_file = env.path("ran");
    let hook = repo.dir.join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, format!("#!/bin/sh\necho x >> {}\n", ran_file.display())).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let done = repo.ralph(&["apply", "--squash"]).exits(0);
    assert!(!ran_file.exists(), "an agent could have written it");
    let said = "without your hooks (pre-commit): `git commit --amend --no-edit` runs them on it";
    assert!(done.stderr.contains(said), "{}", done.stderr);
    repo.git(&["commit", "-q", "--amend", "--no-edit"]);
    assert!(ran_file.exists());
    let done = quiet.ralph(&["apply", "--squash"]).exits(0);
    assert!(!done.stderr.contains("hooks"), "{}", done.stderr);
}

#[test]
fn changed_repo_hooks_must_be_reviewed_first() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "own", &[("PROMPT.md", "# Task\n"), (".hooks/commit-msg", "#!/bin/sh\n")]);
    std::fs::set_permissions(repo.dir.join(".hooks/commit-msg"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    repo.git(&["commit", "-q", "-a", "-m", "a program"]);
    repo.stub(
        "echo 'touch /bad' >> .hooks/commit-msg; echo x > part.txt; echo '<promise>COMPLETE</promise>'",
        "test -f part.txt",
    );
    repo.run(&["--worktree"]).exits(0);
    repo.git(&["config", "core.hooksPath", ".hooks"]);
    let done = repo.ralph(&["apply", "--squash"]).exits(0);
    assert!(
        done.stderr.contains("look at `.hooks/commit-msg` first, which the result changes"),
        "{}",
        done.stderr
    );
}

/// A run that started with uncommitted user files: its fork starts with them, too, and its branch doesn't have them.
#[test]
fn fork_starts_with_the_original_uncommitted_files() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "fork", &[("PROMPT.md", "# Task\n"), ("list.txt", LINES)]);
    repo.write("mine.txt", "mine\n");
    repo.write("list.txt", &LINES.replace("five", "FIVE"));
    let works = "cat mine.txt >> seen.txt; n=$(grep -c . seen.txt); echo part $n >> part.txt; echo '<promise>COMPLETE</promise>'";
    let agents =
        [repo.agent("stub", works), repo.agent("other", &format!("sed -i s/^one/ONE/ list.txt; {works}"))];
    // The check needs the uncommitted file.
    repo.configure(
        &agents,
        "grep -q mine mine.txt && grep -q 'part 2' part.txt",
        &json!({"agent_priority": ["stub"]}),
    );
    let first = repo.run(&[]).exits(0).json();
    assert_eq!(first["iterations"], 2, "{first}");
    repo.git(&["clean", "-qf", "part.txt", "seen.txt"]);
    for (at, agent) in [("0", "stub"), ("1", "stub"), ("1", "other")] {
        let id = first["run_id"].as_str().unwrap();
        let fork = repo.ralph(&["fork", id, "--at", at, "--agent", agent]).exits(0);
        let told = "your uncommitted changes from the start of run";
        assert!(fork.stderr.contains(told) && fork.stderr.contains("`mine.txt`"), "{at}: {}", fork.stderr);
        assert!(fork.stderr.contains("Proven"), "{at}: {}", fork.stderr);
        let run = repo.ralph(&["status", "--json"]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
        let branch = format!("ralph/{run}");
        let files = repo.git(&["ls-tree", "-r", "--name-only", &branch]);
        assert!(files.contains("part.txt") && !files.contains("mine.txt"), "{at}: {files}");
        // The result is applied on top of the user's uncommitted changes.
        let diff = repo.ralph(&["diff", &run]).exits(0).stdout;
        assert!(!diff.contains("b/mine.txt") && !diff.contains("+FIVE"), "{at}: {diff}");
        repo.ralph(&["apply", &run]).exits(0);
        let list = LINES.replace("five", "FIVE");
        let list = if agent == "other" { list.replace("one", "ONE") } else { list };
        assert_eq!((repo.read("list.txt"), repo.read("mine.txt")), (list, "mine\n".to_owned()), "{at}");
        assert_eq!(repo.read("part.txt"), "part 1\npart 2\n", "{at}");
        repo.git(&["clean", "-qf", "part.txt", "seen.txt"]);
        repo.write("list.txt", &LINES.replace("five", "FIVE"));
    }
}

#[test]
fn worktree_reports_the_uncommitted_files_it_lacks() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "beside", &[("PROMPT.md", "# Task\n"), ("list.txt", LINES)]);
    repo.stub("echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    let clean = repo.run(&["--worktree"]).exits(0);
    assert!(!clean.stderr.contains("stay in your folder"), "{}", clean.stderr);
    repo.write("mine.txt", "mine\n");
    repo.write("list.txt", "other\n");
    let done = repo.run(&["--worktree"]).exits(0);
    let said =
        "your uncommitted changes stay in your folder; the agent doesn't get them: `list.txt`, `mine.txt`";
    assert!(done.stderr.contains(said), "{}", done.stderr);
}

/// A fork that has nothing to do still has a result: that of the first run.
#[test]
fn proven_fork_without_changes_says_how_to_apply_the_result() {
    let env = TestEnv::new(RALPH);
    let repo = ran(&env, "done", &["--worktree"]);
    let agents = [repo.agent("idle", "echo 'Nothing to do.'; echo '<promise>COMPLETE</promise>'")];
    repo.configure(&agents, "grep -q TWO list.txt", &json!({}));
    let fork = repo.ralph(&["fork", "--at", "1", "--agent", "idle"]).exits(0);
    assert!(fork.stderr.contains("copies the result (that of the first run"), "{}", fork.stderr);
    repo.ralph(&["apply"]).exits(0);
    assert_eq!(repo.read("added.txt"), "new\n");
}

/// A fork's price note is about the fork's agents.
#[test]
fn fork_reports_its_own_agents() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "agents", &[("PROMPT.md", "# Task\n")]);
    let works = "echo x > part.txt; echo '<promise>COMPLETE</promise>'";
    repo.configure(&[repo.agent("stub", works), repo.agent("quux", works)], "test -f part.txt", &json!({}));
    repo.run(&["--worktree", "--agents", "stub"]).exits(0);
    let fork = repo.ralph(&["fork", "--at", "0"]).exits(0);
    assert!(fork.stderr.contains("stub does not report cost"), "{}", fork.stderr);
    assert!(!fork.stderr.contains("quux"), "{}", fork.stderr);
}

#[test]
fn clone_of_another_repo_does_not_suggest_apply() {
    let env = TestEnv::new(RALPH);
    let here = TestRepo::new(&env, "here", &[("readme.txt", "other\n")]);
    let other = TestRepo::new(&env, "other", &[("PROMPT.md", "# Task\n"), ("list.txt", LINES)]);
    other.stub("echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    here.write(".ralph/config.json", &other.read(".ralph/config.json"));
    let from = other.dir.display().to_string();
    let done =
        here.ralph(&["run", "--isolation", "none", "--yes", "--clone", &from, "Make part.txt now"]).exits(0);
    assert!(done.stderr.contains("--into DIR"), "{}", done.stderr);
    assert!(!done.stderr.contains("into your own folder"), "{}", done.stderr);
}
