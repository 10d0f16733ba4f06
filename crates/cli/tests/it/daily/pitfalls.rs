//! Pitfalls of daily use: commits on the current branch, work outside the result, a logged-out agent, an interrupted session, an
//! unknown cost.

use super::{RALPH, calc, claude_says, path, program, ralph_in};
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};

const WORKS: &str = "echo work > part.txt; echo '<promise>COMPLETE</promise>'";

#[test]
fn branch_option_refuses_the_current_branch() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORKS, "test -f part.txt");
    let before = repo.git(&["rev-parse", "main"]);
    let refused = repo.ralph(&["run", "--isolation", "none", "--branch", "main"]).exits(2);
    for words in ["that is the branch that you are on", "--branch main-v2", "ralph apply --squash"] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    assert_eq!(repo.git(&["rev-parse", "main"]), before);
    assert_eq!(repo.ralph(&["list", "--json"]).exits(0).json(), json!([]), "nothing was begun");
    repo.run(&["--branch", "main-v2"]).exits(0);
    assert_eq!(repo.git(&["rev-parse", "main"]), before);
    // A branch that a run created can be used again.
    repo.stub("echo more > more.txt; echo '<promise>COMPLETE</promise>'", "test -f more.txt");
    repo.run(&["--branch", "main-v2", "--new"]).exits(0);
}

/// A repo with the submodule `lib`, and an agent that edits in it.
fn with_submodule<'a>(env: &'a TestEnv, script: &str) -> TestRepo<'a> {
    let lib = TestRepo::new(env, "lib", &[("a.txt", "a\n"), (".gitignore", "*.o\n")]);
    let repo = TestRepo::with_task(env);
    let from = lib.dir.display().to_string();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "lib"]);
    repo.git(&["commit", "-q", "-m", "with a submodule"]);
    repo.configure(&[repo.agent("stub", script)], "test -f part.txt", &json!({ "max_iterations": 1 }));
    repo
}

#[test]
fn submodule_edits_are_reported() {
    let env = TestEnv::new(RALPH);
    let repo = with_submodule(
        &env,
        "echo b > lib/a.txt; echo n > lib/new.txt; echo o > lib/x.o; echo '<promise>COMPLETE</promise>'",
    );
    for args in [&["--isolation", "none"][..], &[], &["--worktree", "--isolation", "none"]] {
        let done = repo.ralph(&[&["run", "--new"], args].concat());
        if done.stderr.contains("cannot sandbox") {
            ralph_loop_testkit::skip(&done.stderr);
            continue;
        }
        let want = "edits in a submodule are not part of the result: `lib/a.txt`, `lib/new.txt`";
        assert_eq!(
            done.stderr.matches(want).count(),
            2,
            "once when it happens, once at the end: {args:?} {}",
            done.stderr
        );
        assert!(
            !done.stderr.contains("nothing changed\n") && !done.stderr.contains("no file changed\n"),
            "{}",
            done.stderr
        );
        let event = &repo.events_named("checkpointed")[0];
        assert_eq!(event["in_submodules"], json!(["lib/a.txt", "lib/new.txt"]), "{event}");
        repo.git(&["-C", "lib", "checkout", "-q", "."]);
        repo.git(&["-C", "lib", "clean", "-qfdx"]);
    }
}

#[test]
fn user_edits_in_a_submodule_are_not_the_agents() {
    let env = TestEnv::new(RALPH);
    let repo = with_submodule(&env, WORKS);
    repo.write("lib/a.txt", "mine\n");
    let done = repo.ralph(&["run", "--isolation", "none"]).exits(0);
    assert!(!done.stderr.contains("submodule"), "{}", done.stderr);
}

/// An agent without an error format that prints only a refusal.
#[test]
fn logged_out_agent_ends_the_run_and_suggests_the_probe() {
    let env = TestEnv::new(RALPH);
    for (said, code) in [
        ("Invalid API key \u{b7} Please run /login", 0),
        ("Invalid API key \u{b7} Please run /login", 1),
        ("Error: not logged in", 0),
        ("401 Unauthorized", 1),
        ("Quota exceeded", 0),
    ] {
        let repo =
            TestRepo::new(&env, &format!("refused-{code}-{}", said.len()), &[("PROMPT.md", "# Task\n")]);
        repo.stub(&format!("echo '{said}'; exit {code}"), "false");
        let done = repo.ralph(&["run", "--isolation", "none"]).exits(4);
        assert_eq!(repo.events_named("iteration_started").len(), 1, "{said}: {}", done.stderr);
        assert!(done.stderr.contains("`ralph probe stub`") && done.stderr.contains(said), "{}", done.stderr);
        let probe = repo.ralph(&["probe", "stub", "--isolation", "none", "--json"]);
        assert_ne!(probe.code, Some(0), "{probe:?}");
        assert_eq!(probe.json()[0]["status"], "auth", "{probe:?}");
    }
}

#[test]
fn agent_output_about_logins_is_not_a_logout() {
    let env = TestEnv::new(RALPH);
    for (name, script) in [
        ("changed", "echo work >> part.txt; echo 'Not logged in'; exit 0"),
        ("failed", "echo work >> part.txt; echo 'Not logged in' >&2; exit 1"),
        ("sentence", "echo 'The page says that one is not logged in, and 401 Unauthorized.'"),
        ("promised", "echo 'Not logged in: that is what it says now.'; echo '<promise>COMPLETE</promise>'"),
    ] {
        let repo = TestRepo::new(&env, name, &[("PROMPT.md", "# Task\n")]);
        repo.configure(&[repo.agent("stub", script)], "false", &json!({ "max_iterations": 2 }));
        let done = repo.ralph(&["run", "--isolation", "none", "--json"]);
        assert_eq!(done.json()["reason"], "max_iterations", "{name}: {}", done.stderr);
        assert_eq!(repo.verdicts().len(), 2, "{name}: {}", done.stderr);
    }
}

/// Sandboxed in place: the files of an interrupted session are kept only in its copy.
#[test]
fn cancel_hands_over_nothing_of_an_interrupted_session() {
    for signal in ["-INT", "-KILL", ""] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.stub("if [ \"$RALPH_ITERATION\" = 1 ]; then echo one > one.txt; exit 0; fi; echo half > half.txt; sleep 600", "false");
        let child = env.spawn(&repo.dir, &["run"]);
        let pid = child.id().to_string();
        let at_work = until("the second session", || {
            let ended = !ralph_loop_testkit::env::is_alive(child.id());
            let kinds = if ended { Vec::new() } else { repo.kinds() };
            let begun = kinds.iter().filter(|kind| *kind == "iteration_started").count() == 2;
            (ended || begun).then_some(begun)
        });
        if !at_work {
            let done = TestEnv::wait(child);
            assert!(done.stderr.contains("cannot sandbox"), "{}", done.stderr);
            return ralph_loop_testkit::skip(&done.stderr);
        }
        let run = repo.latest();
        let home = repo.record(&run).ancestors().nth(2).unwrap().to_owned();
        until("the half of a file", || has_session_files(&home).then_some(()));
        if !signal.is_empty() {
            TestEnv::finish(env.command("kill", &repo.dir).args([signal, &pid]));
            TestEnv::wait(child);
            let ended = until("the end of the run's process", || {
                let status = repo.ralph(&["status", "--json"]).exits(0).json();
                (status["driven"] == false).then_some(status)
            });
            assert_eq!(ended["finished"], Value::Null, "{ended}");
            let said = repo.ralph(&["cancel"]).exits(0).stderr;
            assert!(
                said.contains("not in your folder") && said.contains(&format!("`ralph diff {run}`")),
                "{signal}: {said}"
            );
        } else {
            repo.ralph(&["cancel"]).exits(0);
            let done = TestEnv::wait(child);
            assert!(done.stderr.contains("not put into your folder"), "{}", done.stderr);
        }
        assert!(!repo.dir.join("half.txt").exists(), "{signal}");
        assert_eq!(repo.read("one.txt"), "one\n", "what a whole session did is there");
        assert_eq!(repo.git(&["show", &format!("refs/ralph/{run}/work:half.txt")]), "half");
        let diff = repo.ralph(&["diff", &run]).exits(0).stdout;
        assert!(diff.contains("+half"), "{diff}");
        repo.ralph(&["apply", &run]).exits(0);
        assert_eq!(repo.read("half.txt"), "half\n");
    }
}

/// Whether a folder of this machine's state has the session's files.
fn has_session_files(state: &std::path::Path) -> bool {
    let mut left = vec![state.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(entry.path()),
                Ok(_) if entry.file_name() == "half.txt" => {
                    return std::fs::read_to_string(entry.path()).is_ok_and(|text| text == "half\n");
                }
                _ => {}
            }
        }
    }
    false
}

/// The cost is unknown while the first session works.
#[test]
fn cost_during_the_first_session_is_unknown_not_zero() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(
        &format!("while [ ! -e {} ]; do echo at work; sleep 0.05; done; {WORKS}", env.path("go").display()),
        "test -f part.txt",
    );
    let child = env.spawn(&repo.dir, &["run", "--json", "--isolation", "none"]);
    until("the session's output", || {
        let begun = repo.dir.join(".ralph/runs").exists()
            && repo.kinds().iter().any(|kind| kind == "iteration_started");
        let run = begun.then(|| repo.ralph(&["list", "--json"]).exits(0).json())?;
        // Its output counts as activity, although it isn't an event.
        let at = |key: &str| run[0][key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        (at("active_at") > at("last_event_at")).then_some(())
    });
    for args in [&["status"][..], &["list"]] {
        let face = repo.ralph(args).exits(0).stdout;
        assert!(face.contains("unknown") && !face.contains("$0"), "{args:?}: {face}");
    }
    let status = repo.ralph(&["status", "--json"]).exits(0).json();
    assert_eq!(status["spent"]["cost_basis"], "unknown", "{status}");
    let unknown = [&status["cost_usd"], &status["spent"]["cost_usd"], &status["spent"]["tokens"]];
    assert_eq!(unknown, [&Value::Null; 3], "{status}");
    std::fs::write(env.path("go"), "").unwrap();
    let done = TestEnv::wait(child).exits(0);
    assert!(done.stderr.contains("cost unknown"), "{}", done.stderr);
    let result = done.json();
    assert_eq!((&result["cost_usd"], &result["tokens"]), (&Value::Null, &Value::Null), "{result}");
}

const NPM: &str = r#"{"scripts":{"test":"sh test.sh"}}"#;

/// A repo with tests only in `packages/web`, and a fake npm.
fn monorepo(env: &TestEnv) -> TestRepo<'_> {
    program(env, "npm", "exec sh test.sh");
    program(
        env,
        "claude",
        &format!(
            "cat > /dev/null\ncd \"$(git rev-parse --show-toplevel)\"\necho ok > packages/web/part.txt\n{}",
            claude_says("Did it.")
        ),
    );
    TestRepo::new(
        env,
        "mono",
        &[
            ("readme.md", "x\n"),
            ("packages/web/package.json", NPM),
            ("packages/web/test.sh", "grep -q ok part.txt\n"),
            ("packages/web/src/a.js", "\n"),
        ],
    )
}

#[test]
fn tests_of_a_subfolder_are_proposed_and_run_there() {
    let env = TestEnv::new(RALPH);
    let repo = monorepo(&env);
    let run = ["run", "--isolation", "none", "Make the tests pass"];
    let refused = ralph_in(&env, &repo.dir, &run).exits(2);
    let flag = "--verify 'cd packages/web && npm test'";
    assert!(refused.stderr.contains(flag), "{}", refused.stderr);
    for below in ["packages/web", "packages/web/src"] {
        let done = ralph_in(&env, &repo.dir.join(below), &run).exits(0);
        assert!(
            done.stderr.contains("cd packages/web && npm test (from packages/web/package.json"),
            "{}",
            done.stderr
        );
        repo.git(&["clean", "-qfd"]);
    }
    ralph_in(
        &env,
        &repo.dir,
        &["run", "--isolation", "none", "Make the tests pass", "--verify", "cd packages/web && npm test"],
    )
    .exits(0);
}

#[test]
fn help_is_printed_as_json_on_request() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    for args in
        [&["help", "--json"][..], &["--json", "help"], &["--help", "--json"], &["help", "apply", "--json"]]
    {
        let help = repo.ralph(args).exits(0).json();
        assert!(help["help"].as_str().unwrap().contains("Usage: ralph"), "{args:?}: {help}");
    }
}

#[test]
fn piped_output_uses_the_requested_width() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORKS, "test -f part.txt");
    repo.run(&[]).exits(0);
    for columns in ["50", "90", "240"] {
        let status =
            TestEnv::finish(env.ralph_command(&repo.dir, &["status"]).env("COLUMNS", columns)).exits(0);
        let first = status.stdout.lines().next().unwrap().chars().count();
        assert_eq!(first.to_string(), columns, "{}", status.stdout);
    }
}

#[test]
fn restore_with_yes_reports_its_changes() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORKS, "test -f part.txt");
    repo.run(&[]).exits(0);
    assert!(repo.ralph(&["restore"]).exits(0).stdout.contains("would change"));
    let done = repo.ralph(&["restore", "--yes"]).exits(0);
    assert!(done.stdout.contains("restoring 1 file in") && !done.stdout.contains("would"), "{}", done.stdout);
}

#[test]
fn empty_plan_suggests_the_plan_command() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("ralph/tasks.json", "");
    let refused = repo.ralph(&["lint", "ralph/tasks.json"]).exits(2);
    assert!(
        refused.stdout.contains("`ralph init --plan --force`")
            || refused.stderr.contains("`ralph init --plan --force`"),
        "{refused:?}"
    );
    repo.ralph(&["init", "--plan", "--force"]).exits(0);
    assert!(repo.read("ralph/tasks.json").contains("userStories"));
}

/// Checks pass without a promise: the end names the setting.
#[test]
fn missing_promise_names_the_setting_that_drops_it() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    program(&env, "mine", "cat > /dev/null\necho 'x = 2' > calc.py\necho 'I have set it to two.'");
    env.user_config(&json!({"agents": [{"name": "mine", "command_argv": ["mine"]}]}));
    let run = ["run", "--isolation", "none", "-n", "2", "Make calc.x two"];
    let done = TestEnv::finish(env.ralph_command(&repo.dir, &run).env("PATH", path(&env)));
    assert_ne!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.stderr
            .contains("with `\"completion\": \"checks\"` in `.ralph/config.json` a run ends without it"),
        "{}",
        done.stderr
    );
}
