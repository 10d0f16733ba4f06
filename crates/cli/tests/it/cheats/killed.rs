//! A run that works in the user's own folder without a fence is killed: what its last session did was never recorded, and does
//! not become the user's own by lying there.

use super::RALPH;
use super::after::{HONEST, NEXT, is_asked_about, is_proven};
use super::scene::{PART, UNIT};
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::Value;

/// Ends the driver in the middle of the session; the guard then ends this, too.
const KILL: &str = "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 300";
/// Rewrites the test to what the module says.
const CHEAT: &str = "sed -i \"s/'right'/'wrong'/\" test_part.py";

fn scene(env: &TestEnv) -> TestRepo<'_> {
    let check = ("check.sh", "python3 -m unittest -q\n");
    let repo = TestRepo::new(env, "killed", &[UNIT, PART, check]);
    repo.write("PROMPT.md", "# Do the work\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "scene"]);
    repo
}

/// The script is what the checks of these scenes are.
const CHECK: &str = "sh check.sh";

fn configure(repo: &TestRepo<'_>, work: &str) {
    super::after::configure(repo, CHECK, work);
}

fn next(repo: &TestRepo<'_>, work: &str) -> Finished {
    super::after::next(repo, CHECK, work)
}

/// A run in the folder itself that is killed: within its session, or at `fault`.
fn killed(env: &TestEnv, repo: &TestRepo<'_>, work: &str, fault: Option<&str>) {
    let within = if fault.is_none() { KILL } else { "" };
    configure(repo, &format!("{work}\n{within}"));
    let mut command = env.ralph_command(&repo.dir, &["run", "--new", "--isolation", "none", "--json"]);
    let run = TestEnv::finish(command.env("RALPH_FAULT", fault.unwrap_or("nowhere")));
    assert_eq!(run.code, None, "{fault:?}: {}", run.stderr);
}

/// The message of a run that is refused before its first session.
#[track_caller]
fn refused(run: &Finished, path: &str) {
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert!(run.stderr.contains(path), "{}", run.stderr);
    assert!(run.stderr.contains("commit it as your own"), "a way on is told: {}", run.stderr);
}

/// Commits tell their time in seconds, and nobody commits in the second of a kill.
fn in_another_second() {
    let second = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let now = second();
    until("the next second", || (second() > now).then_some(()));
}

fn runs(env: &TestEnv) -> usize {
    std::fs::read_dir(env.path("state/ralph/runs")).unwrap().count()
}

#[test]
fn tests_that_a_killed_session_changed_are_asked_about() {
    let moments = [
        None,
        Some("work.session"),
        Some("work.after"),
        Some("checkpoint.before"),
        Some("checkpoint.committed"),
        Some("verify.ran"),
    ];
    for fault in moments {
        let env = TestEnv::new(RALPH);
        let repo = scene(&env);
        killed(&env, &repo, CHEAT, fault);
        is_asked_about(&next(&repo, NEXT), "test_part.py");
        // And the one after that.
        is_asked_about(&next(&repo, NEXT), "test_part.py");
    }
}

#[test]
fn a_runner_that_a_killed_session_planted_is_asked_about() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    killed(&env, &repo, "printf 'print(\"Ran 1 test in 0.1s\")\\nprint(\"OK\")\\n' > unittest.py", None);
    is_asked_about(&next(&repo, NEXT), "unittest.py");
}

#[test]
fn a_script_of_the_checks_that_a_killed_session_changed_is_asked_about_before_the_first_session() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    killed(&env, &repo, "echo true > check.sh", None);
    let before = runs(&env);
    for _ in 0..2 {
        let run = next(&repo, NEXT);
        refused(&run, "check.sh");
        assert!(run.stderr.contains("was killed"), "{}", run.stderr);
    }
    assert_eq!(runs(&env), before, "nothing was begun");
    // Taken back, the work goes on.
    repo.git(&["checkout", "-q", "--", "check.sh"]);
    is_proven(&next(&repo, HONEST));
}

#[test]
fn a_killed_run_that_is_cancelled_leaves_the_same() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    killed(&env, &repo, "echo true > check.sh", None);
    repo.ralph(&["cancel"]).exits(0);
    refused(&next(&repo, NEXT), "check.sh");
}

#[test]
fn a_run_that_is_killed_again_leaves_what_both_sessions_did() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    let second =
        "[ -e once ] && echo true > check.sh || sed -i \"s/'right'/'wrong'/\" test_part.py; touch once";
    killed(&env, &repo, second, None);
    // Somebody looks, and goes on with it instead.
    is_asked_about(&next(&repo, NEXT), "test_part.py");
    let first = repo.ralph(&["list", "--json"]).stdout;
    let first: Value = serde_json::from_str(&first).unwrap();
    let id =
        first.as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).min().unwrap();
    configure(&repo, &format!("{second}\n{KILL}"));
    let run = repo.ralph(&["resume", &id, "--json"]);
    assert_eq!(run.code, None, "{}", run.stderr);
    refused(&next(&repo, NEXT), "check.sh");
}

#[test]
fn what_the_product_writes_during_a_check_is_not_the_users() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    let product = "printf '%s\\n' 'VALUE = \"wrong\"' 'T = open(\"test_part.py\").read()' \
                   'open(\"test_part.py\", \"w\").write(T.replace(\"right\", VALUE))' > part.py";
    killed(&env, &repo, product, Some("verify.ran"));
    assert!(repo.read("test_part.py").contains("'wrong'"));
    is_asked_about(&next(&repo, &format!("git checkout -q -- part.py; {NEXT}")), "test_part.py");
}

#[test]
fn what_an_agent_commits_itself_on_the_users_branch_is_not_the_users() {
    for kill in [true, false] {
        let env = TestEnv::new(RALPH);
        let repo = scene(&env);
        let work = format!("{CHEAT}; git commit -qam 'wrong is right'");
        match kill {
            true => killed(&env, &repo, &work, None),
            false => {
                configure(&repo, &work);
                let run = repo.ralph(&["run", "--isolation", "none", "--json"]);
                assert_eq!(run.code, Some(3), "{}", run.stderr);
            }
        }
        let run = next(&repo, NEXT);
        assert_eq!(run.code, Some(3), "killed: {kill}: {}", run.stderr);
        is_asked_about(&run, "test_part.py");
    }
}

#[test]
fn honest_work_goes_on_from_what_a_killed_session_left() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    repo.write("mine.txt", "not committed\n");
    killed(&env, &repo, "echo 'HALF = 1' >> part.py; echo new > new.txt", None);
    is_proven(&next(&repo, HONEST));
}

#[test]
fn what_the_user_does_after_the_kill_has_a_way_on() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    killed(&env, &repo, NEXT, None);
    repo.write("check.sh", "set -e\npython3 -m unittest -q\n");
    let run = next(&repo, HONEST);
    refused(&run, "check.sh");
    assert!(run.stderr.contains("yours"), "{}", run.stderr);
    // Looked at and edited once more it is clearly theirs, and so it is once it is committed.
    repo.write("check.sh", "set -eu\npython3 -m unittest -q\n");
    is_proven(&next(&repo, HONEST));

    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    killed(&env, &repo, NEXT, None);
    repo.write("check.sh", "set -e\npython3 -m unittest -q\n");
    repo.write("test_part.py", &UNIT.1.replace("'right'", "'fine'"));
    in_another_second();
    repo.git(&["commit", "-qam", "mine"]);
    is_proven(&next(&repo, "echo \"VALUE = 'fine'\" > part.py"));
}

#[test]
fn what_the_user_checks_out_after_the_kill_is_the_users() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    let old = repo.git(&["rev-parse", "HEAD"]);
    repo.write("check.sh", "set -e\npython3 -m unittest -q\n");
    repo.git(&["commit", "-qam", "another check"]);
    killed(&env, &repo, NEXT, None);
    repo.git(&["checkout", "-q", old.trim()]);
    is_proven(&next(&repo, HONEST));
}

#[test]
fn ticks_of_a_killed_session_are_gone_on_with_and_other_changes_of_the_task_are_not() {
    let task = "---\nmax_iterations: 1\nmax_wall_time_minutes: 10\nmax_cost_usd_estimate: 1\ntest_command: \"python3 -m unittest \
                -q\"\n---\n\n# Do the work\n\n## Success criteria\n- [ ] M1.1 the part is right\n  - verify: `grep -q right part.py`\n- [ ] M1.2 it is there\n  - verify: `test -f \
                part.py`\n";
    for (edit, asked) in [("s/\\[ \\] M1.1/[x] M1.1/", false), ("s/grep -q right/grep -q wrong/", true)] {
        let env = TestEnv::new(RALPH);
        let repo = scene(&env);
        repo.write("ralph_task.md", task);
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "-m", "task"]);
        configure(&repo, &format!("sed -i '{edit}' ralph_task.md; {KILL}"));
        let run = repo.ralph(&["run", "ralph_task.md", "--branch", "fix", "--isolation", "none", "--json"]);
        assert_eq!(run.code, None, "{}", run.stderr);
        configure(&repo, &format!("{HONEST}; sed -i 's/\\[ \\] M1/[x] M1/' ralph_task.md"));
        let run = repo.ralph(&["run", "ralph_task.md", "--branch", "fix", "--new", "--json"]);
        match asked {
            true => refused(&run, "ralph_task.md"),
            false => drop(run.exits(0)),
        }
    }
}

#[test]
fn a_killed_run_says_nothing_of_another_worktree() {
    let env = TestEnv::new(RALPH);
    let repo = scene(&env);
    repo.git(&["worktree", "add", "-q", "../beside", "HEAD", "--detach"]);
    let beside = repo.dir.parent().unwrap().join("beside");
    killed(&env, &repo, "echo true > check.sh", None);
    configure(&repo, HONEST);
    std::fs::create_dir_all(beside.join(".ralph")).unwrap();
    std::fs::copy(repo.dir.join(".ralph/config.json"), beside.join(".ralph/config.json")).unwrap();
    std::fs::write(beside.join("check.sh"), "set -e\npython3 -m unittest -q\n").unwrap();
    let run = env.ralph(&beside, &["run", "--new", "--json", "--yes"]);
    is_proven(&run);
    refused(&next(&repo, NEXT), "check.sh");
}
