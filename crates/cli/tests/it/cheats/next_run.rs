//! What one run leaves for the next: changed tests that nobody approved do not become the user's own by lying there.

use super::after::{HONEST, NEXT, is_asked_about};
use super::scene::{PART, UNIT};
use super::{PROMISE, RALPH};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;

/// Rewrites the test to what the module says.
const CHEAT: &str = "sed -i \"s/'right'/'wrong'/\" test_part.py; echo more >> notes.txt";

const TICKED: &str = r#"---
max_iterations: 1
max_wall_time_minutes: 10
max_cost_usd_estimate: 1
test_command: "python3 -m unittest -q"
---

# Do the work

## Success criteria
- [ ] M1.1 a.txt is there
  - verify: `test -f a.txt`
- [ ] M1.2 the part is right
  - verify: `grep -q right part.py`
"#;

fn scene(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::new(env, "left", &[UNIT, PART]);
    repo.write("PROMPT.md", "# Do the work\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "scene"]);
    repo
}

/// A repo in which a first run has left changed tests, which a person was asked about.
fn left<'a>(env: &'a TestEnv, args: &[&str]) -> TestRepo<'a> {
    let repo = scene(env);
    agent(&repo, CHEAT);
    let first = repo.ralph(&[&["run", "--json"], args].concat());
    assert_eq!(first.code, Some(3), "{}", first.stderr);
    repo
}

const CHECK: &str = "python3 -m unittest -q";

fn agent(repo: &TestRepo<'_>, work: &str) {
    super::after::configure(repo, CHECK, work);
}

fn next(repo: &TestRepo<'_>, work: &str) -> Finished {
    super::after::next(repo, CHECK, work)
}

#[test]
fn the_next_run_in_the_folder_asks_about_tests_that_the_first_one_changed() {
    let env = TestEnv::new(RALPH);
    let repo = left(&env, &[]);
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    // And the one after that.
    is_asked_about(&next(&repo, NEXT), "test_part.py");
}

#[test]
fn attributes_that_record_other_bytes_do_not_make_a_test_the_users() {
    for attributes in ["test_part.py ident", "test_part.py text eol=lf"] {
        let env = TestEnv::new(RALPH);
        let repo = scene(&env);
        agent(
            &repo,
            &format!(
                "{CHEAT}; printf '# $Id: 1 $\\r\\n' >> test_part.py; echo '{attributes}' > .gitattributes"
            ),
        );
        let first = repo.ralph(&["run", "--json"]);
        assert_eq!(first.code, Some(3), "{attributes}: {}", first.stderr);
        is_asked_about(&next(&repo, NEXT), "test_part.py");
    }
    // Attributes and half of the work of an honest run.
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    agent(&repo, "echo '*.py text eol=lf' > .gitattributes; printf 'HALF = 1\\r\\n' >> part.py");
    repo.ralph(&["run", "--json"]).exits(1);
    let run = next(&repo, HONEST);
    assert_eq!((run.code, &run.json()["level"]), (Some(0), &json!("independent")), "{}", run.stderr);
}

#[test]
fn the_next_run_on_the_branch_asks_about_tests_that_the_first_one_changed() {
    let env = TestEnv::new(RALPH);
    let repo = left(&env, &["--branch", "fix"]);
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    // Also beside it, from what is checked out here.
    agent(&repo, NEXT);
    is_asked_about(&repo.ralph(&["run", "--new", "--worktree", "--json"]), "test_part.py");
}

#[test]
fn what_the_user_commits_or_writes_is_the_users() {
    let env = TestEnv::new(RALPH);
    let repo = left(&env, &[]);
    repo.git(&["add", "test_part.py"]);
    repo.git(&["commit", "-q", "-m", "wrong is right"]);
    let run = next(&repo, NEXT);
    assert_eq!(run.code, Some(0), "{}", run.stderr);

    let env = TestEnv::new(RALPH);
    let repo = left(&env, &[]);
    repo.write("test_part.py", &UNIT.1.replace("'right'", "'fine'"));
    let run = next(&repo, "echo \"VALUE = 'fine'\" > part.py");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

#[test]
fn honest_work_goes_on_from_what_an_unfinished_run_left() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "left", &[UNIT, PART]);
    repo.write("PROMPT.md", "# Do the work\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "scene"]);
    agent(&repo, "echo 'HALF = 1' >> part.py");
    let first = repo.ralph(&["run", "--json"]);
    assert_eq!(first.code, Some(1), "{}", first.stderr);
    let run = next(&repo, HONEST);
    let json = run.json();
    assert_eq!((run.code, &json["level"]), (Some(0), &json!("independent")), "{}\n{json}", run.stderr);
}

#[test]
fn a_script_of_the_check_that_a_run_left_changed_is_asked_about() {
    for args in [&[][..], &["--branch", "fix"]] {
        let env = TestEnv::new(RALPH);
        let check = ("check.sh", "python3 -m unittest -q\n");
        let repo = TestRepo::new(&env, "left", &[UNIT, PART, check]);
        repo.write("PROMPT.md", "# Do the work\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "-m", "scene"]);
        let play = |work: &str, args: &[&str]| {
            repo.config(&json!({
                "agents": [{"name": "stub", "command_argv": ["sh", "-c", format!("{work}\n{PROMISE}")]}],
                "verifiers": [{"name": "unit", "command_argv": ["sh", "check.sh"]}],
                "max_iterations": 1,
            }));
            repo.ralph(&[&["run", "--json"], args].concat())
        };
        let first = play("echo true > check.sh", args);
        assert_eq!(first.code, Some(1), "{}", first.stderr);
        let second = play(NEXT, &["--new"]);
        assert_eq!(second.code, Some(3), "{}", second.stderr);
        assert!(second.stderr.contains("check.sh"), "{}", second.stderr);
        // Taken back, the work goes on.
        repo.git(&["checkout", "-q", "main", "--", "check.sh"]);
        let third = play(HONEST, &["--new"]);
        assert_eq!(third.code, Some(0), "{}", third.stderr);
    }
}

#[test]
fn a_task_that_a_run_left_changed_is_asked_about_and_its_ticks_are_not() {
    let env = TestEnv::new(RALPH);
    let repo = left_task(&env, "sed -i 's/the work/nothing/' PROMPT.md");
    agent(&repo, NEXT);
    let second = repo.ralph(&["run", "--new", "--json"]);
    assert_eq!(second.code, Some(3), "{}", second.stderr);
    assert!(second.stderr.contains("PROMPT.md"), "{}", second.stderr);

    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "ticks", &[UNIT, PART]);
    repo.write("ralph_task.md", TICKED);
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "scene"]);
    agent(&repo, "sed -i 's/\\[ \\] M1.1/[x] M1.1/' ralph_task.md; echo a > a.txt");
    let first = repo.ralph(&["run", "ralph_task.md", "--json"]);
    assert_eq!(first.code, Some(1), "{}", first.stderr);
    agent(&repo, &format!("sed -i 's/\\[ \\] M1.2/[x] M1.2/' ralph_task.md; {HONEST}"));
    let second = repo.ralph(&["run", "ralph_task.md", "--new", "--json"]);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
}

/// A repo in which a first run has changed its task, and ended without success.
fn left_task<'a>(env: &'a TestEnv, work: &str) -> TestRepo<'a> {
    let repo = TestRepo::new(env, "left", &[UNIT, PART]);
    repo.write("PROMPT.md", "# Do the work\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "scene"]);
    agent(&repo, work);
    let first = repo.ralph(&["run", "--json"]);
    assert_eq!(first.code, Some(1), "{}", first.stderr);
    repo
}

#[test]
fn neither_a_proof_of_something_else_nor_a_commit_of_something_else_makes_it_the_users() {
    let env = TestEnv::new(RALPH);
    let repo = left(&env, &[]);
    repo.config(&json!({
        "agents": [{"name": "stub", "command_argv": ["sh", "-c", format!("{NEXT}\n{PROMISE}")]}],
        "verifiers": [{"name": "other", "command_argv": ["grep", "-q", "more", "notes.txt"]}],
        "max_iterations": 1,
    }));
    let between = repo.ralph(&["run", "--new", "--json"]);
    assert_eq!(between.code, Some(0), "{}", between.stderr);
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    repo.git(&["update-index", "--chmod=+x", "part.py"]);
    TestEnv::finish(env.command("chmod", &repo.dir).args(["+x", "test_part.py"])).exits(0);
    is_asked_about(&next(&repo, NEXT), "test_part.py");

    let env = TestEnv::new(RALPH);
    let repo = left(&env, &["--branch", "fix"]);
    repo.write("README", "mine\n");
    repo.git(&["add", "README"]);
    repo.git(&["commit", "-q", "-m", "mine"]);
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    repo.git(&["worktree", "add", "-q", "../beside", "HEAD", "--detach"]);
    let beside = repo.dir.parent().unwrap().join("beside");
    std::fs::create_dir_all(beside.join(".ralph")).unwrap();
    std::fs::copy(repo.dir.join(".ralph/config.json"), beside.join(".ralph/config.json")).unwrap();
    let run = env.ralph(&beside, &["run", "--new", "--json", "--yes"]);
    is_asked_about(&run, "test_part.py");
}

#[test]
fn what_was_applied_from_an_unproven_run_is_not_the_users_yet() {
    let env = TestEnv::new(RALPH);
    let repo = left(&env, &["--worktree"]);
    repo.ralph(&["apply"]).exits(0);
    is_asked_about(&next(&repo, NEXT), "test_part.py");
}

#[test]
fn a_failing_test_that_the_user_has_not_committed_is_worked_for() {
    for (name, args) in [("appended", &[][..]), ("new", &[]), ("branch", &["--branch", "fix"])] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::new(&env, "tdd", &[UNIT, PART]);
        repo.write("PROMPT.md", "# Make the tests pass\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "-m", "scene"]);
        let more = "    def test_more(self):\n        self.assertEqual(part.MORE, 1)\n";
        match name {
            "appended" => repo.write("test_part.py", &format!("{}\n{more}", UNIT.1)),
            _ => repo.write(
                "test_more.py",
                &format!("import unittest\nimport part\n\n\nclass More(unittest.TestCase):\n{more}"),
            ),
        }
        agent(&repo, &format!("{HONEST}; echo 'MORE = 1' >> part.py"));
        let run = repo.ralph(&[&["run", "--json"], args].concat());
        assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
    }
}

/// A first run that is killed at `fault`, while it hands over what its agent did.
fn killed<'a>(env: &'a TestEnv, work: &str, fault: &str) -> TestRepo<'a> {
    let repo = scene(env);
    agent(&repo, work);
    let mut command = env.ralph_command(&repo.dir, &["run", "--json"]);
    let run = TestEnv::finish(command.env("RALPH_FAULT", fault));
    assert_eq!(run.code, None, "{fault}: {}", run.stderr);
    repo
}

#[test]
fn what_a_killed_run_was_handing_over_is_not_the_users() {
    for fault in ["handback.file#2", "handback.written", "handback.after", "checkpoint.kept"] {
        let env = TestEnv::new(RALPH);
        let repo = killed(&env, CHEAT, fault);
        assert!(repo.read("test_part.py").contains("'wrong'"), "{fault}");
        is_asked_about(&next(&repo, NEXT), "test_part.py");
        is_asked_about(&next(&repo, NEXT), "test_part.py");
    }
}

#[test]
fn what_is_handed_over_is_recorded_before_the_first_file_is_written() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    // What the user has not committed is not in the commits of the run.
    repo.write("mine.txt", "mine\n");
    agent(&repo, CHEAT);
    let mut command = env.ralph_command(&repo.dir, &["run", "--json"]);
    let run = TestEnv::finish(command.env("RALPH_FAULT", "handback.recorded"));
    assert_eq!(run.code, None, "{}", run.stderr);
    assert!(repo.read("test_part.py").contains("'right'"), "nothing is written yet");
    for name in ["work", "handed"] {
        let known = repo.git(&["show", &format!("refs/ralph/{}/{name}:test_part.py", repo.latest())]);
        assert!(known.contains("'wrong'"), "{name}: {known}");
    }
}

#[test]
fn honest_work_goes_on_from_what_a_killed_run_handed_over() {
    for fault in ["handback.recorded", "handback.file", "handback.written"] {
        let env = TestEnv::new(RALPH);
        let repo = killed(&env, HONEST, fault);
        let run = next(&repo, HONEST);
        let json = run.json();
        assert_eq!(
            (run.code, &json["level"]),
            (Some(0), &json!("independent")),
            "{fault}: {}\n{json}",
            run.stderr
        );
    }
}

/// Git at another time than now: nothing is taken for the same by the second it was made in.
fn git_later(env: &TestEnv, repo: &TestRepo<'_>, args: &[&str]) {
    let mut command = env.command("git", &repo.dir);
    let date = "2040-01-01T00:00:00Z";
    TestEnv::finish(command.args(args).env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date)).exits(0);
}

#[test]
fn a_commit_of_a_run_that_is_written_again_is_still_the_runs() {
    for again in ["amended", "renamed", "rebased", "picked"] {
        let env = TestEnv::new(RALPH);
        let repo = left(&env, &["--branch", "fix"]);
        match again {
            "amended" => git_later(&env, &repo, &["commit", "-q", "--amend", "--no-edit"]),
            "renamed" => git_later(&env, &repo, &["commit", "-q", "--amend", "-m", "words of mine"]),
            "rebased" => {
                repo.git(&["checkout", "-q", "main"]);
                repo.write("README", "mine\n");
                repo.git(&["add", "README"]);
                repo.git(&["commit", "-q", "-m", "mine"]);
                repo.git(&["checkout", "-q", "fix"]);
                git_later(&env, &repo, &["rebase", "-q", "main"]);
            }
            _ => {
                repo.git(&["checkout", "-q", "main"]);
                repo.git(&["checkout", "-q", "-b", "other"]);
                repo.write("README", "mine\n");
                repo.git(&["add", "README"]);
                repo.git(&["commit", "-q", "-m", "mine"]);
                git_later(&env, &repo, &["cherry-pick", "fix"]);
            }
        }
        let run = next(&repo, NEXT);
        assert_eq!(run.code, Some(3), "{again}: {}", run.stderr);
        is_asked_about(&run, "test_part.py");
    }
}

#[test]
fn a_commit_of_a_run_that_somebody_takes_over_is_theirs() {
    for own in ["author", "commit"] {
        let env = TestEnv::new(RALPH);
        let repo = left(&env, &["--branch", "fix"]);
        match own {
            "author" => git_later(&env, &repo, &["commit", "-q", "--amend", "--no-edit", "--reset-author"]),
            _ => {
                repo.git(&["reset", "-q", "--soft", "main"]);
                git_later(&env, &repo, &["commit", "-q", "-m", "wrong is right"]);
            }
        }
        let run = next(&repo, NEXT);
        assert_eq!(run.code, Some(0), "{own}: {}", run.stderr);
    }
}

/// A repo on `main`, with a branch `fix` on which a run has left changed tests.
fn on_a_branch(env: &TestEnv) -> TestRepo<'_> {
    let repo = left(env, &["--branch", "fix"]);
    repo.git(&["checkout", "-q", "main"]);
    repo
}

#[test]
fn what_somebody_merges_is_theirs() {
    for how in ["merge", "fast-forward", "squash"] {
        let env = TestEnv::new(RALPH);
        let repo = on_a_branch(&env);
        match how {
            "merge" => git_later(&env, &repo, &["merge", "-q", "--no-ff", "--no-edit", "fix"]),
            "fast-forward" => drop(repo.git(&["merge", "-q", "--ff-only", "fix"])),
            _ => {
                repo.git(&["merge", "-q", "--squash", "fix"]);
                git_later(&env, &repo, &["commit", "-q", "-m", "the work"]);
            }
        }
        let run = next(&repo, NEXT);
        assert_eq!(run.code, Some(0), "{how}: {}", run.stderr);
    }
}

#[test]
fn merging_something_else_into_the_branch_of_a_run_takes_nothing_over() {
    let env = TestEnv::new(RALPH);
    let repo = on_a_branch(&env);
    repo.write("README", "mine\n");
    repo.git(&["add", "README"]);
    repo.git(&["commit", "-q", "-m", "mine"]);
    repo.git(&["checkout", "-q", "fix"]);
    git_later(&env, &repo, &["merge", "-q", "--no-edit", "main"]);
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    // Nor does a branch that only goes on from there.
    repo.git(&["checkout", "-q", "-b", "more", "fix"]);
    is_asked_about(&next(&repo, NEXT), "test_part.py");
}
