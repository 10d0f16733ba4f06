//! What a run shows: the agent's actions, why a check fails, when a wait ends.

use super::{RALPH, claude_says, path, program, ralph_in};
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use std::process::{Command, Stdio};

/// A repo whose unittest expects `calc.x` to be 2, with an ignored file.
fn repo<'a>(env: &'a TestEnv, needs_local: bool) -> TestRepo<'a> {
    let local = if needs_local { "        self.assertTrue(os.path.exists('local.txt'))\n" } else { "" };
    let test = format!(
        "import os, unittest, calc\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(calc.x, 2)\n{local}"
    );
    let files = [
        ("calc.py", "x = 1\n"),
        ("test_calc.py", test.as_str()),
        (".gitignore", "__pycache__/\nlocal.txt\n"),
    ];
    TestRepo::new(env, "repo", &files)
}

/// A `claude` that reports its steps: it reads, runs a failing command, edits, and ends with this text.
fn verbose_claude(env: &TestEnv, edits: &str, words: &str) {
    let event = |content: &str| {
        format!(
            "cat <<'END'\n{{\"type\":\"assistant\",\"message\":{{\"role\":\"assistant\",\"content\":[{content}]}}}}\nEND\n"
        )
    };
    let text =
        event(r#"{"type":"text","text":"First I look around. The tests tell me what is expected of it."}"#);
    let read = event(r#"{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"test_calc.py"}}"#);
    let bash = event(
        r#"{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"python3 -m unittest --with quite-a-few --more words --than fit --into one-line"}}"#,
    );
    let result = "cat <<'END'\n{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"is_error\":true,\"content\":\"no such option\"}]}}\nEND\n";
    let says = claude_says(words);
    program(env, "claude", &format!("cat > /dev/null\n{text}{read}{bash}{result}{edits}\n{says}"));
}

/// Runs `ralph` on a terminal of this width; returns its raw output without colors.
fn on_terminal(env: &TestEnv, repo: &TestRepo<'_>, columns: usize, args: &str) -> Option<String> {
    let line = format!("{RALPH} {args}");
    let mut shell = Command::new("script");
    shell.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(&repo.dir).env_clear().envs(env.vars());
    shell
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .env("COLUMNS", columns.to_string())
        .env("PATH", path(env));
    shell.stdin(Stdio::null()).stderr(Stdio::piped());
    match shell.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            ralph_loop_testkit::skip(&format!("`script` makes the terminal: {error}"));
            None
        }
    }
}

/// The visible lines of a screen, without overwritten text.
fn lines(screen: &str) -> Vec<String> {
    let last = |line: &str| line.rsplit("\u{1b}[2K").next().unwrap_or_default().trim_end().to_owned();
    screen.split('\n').map(|line| last(line.trim_end_matches('\r'))).collect()
}

#[test]
fn terminal_shows_tool_calls_and_the_last_sentence() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, false);
    verbose_claude(
        &env,
        "sleep 1; echo 'x = 2' > calc.py",
        "I set it to two. That is what the test expects of it.",
    );
    let Some(screen) = on_terminal(&env, &repo, 60, "run --isolation none 'Make it two'") else { return };
    let lines = lines(&screen);
    let at = |text: &str| {
        lines.iter().position(|line| line == text).unwrap_or_else(|| panic!("no `{text}`:\n{screen}"))
    };
    let said = at("      claude: The tests tell me what is expected of it.");
    let read = at("      reading test_calc.py");
    let ran = at("      running `python3 -m unittest --with quite-a-few…");
    let end = at("      claude: That is what the test expects of it.");
    assert!(said < read && read < ran && ran < end, "{screen}");
    assert!(screen.contains("claude is working"), "{screen}");
    assert!(screen.contains("failing: test_calc.T.test_x"), "the baseline says what fails:\n{screen}");
    assert!(!screen.contains("\u{1b}[3"), "NO_COLOR");
    let paths = |line: &&String| line.split_whitespace().any(|word| word.len() > 40);
    for line in lines.iter().filter(|line| !paths(line)) {
        assert!(line.chars().count() <= 60, "wider than the terminal: {line}\n{screen}");
    }
    let quiet = on_terminal(&env, &repo, 60, "run -q --new --isolation none 'Make it two'").unwrap();
    assert_eq!(quiet.trim(), "", "quiet is quiet");
}

/// Every drawn frame, including overwritten ones: no frame is wider than the terminal, and the current step comes first.
#[test]
fn narrow_status_line_fits_and_shows_the_silence() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, false);
    verbose_claude(
        &env,
        "sleep 2; echo 'x = 2' > calc.py",
        "I set it to two. That is what the test expects.",
    );
    let Some(screen) = on_terminal(&env, &repo, 60, "run --isolation none 'Make it two'") else { return };
    let frames: Vec<&str> = screen.split("\u{1b}[2K").flat_map(|part| part.split(['\n', '\r'])).collect();
    let now: Vec<&&str> = frames.iter().filter(|frame| frame.contains("claude is working · ")).collect();
    assert!(now.iter().any(|frame| frame.contains(" · last output ")), "{now:?}");
    for frame in now {
        assert!(frame.trim_end().chars().count() <= 60, "{} columns: {frame:?}", frame.chars().count());
        let clock = frame.split("is working · ").nth(1).unwrap();
        assert!(clock.starts_with(|c: char| c.is_ascii_digit()), "the time stands first: {frame:?}");
    }
}

#[test]
fn headless_output_has_one_line_per_step_with_failure_reasons() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, false);
    verbose_claude(&env, "echo 'x = 3' > calc.py", "I set it to three. That should be enough of it.");
    let args = ["run", "--isolation", "none", "--max-iterations", "1", "Make it two"];
    let run = ralph_in(&env, &repo.dir, &args).exits(1);
    let steps = [
        "● iteration 1: claude works",
        "✗ tests failed: exit code 1",
        "failing: test_calc.T.test_x",
        "AssertionError: 3 != 2",
        "  failing   tests: exit code 1",
    ];
    for step in steps {
        assert!(run.stderr.contains(step), "no `{step}`:\n{}", run.stderr);
    }
    assert!(!run.stderr.contains("reading test_calc.py"), "{}", run.stderr);
    let status = repo.ralph(&["status"]).exits(0).stdout;
    assert!(
        status.contains("✗  tests (required)  failed ") && status.contains("AssertionError: 3 != 2"),
        "{status}"
    );
    let logs = repo.ralph(&["logs"]).exits(0).stdout;
    assert!(logs.contains("            failing: test_calc.T.test_x\n"), "{logs}");
    assert!(!logs.contains("reading test_calc.py"), "{logs}");
    let iteration = repo.ralph(&["show", "--checks"]).exits(0).stdout;
    assert!(
        iteration.contains("✗ tests (required): failed") && iteration.contains("at start"),
        "{iteration}"
    );
    let quiet = ralph_in(
        &env,
        &repo.dir,
        &["run", "-q", "--new", "--isolation", "none", "--max-iterations", "1", "Again, two"],
    );
    assert_eq!(quiet.stderr, "");
}

#[test]
fn logs_show_tool_calls_and_agent_output_as_text() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, false);
    verbose_claude(&env, "echo 'x = 2' > calc.py", "I set it to two. That is what the test expects of it.");
    ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "Make it two"]).exits(0);
    let followed = repo.ralph(&["logs", "-f"]).exits(0).stdout;
    for line in ["> reading test_calc.py", "That is what the test expects of it.", "> running `python3"] {
        assert!(followed.contains(&format!("            {line}")), "no `{line}`:\n{followed}");
    }
    assert!(!followed.contains("First I look around"), "only the last sentence:\n{followed}");
    let everything = repo.ralph(&["logs", "-f", "--live"]).exits(0).stdout;
    assert!(everything.contains("First I look around"), "{everything}");
    let read = repo.ralph(&["logs", "-o"]).exits(0).stdout;
    assert!(
        read.starts_with(
            "First I look around. The tests tell me what is expected of it.\n> reading test_calc.py\n"
        ),
        "{read}"
    );
    assert!(read.contains("\n! no such option\n") && !read.contains("\"type\""), "{read}");
    let last = repo.ralph(&["logs", "-o", "-n", "1"]).exits(0).stdout;
    assert_eq!(last.trim(), "<promise>COMPLETE</promise>");
    let raw = repo.ralph(&["logs", "-o", "--raw"]).exits(0).stdout;
    let run = repo.ralph(&["status", "--json"]).json()["run_dir"].as_str().unwrap().to_owned();
    assert_eq!(raw, std::fs::read_to_string(format!("{run}/iterations/1/output.log")).unwrap());
}

#[test]
fn criteria_failed_by_the_final_check_are_not_ticked() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, true);
    verbose_claude(
        &env,
        "echo 'x = 2' > calc.py; touch local.txt",
        "I made the file that the test asks for.",
    );
    let args = ["run", "--isolation", "none", "--max-iterations", "1", "Make the test pass"];
    let run = ralph_in(&env, &repo.dir, &args).exits(1);
    assert!(run.stderr.contains("✗ not proven: tests: exit code 1"), "{}", run.stderr);
    assert!(run.stderr.contains("failing   tests in the final check: exit code 1"), "{}", run.stderr);
    let status = repo.ralph(&["status"]).exits(0).stdout;
    assert!(!status.contains('✓'), "{status}");
    assert!(status.contains("✗  tests (required)  in the final check failed"), "{status}");
    assert!(status.contains("required checks pass, the final check does not"), "{status}");
    let json = repo.ralph(&["show", "--checks", "--json"]).exits(0).json();
    let check = &json["checks"][0];
    assert_eq!((&check["standing"], &check["last"]["passed"]), (&"failed".into(), &true.into()), "{json}");
    assert_eq!(check["final"]["failing"][0], "test_calc.T.test_x", "{json}");
    assert_eq!(repo.ralph(&["status", "--json"]).json()["checks"][0]["refused"], true);
}

#[test]
fn times_use_the_readers_time_zone() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, false);
    verbose_claude(&env, "echo 'x = 2' > calc.py", "I set it to two, as the test wants.");
    ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "Make it two"]).exits(0);
    let hour = |zone: &str| {
        let logs = TestEnv::finish(env.ralph_command(&repo.dir, &["logs"]).env("TZ", zone)).exits(0).stdout;
        let (day, rest) = logs.split_once('\n').unwrap();
        (day.to_owned(), rest[..2].parse::<i32>().unwrap())
    };
    let (utc, kathmandu) = (hour("UTC"), hour("XYZ-5"));
    assert!(utc.0.ends_with("(UTC)") && kathmandu.0.ends_with("(XYZ)"), "{utc:?} {kathmandu:?}");
    assert_eq!((kathmandu.1 - utc.1).rem_euclid(24), 5);
}

/// The refusal because of an active run shows the time in the reader's time zone.
#[test]
fn active_run_is_reported_in_the_readers_time_zone() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, false);
    let go = env.path("go");
    let words = claude_says("I set it to two.");
    let waits = format!(
        "cat > /dev/null\nuntil [ -e {} ]; do sleep 0.05; done\necho 'x = 2' > calc.py\n{words}",
        go.display()
    );
    program(&env, "claude", &waits);
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "Make it two"]);
    let child = command.env("PATH", path(&env)).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("the session", || repo.kinds().contains(&"iteration_started".to_owned()).then_some(()));
    let since = |zone: &str| -> i32 {
        let mut command =
            env.ralph_command(&repo.dir, &["run", "--new", "--isolation", "none", "Make it three"]);
        let refused = TestEnv::finish(command.env("PATH", path(&env)).env("TZ", zone)).exits(4).stderr;
        let told = refused
            .split("is already working in this folder (process ")
            .nth(1)
            .unwrap_or_else(|| panic!("{refused}"));
        let time = told.split("since ").nth(1).unwrap().split(')').next().unwrap();
        let (hours, minutes) = time.rsplit(' ').next().unwrap().split_once(':').unwrap();
        hours.parse::<i32>().unwrap() * 60 + minutes.parse::<i32>().unwrap()
    };
    let (utc, east) = (since("UTC"), since("XYZ-5"));
    assert_eq!((east - utc).rem_euclid(24 * 60), 5 * 60);
    std::fs::write(go, "").unwrap();
    TestEnv::wait(child).exits(0);
}

#[test]
fn wait_end_is_printed_before_the_wait() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, false);
    let limited = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":429,\"result\":\"API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.\"}";
    program(&env, "claude", &format!("cat > /dev/null\ncat <<'END'\n{limited}\nEND\nexit 1"));
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "Make it two"]);
    command.env("PATH", path(&env)).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let status = until("the wait", || {
        let mut status = env.ralph_command(&repo.dir, &["status"]);
        let shown = TestEnv::finish(status.env("COLUMNS", "60")).stdout;
        shown.contains("waiting, continues in ").then_some(shown)
    });
    let line = status.lines().find(|line| line.contains("continues in")).unwrap();
    assert!(line.starts_with("  waiting, continues in ") && line.contains(':'), "{status}");
    assert!(status.contains("in cooldown, free in "), "{status}");
    repo.ralph(&["cancel"]).exits(0);
    let said = TestEnv::wait(child).stderr;
    assert!(said.contains("waiting until ") && said.contains("(in "), "{said}");
}
