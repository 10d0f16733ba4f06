//! From nothing to a run: other repos, fresh workspaces, what is missing, what agents are given.

use super::{RALPH, claude_says, path, program, ralph_in};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::process::Stdio;

/// A bare repo that others clone, with these files.
fn remote(env: &TestEnv, files: &[(&str, &str)]) -> String {
    let source = TestRepo::new(env, "upstream", files);
    source.git(&["clone", "-q", "--bare", ".", &env.path("upstream.git").display().to_string()]);
    env.path("upstream.git").display().to_string()
}

fn worker(env: &TestEnv) {
    let says = claude_says("Wrote the part.");
    program(env, "claude", &format!("cat > /dev/null\necho x > part.txt\n{says}"));
}

fn plain_folder(env: &TestEnv) -> std::path::PathBuf {
    let folder = env.path("plain");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn task_with_a_repo_url_runs_in_a_clone_from_a_plain_folder() {
    let env = TestEnv::new(RALPH);
    worker(&env);
    let url = remote(&env, &[("readme.txt", "hello\n")]);
    let folder = plain_folder(&env);
    let task = json!({"task": "Write part.txt", "repository": {"url": url},
        "acceptance_criteria": [{"type": "file_exists", "path": "part.txt"}]});
    std::fs::write(folder.join("ralph.json"), task.to_string()).unwrap();
    let run = ["run", "--isolation", "none", "--publish", "none", "--json"];
    let done = ralph_in(&env, &folder, &run).exits(0).json();
    let workspace = std::path::PathBuf::from(done["workspace"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(workspace.join("part.txt")).unwrap(), "x\n");
    assert_eq!(std::fs::read_to_string(workspace.join("readme.txt")).unwrap(), "hello\n");
    assert!(!folder.join("part.txt").exists() && !folder.join(".git").exists());
    // The folder knows its run.
    let status = ralph_in(&env, &folder, &["status", "--json"]).exits(0).json();
    assert_eq!(status["run_id"], done["run_id"]);
    // The same, sandboxed.
    let sandboxed = ralph_in(&env, &folder, &["run", "--publish", "none", "--new", "--json"]);
    match sandboxed.code {
        Some(4) => ralph_loop_testkit::skip("no sandbox here"),
        _ => assert_eq!(sandboxed.exits(0).json()["success"], true),
    }
    // A second run sees the repo's current state.
    let source = env.path("upstream");
    std::fs::write(source.join("later.txt"), "later\n").unwrap();
    let git = |args: &[&str]| TestEnv::finish(env.command("git", &source).args(args)).exits(0);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "later"]);
    git(&["push", "-q", &url, "HEAD"]);
    let again = ralph_in(&env, &folder, &[&run[..], &["--new"]].concat()).exits(0).json();
    assert!(std::path::Path::new(again["workspace"].as_str().unwrap()).join("later.txt").is_file());
}

#[test]
fn boxes_of_an_external_task_are_ticked() {
    let env = TestEnv::new(RALPH);
    program(
        &env,
        "claude",
        &format!(
            "cat > /dev/null\necho x > part.txt\nsed -i 's/\\[ \\] M1.2/[x] M1.2/' .ralph/tasks/*/ralph_task.md\n{}",
            claude_says("Done.")
        ),
    );
    let url = remote(&env, &[("readme.txt", "hello\n")]);
    let folder = plain_folder(&env);
    let task = format!(
        "---\ntask_id: t-1\nrepo_url: {url}\ntest_command: test -f part.txt\nverify_commands:\n  - test -f part.txt\nmax_iterations: 3\nmax_wall_time_minutes: 5\nmax_cost_usd_estimate: 1\n---\n# Task: A file\n\n## Success criteria\n- [ ] M1.1 it is there\n  - verify: `test -f part.txt`\n- [ ] M1.2 it is good\n"
    );
    std::fs::write(folder.join("ralph_task.md"), task).unwrap();
    let done = ralph_in(&env, &folder, &["run", "--isolation", "none", "--publish", "none", "--json"])
        .exits(0)
        .json();
    assert_eq!(done["success"], true);
}

#[test]
fn clone_uses_its_own_task_and_config_and_its_requests_need_permission() {
    let env = TestEnv::new(RALPH);
    worker(&env);
    let config = json!({"verifiers": [{"name": "own", "command_argv": ["test", "-f", "part.txt"]}],
        "allowed_hosts": ["evil.example.org"], "baseline": false});
    let files = [("PROMPT.md", "# Write part.txt\n"), (".ralph/config.json", &*config.to_string())];
    let url = remote(&env, &files);
    let folder = plain_folder(&env);
    let run = ["run", "--clone", &url, "--isolation", "none", "--json"];
    let refused = ralph_in(&env, &folder, &run).exits(3);
    assert!(refused.stderr.contains("evil.example.org"), "{}", refused.stderr);
    ralph_in(&env, &folder, &["trust", "--clone", &url, "--yes"]).exits(0);
    let done = ralph_in(&env, &folder, &run).exits(0).json();
    let record = env.path("state/ralph/runs").join(done["run_id"].as_str().unwrap());
    let spec: Value = serde_json::from_slice(&std::fs::read(record.join("spec.json")).unwrap()).unwrap();
    assert_eq!(spec["task"]["title"], "Write part.txt");
    assert_eq!(spec["settings"]["required_verifiers"], json!(["own"]));
}

#[test]
fn task_cannot_choose_the_push_target_without_permission() {
    let env = TestEnv::new(RALPH);
    worker(&env);
    let url = remote(&env, &[("readme.txt", "hello\n")]);
    let task = json!({"task": "Write part.txt", "repository": {"url": url},
        "acceptance_criteria": [{"type": "file_exists", "path": "part.txt"}]});
    let repo = TestRepo::new(&env, "cloned", &[("ralph.json", &task.to_string())]);
    let refused = ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--publish", "push"]).exits(3);
    assert!(refused.stderr.contains("results to be pushed to"), "{}", refused.stderr);
    ralph_in(&env, &repo.dir, &["run", "--isolation", "none", "--publish", "push", "--yes"]).exits(0);
    let branches =
        TestEnv::finish(env.command("git", &env.path("upstream.git")).args(["branch", "--list", "ralph/*"]));
    assert!(branches.stdout.contains("ralph/"), "{}", branches.stdout);
}

#[test]
fn setup_runs_once_in_each_fresh_workspace_before_the_first_session() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("PROMPT.md", "# Do it\n"), (".gitignore", "deps/\n")]);
    let log = env.path("setups");
    // The agent needs what the setup installs.
    let agent = "cat > /dev/null\n[ -f deps/installed ] || exit 9\necho $RALPH_ITERATION >> part.txt\n[ $RALPH_ITERATION -lt 2 ] || echo '<promise>COMPLETE</promise>'";
    let setup = format!("mkdir -p deps; touch deps/installed; pwd >> {}", log.display());
    repo.configure(
        &[repo.agent("stub", agent)],
        "test -f deps/installed",
        &json!({"setup_commands": [setup]}),
    );
    let here = repo.dir.display().to_string();
    for place in [&["--worktree"][..], &["--clone", &here]] {
        let _ = std::fs::remove_file(&log);
        let done = repo.run(place).exits(0).json();
        let text = std::fs::read_to_string(&log).unwrap();
        let workspace = done["workspace"].as_str().unwrap();
        let times = text.lines().filter(|line| *line == workspace).count();
        assert_eq!(times, 1, "{place:?}: {text}");
        let before: Vec<&str> = text.lines().take_while(|line| *line != workspace).collect();
        assert_eq!(before.len(), 1, "the initial checks get a separate folder: {text}");
    }
    // Setup never runs in the user's own folder.
    let _ = std::fs::remove_file(&log);
    std::fs::create_dir(repo.dir.join("deps")).unwrap();
    std::fs::write(repo.dir.join("deps/installed"), "").unwrap();
    repo.run(&[]).exits(0);
    assert!(!std::fs::read_to_string(&log).unwrap().lines().any(|line| line == here));
}

#[test]
fn failed_setup_is_reported_and_retried_by_resume() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = "cat > /dev/null\necho x > part.txt\necho '<promise>COMPLETE</promise>'";
    let ready = env.path("ready");
    let setup = format!("test -f {} || {{ echo no registry here; exit 7; }}", ready.display());
    repo.configure(&[repo.agent("stub", agent)], "test -f part.txt", &json!({"setup_commands": [setup]}));
    let failed = repo.run(&["--worktree"]).exits(4);
    for part in ["the setup `test -f", "no registry here", "setup/setup-1.log", "ralph resume"] {
        assert!(failed.stderr.contains(part), "{part}: {}", failed.stderr);
    }
    assert!(!repo.kinds().contains(&"iteration_started".to_owned()), "no session ran");
    std::fs::write(ready, "").unwrap();
    repo.ralph(&["resume"]).exits(0);
}

#[test]
fn initial_check_results_are_shown() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = "cat > /dev/null\necho x > part.txt\necho '<promise>COMPLETE</promise>'";
    repo.configure(
        &[repo.agent("stub", agent)],
        "test -f part.txt || { echo 'error: unrecognized arguments: --nope' >&2; exit 4; }",
        &json!({"baseline": true}),
    );
    let done = repo.ralph(&["run", "--isolation", "none", "-v"]).exits(0);
    let told = done
        .stderr
        .find("before any work tests fails (exit code 4); if that is not how the result is checked")
        .unwrap();
    assert_eq!(
        done.stderr.matches("\n      error: unrecognized arguments: --nope").count(),
        1,
        "{}",
        done.stderr
    );
    assert!(told < done.stderr.find("iteration 1").unwrap(), "{}", done.stderr);
    assert!(done.stderr.contains("`--verify CMD` names another command"), "{}", done.stderr);
    // If all checks already pass, `ralph` says so by default.
    let done = repo.ralph(&["run", "--isolation", "none", "--new"]);
    assert!(
        done.stderr.contains("warning: every check passes already, before any work (tests)"),
        "{}",
        done.stderr
    );
}

#[test]
fn doctor_knows_every_dialect_and_lists_everything_missing() {
    let env = TestEnv::new(RALPH);
    let plan = json!({"project": "p", "branchName": "ralph/p", "description": "d", "verifyCommands": ["true"],
        "userStories": [{"id": "US-1", "title": "t", "acceptanceCriteria": ["c"], "priority": 1, "passes": false}]});
    let task_md = "---\ntask_id: t-1\ntest_command: 'true'\nmax_iterations: 3\nmax_wall_time_minutes: 5\nmax_cost_usd_estimate: 1\n---\n# Task: A file\n\n## Success criteria\n- [ ] M1.1 it is there\n  - verify: `test -f a`\n- [ ] M1.2 tests pass\n  - verify: `true`\n";
    let json_task = json!({"task": "Make a", "acceptance_criteria": [{"type": "file_exists", "path": "a"}]});
    for (name, text, title) in [
        ("PROMPT.md", "# Do it\n", "Do it"),
        ("ralph_task.md", task_md, "A file"),
        ("ralph.json", &*json_task.to_string(), "Make a"),
        ("ralph/tasks.json", &*plan.to_string(), "p"),
    ] {
        let repo = TestRepo::new(&env, &name.replace(['/', '.'], "-"), &[(name, text)]);
        let checks = repo.ralph(&["doctor", "--json"]).json();
        let task = checks["checks"].as_array().unwrap().iter().find(|check| check["name"] == "task").unwrap();
        assert_eq!(task["status"], "ok", "{name}: {task}");
        assert!(task["message"].as_str().unwrap().contains(title), "{task}");
        let missing = |what: &str| {
            checks["checks"].as_array().unwrap().iter().any(|c| c["name"] == what && c["status"] == "missing")
        };
        assert_eq!(missing("verifier"), name == "PROMPT.md", "{name}: the task's own checks count");
    }
    let all = json!({"task": "Make a", "acceptance_criteria": [{"type": "file_exists", "path": "a"}],
        "git": {"create_pr": true}});
    let repo = TestRepo::new(&env, "all", &[("ralph.json", &all.to_string())]);
    repo.config(&json!({"agents": [{"name": "one", "command_argv": ["no-such-agent"]},
        {"name": "two", "kind": "actions", "profile": "default-cheap"}], "agent_priority": ["one", "two", "ghost", "spook"],
        "publish": "pr", "sandbox": {"provider": "daytona"},
        "verifiers": [{"name": "tests", "command_argv": ["no-such-check"]}]}));
    env.user_config(&json!({"sandbox": {"provider": "daytona"}, "publish": "pr"}));
    let done = ralph_in(&env, &repo.dir, &["doctor", "--json"]).exits(4);
    let checks = done.json();
    let missing: Vec<String> = checks["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["status"] == "missing")
        .map(|check| format!("{}: {}", check["name"].as_str().unwrap(), check["message"].as_str().unwrap()))
        .collect();
    for what in [
        "no-such-agent",
        "ZAI_API_KEY",
        "`ghost`",
        "`spook`",
        "code host",
        "no-such-check",
        "DAYTONA_API_KEY",
    ] {
        assert!(missing.iter().any(|line| line.contains(what)), "{what}: {missing:#?}");
    }
}

#[test]
fn probe_is_sandboxed_and_shows_a_hanging_agents_question() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let secret = env.path("home/private.txt");
    std::fs::write(&secret, "mine").unwrap();
    let script = format!(
        "cat > /dev/null\n[ ! -e {} ] || echo 'sees your home'\necho 'Open https://login.example.org/device?code=ABCD' >&2\nprintf 'Paste the code: '\nsleep 300",
        secret.display()
    );
    program(&env, "claude", &script);
    let mut command = env.ralph_command(&repo.dir, &["probe", "--agent", "claude", "--timeout", "5"]);
    command.env("PATH", path(&env)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = TestEnv::finish(&mut command).exits(4);
    if done.stderr.contains("cannot sandbox") {
        return ralph_loop_testkit::skip("no sandbox here");
    }
    assert!(
        done.stderr.contains("claude says: Open https://login.example.org/device?code=ABCD"),
        "{}",
        done.stderr
    );
    assert!(!done.stdout.contains("sees your home") && !done.stderr.contains("sees your home"), "{done:?}");
    assert!(
        done.stdout.contains("it printed:") && done.stdout.contains("Paste the code:"),
        "{}",
        done.stdout
    );
    let words: String = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("it waits for a login") && words.contains("leaves it out"), "{words}");
}

#[test]
fn user_agent_settings_reach_the_sandbox_only_if_shared() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let home = env.path("home");
    std::fs::create_dir_all(home.join(".claude/skills/review")).unwrap();
    std::fs::write(home.join(".claude/CLAUDE.md"), "be brief").unwrap();
    std::fs::write(home.join(".claude/skills/review/SKILL.md"), "look").unwrap();
    std::fs::write(home.join(".claude.json"), "{\"mcpServers\":{\"docs\":{}},\"theme\":\"dark\"}").unwrap();
    let says = claude_says("Done.");
    let look = "cat > /dev/null\n{ cat ~/.claude/CLAUDE.md; cat ~/.claude/skills/review/SKILL.md; grep -o docs ~/.claude.json; grep -o dark ~/.claude.json; } > seen.txt 2>/dev/null\necho x > part.txt";
    program(&env, "claude", &format!("{look}\n{says}"));
    repo.config(&json!({"verifiers": [{"name": "tests", "command_argv": ["test", "-f", "part.txt"]}]}));
    let run = |more: &[&str]| {
        let _ = std::fs::remove_file(repo.dir.join("part.txt"));
        let _ = std::fs::remove_file(repo.dir.join("seen.txt"));
        ralph_in(&env, &repo.dir, &[&["run", "--new"][..], more].concat())
    };
    let done = run(&[]);
    if done.code == Some(4) {
        return ralph_loop_testkit::skip("no sandbox here");
    }
    done.exits(0);
    assert_eq!(repo.read("seen.txt"), "dark\n");
    run(&["--share", "instructions,mcp"]).exits(0);
    assert_eq!(repo.read("seen.txt"), "be briefdocs\ndark\n");
    env.user_config(&json!({"share": ["skills"]}));
    run(&[]).exits(0);
    assert_eq!(repo.read("seen.txt"), "lookdark\n");
    let refused = run(&["--share", "everything"]).exits(2);
    assert!(refused.stderr.contains("instructions, skills or mcp"), "{}", refused.stderr);
    repo.config(&json!({"share": ["mcp"]}));
    let refused = run(&[]).exits(2);
    assert!(refused.stderr.contains("in your own config"), "{}", refused.stderr);
}

#[test]
fn several_tasks_in_clones_leave_git_status_clean() {
    let env = TestEnv::new(RALPH);
    let task = |name: &str| {
        json!({"task": format!("Make {name}"), "acceptance_criteria": [{"type": "file_exists", "path": name}]}).to_string()
    };
    let files = [("one.json", &*task("one.txt")), ("two.json", &*task("two.txt"))];
    let repo = TestRepo::new(&env, "repo", &files);
    repo.stub("cat > /dev/null; touch one.txt two.txt; echo '- step' >> .ralph/progress.md; echo '<promise>COMPLETE</promise>'", "true");
    let all = repo.run(&["one.json", "two.json"]).exits(0).json();
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    for run in all["runs"].as_array().unwrap() {
        let workspace = std::path::PathBuf::from(run["result"]["workspace"].as_str().unwrap());
        let git = |args: &[&str]| TestEnv::finish(env.command("git", &workspace).args(args)).exits(0).stdout;
        assert!(!git(&["ls-tree", "-r", "--name-only", "HEAD"]).contains(".ralph"));
        assert!(!git(&["status", "--porcelain"]).contains(".ralph"));
    }
}

#[test]
fn init_over_another_file_type_is_refused_with_the_reason() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let refused = repo.ralph(&["init", "--task"]).exits(2);
    assert!(
        refused.stderr.contains("a task in another format already exists: `PROMPT.md`"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("pass `--force` to add `ralph_task.md`"), "{}", refused.stderr);
    assert!(!repo.dir.join(".ralph").exists() && !repo.dir.join("ralph_task.md").exists());
    std::fs::create_dir(repo.dir.join("ralph.json")).unwrap();
    let refused = repo.ralph(&["init", "--json-task", "--force"]).exits(2);
    assert!(refused.stderr.contains("`ralph.json` is a folder"), "{}", refused.stderr);
    repo.write("ralph", "a file\n");
    let refused = repo.ralph(&["init", "--plan", "--force"]).exits(2);
    assert!(refused.stderr.contains("`ralph` is not a folder"), "{}", refused.stderr);
    repo.ralph(&["init", "--task", "--force"]).exits(0);
    assert!(repo.dir.join("ralph_task.md").is_file());
}
