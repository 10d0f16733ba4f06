//! What new users run into: leftovers of runs, commit messages, missing check or setup programs, questions.

pub(super) mod messages;

use super::{RALPH, calc, capable_claude, claude_says, program, ralph_in};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The result of a run; `None` if this machine has no sandbox.
fn sandboxed(done: Finished) -> Option<serde_json::Value> {
    match done.code {
        Some(4) => {
            ralph_loop_testkit::skip("no sandbox here");
            None
        }
        _ => Some(done.exits(0).json()),
    }
}

fn clean(repo: &TestRepo<'_>) -> serde_json::Value {
    repo.ralph(&["clean", "--older-than", "0d", "--unread", "--yes", "--json"]).exits(0).json()
}

#[test]
fn clean_removes_worktrees_and_clones_but_keeps_their_branches() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    capable_claude(&env);
    let folder = |kind: &str, run: &str| env.path("state/ralph").join(kind).join(run);
    let Some(run) = sandboxed(ralph_in(&env, &repo.dir, &["run", "--worktree", "--json", "Make it two"]))
    else {
        return;
    };
    let run = run["run_id"].as_str().unwrap().to_owned();
    assert!(folder("workspaces", &run).is_dir());
    let done = clean(&repo);
    assert!(done["runs"][0]["workspace"].as_str().unwrap().contains("workspaces"), "{done}");
    assert!(!folder("workspaces", &run).exists() && !folder("copies", &run).exists(), "{done}");
    assert!(!repo.git(&["worktree", "list"]).contains(&run));
    let branch = format!("ralph/{run}");
    assert_eq!(repo.git(&["show", &format!("{branch}:calc.py")]), "x = 2", "it alone holds the work");
    assert!(repo.ralph(&["diff", &run]).exits(0).stdout.contains("+x = 2"));
    repo.ralph(&["apply", &run, "--commit"]).exits(0);
    assert_eq!(repo.read("calc.py"), "x = 2\n");
    repo.git(&["merge", "-q", "-s", "ours", "-m", "taken", &branch]);
    let again = clean(&repo);
    assert_eq!(again["runs"][0]["branch"], branch, "{again}");
    assert!(!repo.git(&["branch", "--list"]).contains(&branch));
    // A clone with the only copy of the work stays, and is removed once the work was applied.
    repo.write("calc.py", "x = 1\n");
    repo.git(&["commit", "-q", "-am", "back to one"]);
    let clone = ralph_in(&env, &repo.dir, &["run", "--clone", ".", "--json", "Make it two"]).exits(0).json();
    let clone = clone["run_id"].as_str().unwrap().to_owned();
    let kept = clean(&repo);
    assert!(kept["kept"][0]["why"].as_str().unwrap().contains("only in its clone"), "{kept}");
    assert!(folder("workspaces", &clone).is_dir());
    repo.ralph(&["apply", &clone]).exits(0);
    clean(&repo);
    assert!(!folder("workspaces", &clone).exists() && !folder("copies", &clone).exists());
}

#[test]
fn commit_title_describes_the_work_not_its_tests() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    let words = "Done!\n\n## Summary\n\nSet `calc.x` to two.\n\n- Changed the constant\n- Left the test alone\n\nTests: 2 pass";
    program(&env, "claude", &format!("cat > /dev/null\necho 'x = 2' > calc.py\n{}", claude_says(words)));
    let run =
        ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--worktree", "--json", "Make it two"]);
    let run = run.exits(0).json();
    let message = repo.git(&["log", "-1", "--format=%B", run["branch"].as_str().unwrap()]);
    let expected = "Set `calc.x` to two\n\nChanged the constant. Left the test alone. Tests: 2 pass\n";
    assert!(message.starts_with(expected), "{message}");
    assert!(!message.contains("promise") && !message.contains("Summary"), "{message}");
    let shown = repo.ralph(&["status"]).exits(0).stdout;
    assert!(shown.contains("Set `calc.x` to two."), "{shown}");
}

#[test]
fn pull_request_summary_is_the_agents_summary() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    let words = "Set `calc.x` to two.\n\nThe test expected that.";
    program(&env, "claude", &format!("cat > /dev/null\necho 'x = 2' > calc.py\n{}", claude_says(words)));
    let forge = env.path("forge");
    repo.config(&json!({ "local_forge": forge.display().to_string() }));
    let task = json!({
        "task": "Make calc.x two",
        "ticket_id": "T-1",
        "acceptance_criteria": [{"type": "command_succeeds", "command": "python3 -m unittest discover"}],
        "git": { "create_pr": true, "feature_branch": "feature/T-1",
            "pr_body_template": "Ticket: {{ticket_id}}\n\nWhat: {{summary}}" },
    });
    repo.write("ralph.json", &task.to_string());
    repo.git(&["add", "ralph.json"]);
    repo.git(&["commit", "-q", "-m", "task"]);
    ralph_in(&env, &repo.dir, &["trust", "--yes"]);
    let run =
        ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--worktree", "--json"]).exits(0).json();
    let text = find_text(&forge, "Ticket: T-1");
    assert!(
        text.contains("What: Set `calc.x` to two") && text.contains("The test expected that"),
        "{run}: {text}"
    );
}

/// The file below a folder that contains this text.
fn find_text(folder: &Path, words: &str) -> String {
    let mut open = vec![folder.to_owned()];
    loop {
        let path = open.pop().unwrap_or_default();
        assert!(!path.as_os_str().is_empty(), "no file below {} says `{words}`", folder.display());
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path()));
        } else if let Some(text) = std::fs::read_to_string(&path).ok().filter(|text| text.contains(words)) {
            return text;
        }
    }
}

#[test]
fn demo_uses_no_user_settings() {
    let env = TestEnv::new(RALPH);
    program(&env, "paid", "touch \"$HOME/paid\"; cat > /dev/null");
    env.user_config(&json!({
        "agents": [{ "name": "paid", "kind": "cli", "command_argv": [env.path("bin/paid").display().to_string()] }],
        "agent_priority": ["paid"], "max_iterations": 1, "isolation": "none",
        "notify": [{ "kind": "command", "command_argv": [env.path("bin/paid").display().to_string()] }],
    }));
    let folder = env.path("plain");
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = env.ralph_command(&folder, &["demo", "--fast", "--dir", "example"]);
    let done = TestEnv::finish(command.env("PATH", super::path(&env))).exits(0);
    assert!(done.stderr.contains("scripted works") && !done.stderr.contains("paid"), "{}", done.stderr);
    assert!(find(&env, "paid").is_none(), "no session ran and no notification was sent");
}

#[test]
fn each_demo_earns_its_level() {
    let env = TestEnv::new(RALPH);
    let folder = env.path("plain");
    std::fs::create_dir_all(&folder).unwrap();
    for (extra, headline) in [
        (None, "✓ Proven, independent after 4 iterations"),
        (Some("--feature"), "✓ Proven by its own tests (original tests pass) after 2 iterations"),
    ] {
        let args: Vec<&str> = ["demo", "--fast"].into_iter().chain(extra).collect();
        let mut command = env.ralph_command(&folder, &args);
        let done = TestEnv::finish(command.env("PATH", super::path(&env))).exits(0);
        assert!(done.stderr.contains(headline), "{}", done.stderr);
        assert_eq!(done.stderr.contains("✗ protected paths differ"), extra.is_none(), "{}", done.stderr);
        assert!(done.stderr.trim_end().lines().last().unwrap().contains("ralph doctor"), "{}", done.stderr);
    }
}

fn find(env: &TestEnv, name: &str) -> Option<PathBuf> {
    let home = env.vars().into_iter().find(|(key, _)| key == "HOME").map(|(_, value)| value)?;
    Some(Path::new(&home).join(name)).filter(|path| path.exists())
}

/// A PATH with only `git` and a shell.
fn path_without_go(env: &TestEnv) -> String {
    let few = env.path("few");
    std::fs::create_dir_all(&few).unwrap();
    for name in ["git", "sh"] {
        let folders = std::env::var("PATH").unwrap();
        let file = folders.split(':').map(|folder| Path::new(folder).join(name)).find(|file| file.is_file());
        std::os::unix::fs::symlink(file.unwrap(), few.join(name)).unwrap();
    }
    few.display().to_string()
}

#[test]
fn the_doctor_names_checks_that_cannot_start() {
    let env = TestEnv::new(RALPH);
    let found = |repo: &TestRepo<'_>, path: &str| {
        let mut doctor = env.ralph_command(&repo.dir, &["doctor", "--json"]);
        let json = TestEnv::finish(doctor.env("PATH", path)).json();
        let all = json["checks"].as_array().unwrap().clone();
        let is_check = |check: &&serde_json::Value| check["name"].as_str().unwrap().starts_with("verifier");
        let checks: Vec<_> =
            all.iter().filter(is_check).map(|c| (c["status"].clone(), c["message"].clone())).collect();
        format!("{checks:?}")
    };
    let repo = TestRepo::new(&env, "go", &[("go.mod", "module x\n")]);
    let said = found(&repo, &path_without_go(&env));
    assert!(said.contains("missing") && said.contains("`go` does not exist"), "{said}");
    let task = "---\ntask_id: t-1\nmax_iterations: 3\nmax_wall_time_minutes: 5\nmax_cost_usd_estimate: 1\n---\n# Task: Two\n\n## Success criteria\n- [ ] M1.1 it is two\n  - verify: `nosuch-linter --all`\n- [ ] M1.2 it is there\n  - verify: `test -f a && ls a`\n";
    let repo = TestRepo::new(&env, "lines", &[("ralph_task.md", task)]);
    let said = found(&repo, &super::path(&env));
    assert!(said.contains("`nosuch-linter` does not exist"), "{said}");
    assert_eq!(said.matches("missing").count(), 1, "{said}");
    program(&env, "python3", "exit 7");
    let repo = TestRepo::new(&env, "py", &[("pytest.ini", ""), ("test_a.py", "def test_a():\n    pass\n")]);
    let said = found(&repo, &super::path(&env));
    assert!(said.contains("`python3` has no module `pytest`"), "{said}");
}

#[test]
fn failing_setup_is_reported_with_its_output_before_any_cost() {
    let env = TestEnv::new(RALPH);
    let test = "def test_a():\n    assert True\n";
    let files =
        [("requirements.txt", "pytest\n"), ("test_a.py", test), (".gitignore", ".venv/\n__pycache__/\n")];
    let repo = TestRepo::new(&env, "repo", &files);
    program(
        &env,
        "claude",
        &format!("cat > /dev/null\necho x > a.txt\n{}", claude_says("Wrote a file now.")),
    );
    program(
        &env,
        "python3",
        "echo 'first words of the setup'\necho 'error: externally-managed-environment' >&2\nexit 1",
    );
    let doctor = ralph_in(&env, &repo.dir, &["doctor"]).stdout;
    assert!(doctor.contains(".venv/bin/python -m pytest"), "{doctor}");
    let run = ["run", "--isolation", "none", "Write a file please", "--max-iterations", "1"];
    let refused = ralph_in(&env, &repo.dir, &run).exits(2);
    assert!(refused.stderr.contains("install -r requirements.txt` makes it"), "{}", refused.stderr);
    let done = ralph_in(&env, &repo.dir, &[&run[..], &["--worktree"]].concat()).exits(4);
    let said = &done.stderr;
    assert!(
        said.contains(
            "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install -r requirements.txt"
        ),
        "{said}"
    );
    assert!(said.contains("error: externally-managed-environment"), "{said}");
    assert!(said.contains("derived it from the repo's files") && said.contains("setup-1.log"), "{said}");
    for args in [&["status"][..], &["show"], &["show", "--checks"]] {
        let shown = repo.ralph(args).exits(0).stdout;
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("failed on the original files, so no check could run there"),
            "{args:?}: {shown}"
        );
        assert!(shown.contains("externally-managed-environment"), "{args:?}: {shown}");
    }
    let json = repo.ralph(&["show", "--checks", "--json"]).exits(0).json();
    assert!(json["setup_failed"]["last_lines"][0].as_str().unwrap().contains("first words"), "{json}");
    assert!(!repo.kinds().contains(&"iteration_started".to_owned()), "no session runs");
}

/// A bare repo that others clone.
fn upstream(env: &TestEnv) -> String {
    let source = TestRepo::new(env, "upstream", &[("readme.txt", "hello\n")]);
    let bare = env.path("upstream.git").display().to_string();
    source.git(&["clone", "-q", "--bare", ".", &bare]);
    source.git(&["push", "-q", &bare, "HEAD:refs/heads/feature/T-1"]);
    bare
}

#[test]
fn pushing_task_names_the_pushed_branch() {
    let env = TestEnv::new(RALPH);
    let url = upstream(&env);
    program(
        &env,
        "claude",
        &format!("cat > /dev/null\necho x > part.txt\n{}", claude_says("Wrote the part.")),
    );
    let folder = env.path("plain");
    std::fs::create_dir_all(&folder).unwrap();
    let task = json!({"task": "Write part.txt", "ticket_id": "T-1", "repository": {"url": url},
        "git": {"feature_branch": "feature/T-1"},
        "acceptance_criteria": [{"type": "file_exists", "path": "part.txt"}]});
    std::fs::write(folder.join("ralph.json"), task.to_string()).unwrap();
    let doctor = ralph_in(&env, &folder, &["doctor"]).stdout;
    assert!(doctor.contains("pushes its work to"), "{doctor}");
    let done = ralph_in(&env, &folder, &["run", "--isolation", "none"]).exits(0);
    assert!(
        done.stderr.contains("after each iteration, because the task names that repo"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("branch    feature/T-1-v2"), "{}", done.stderr);
    let status = ralph_in(&env, &folder, &["status", "--json"]).exits(0).json();
    assert_eq!(status["branch"], "feature/T-1-v2", "{status}");
    let there = TestEnv::finish(env.command("git", &folder).args(["ls-remote", "--heads", &url])).stdout;
    assert!(there.contains("refs/heads/feature/T-1-v2"), "{there}");
    let kept =
        ralph_in(&env, &folder, &["run", "--isolation", "none", "--new", "--publish", "none"]).exits(0);
    assert!(!kept.stderr.contains("because the task names that repo"), "{}", kept.stderr);
}

#[test]
fn interrupted_sessions_are_charged_to_their_agent() {
    let env = TestEnv::new(RALPH);
    let repo = calc(&env);
    let limited = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":529,\"result\":\"API Error: 529 overloaded_error\",\"total_cost_usd\":0.5,\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}";
    program(
        &env,
        "claude",
        &format!(
            "cat > /dev/null\nif [ ! -f \"$HOME/once\" ]; then touch \"$HOME/once\"; echo '{limited}'; exit 1; fi\necho 'x = 2' > calc.py\n{}",
            claude_says("Set it to two now.")
        ),
    );
    let mut command = env.ralph_command(
        &repo.dir,
        &["run", "--isolation", "none", "--json", "Make it two", "--max-iterations", "2"],
    );
    TestEnv::finish(command.env("PATH", super::path(&env)));
    let costs = repo.ralph(&["cost", "--json"]).exits(0).json();
    let names: Vec<&str> =
        costs["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["claude"], "{costs}");
    assert_eq!(costs["rows"][0]["sessions"], 2, "{costs}");
}
