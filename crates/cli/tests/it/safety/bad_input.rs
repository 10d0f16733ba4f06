//! Bad input and broken environments: a clear message with file, line and fix; nothing lost, nothing created, no panic.

use crate::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

const WORKER: &str = "echo work > part.txt\necho '<promise>COMPLETE</promise>'";
const CHECK: &str = "grep -q work part.txt";

fn ready_repo(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    repo.stub(WORKER, CHECK);
    repo
}

/// Asserts that the run is refused with this code, a message with all of `parts` and a next step, and leaves nothing behind.
#[track_caller]
fn assert_refused(repo: &TestRepo<'_>, args: &[&str], code: i32, parts: &[&str]) -> Finished {
    let done = repo.run(args).exits(code);
    assert_message(&done, parts);
    let result = done.json();
    assert_eq!((&result["success"], &result["reason"]), (&json!(false), &json!("error")), "{result}");
    assert!(result["error"]["hint"].is_string(), "{result}");
    assert!(!repo.dir.join(".ralph/runs").exists(), "a run was made");
    assert!(!repo.dir.join("part.txt").exists(), "the agent worked");
    done
}

#[track_caller]
fn assert_message(done: &Finished, parts: &[&str]) {
    for part in parts.iter().chain(&["error:", "next:"]) {
        assert!(done.stderr.contains(part), "`{part}` is missing in:\n{}", done.stderr);
    }
    assert!(!done.stderr.contains("panicked") && !done.stderr.contains("RUST_BACKTRACE"), "{}", done.stderr);
}

#[test]
fn unreadable_task_is_named() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    let task = repo.dir.join("PROMPT.md");
    let shown = task.display().to_string();
    for text in ["", " \n\t\r\n ", "\u{feff}\n"] {
        repo.write("PROMPT.md", text);
        assert_refused(&repo, &[], 2, &["PROMPT.md", "is empty"]);
    }
    std::fs::write(&task, b"# Task\nline two\n\xff\xfe binary \x00").unwrap();
    assert_refused(&repo, &[], 2, &[&format!("{shown}:3"), "not UTF-8"]);
    std::fs::remove_file(&task).unwrap();
    assert_refused(&repo, &[], 2, &[&shown, "ralph run -p"]);
    std::fs::create_dir(&task).unwrap();
    assert_refused(&repo, &[], 2, &[&shown]);
}

#[test]
fn invalid_config_is_reported_with_line_and_likely_fix() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    let file = repo.dir.join(".ralph/config.json").display().to_string();
    let cases: &[(&str, &str, &[&str])] = &[
        ("{\n  \"max_iterations\": 3,\n  oops\n}", ":3:", &["fix the JSON"]),
        ("{\n  \"max_iterations\": 3", ":2:", &["ends too early"]),
        (
            "{\n  \"max_iteration\": 3\n}",
            ":2:",
            &["unknown field `max_iteration`", "did you mean `max_iterations`?"],
        ),
        (
            "{\n\n  \"agents\": [{\"name\": \"x\", \"comand_argv\": [\"x\"]}]\n}",
            ":3:",
            &["comand_argv", "command_argv"],
        ),
        ("{\n  \"max_iterations\": \"three\"\n}", ":2:", &["invalid type"]),
        ("{\n  \"max_iterations\": 0\n}", ":2:", &["at least 1"]),
        ("{\n  \"max_iterations\": -1\n}", ":2:", &["-1"]),
        // FAULT (open, `domain/src/config/`): with a line end after the number the message names the line after it.
        ("{\n  \"max_cost_usd_estimate\": -3}", ":2:", &["at least 0"]),
        ("{\n  \"max_wall_time_minutes\": 0\n}", ":2:", &["more than 0"]),
        ("{\n  \"completion\": \"never\"\n}", ":2:", &["never"]),
        ("{\n  \"completion_promise\": \"<x>\"\n}", ":2:", &["completion_promise"]),
        ("{\n  \"deadline\": \"tomorrow\"\n}", ":2:", &["failed to parse"]),
        ("{\n  \"version\": 9\n}", ":2:", &["version"]),
        ("{\n  \"agents\": [{\"name\": \"../x\", \"command_argv\": [\"x\"]}]\n}", ":2:", &["../x"]),
        ("{\n  \"agents\": [{\"name\": \"x\", \"command_argv\": []}]\n}", ":2:", &["command_argv"]),
        (
            "{\n  \"agents\": [{\"name\": \"x\", \"command_argv\": [\"x\"]}, {\"name\": \"x\", \"command_argv\": [\"x\"]}]\n}",
            ":2:",
            &["two agents"],
        ),
        ("[]", ":1:", &[]),
        ("", ":1:", &["the file is empty", "ralph init"]),
    ];
    for (text, line, parts) in cases {
        repo.write(".ralph/config.json", text);
        let done = assert_refused(&repo, &[], 2, &[parts, &[format!("{file}{line}").as_str()][..]].concat());
        assert_eq!(done.json()["error"]["code"], "INVALID_INPUT");
    }
    std::fs::write(&file, b"{\"max_iterations\": \xff}").unwrap();
    assert_refused(&repo, &[], 2, &[&file, "UTF-8"]);
}

#[test]
fn missing_commands_are_found_before_any_cost() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    let agent = |argv: &str| json!({"name": "ghost", "command_argv": [argv]});
    for program in ["no-such-agent-4711", "./no/such/agent", "/no/such/agent"] {
        repo.configure(&[agent(program)], CHECK, &json!({}));
        assert_refused(&repo, &[], 4, &[program, "ghost"]);
    }
    let verifier = |argv: &str| json!({"verifiers": [{"name": "tests", "command_argv": [argv]}]});
    repo.write("tools/check.txt", "not for running");
    for program in ["no-such-check-4711", "./no/such/check", "./tools/check.txt"] {
        repo.configure(&[repo.agent("stub", WORKER)], "", &verifier(program));
        assert_refused(&repo, &[], 2, &[program, "tests"]);
    }
    // A folder or a file that can't be executed isn't a command either.
    for program in ["./tools", "./tools/check.txt"] {
        repo.configure(&[agent(program)], CHECK, &json!({}));
        assert_refused(&repo, &[], 4, &[program]);
    }
}

#[test]
fn run_needs_a_check_and_a_known_agent() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    assert_refused(&repo, &["--agents", "stub,absent"], 2, &["absent", "stub"]);
    assert_refused(&repo, &["--max-iterations", "0"], 2, &["--max-iterations"]);
    repo.configure(&[repo.agent("stub", WORKER)], "", &json!({"verifiers": []}));
    assert_refused(&repo, &[], 2, &["nothing checks the result", "--verify"]);
    repo.configure(&[repo.agent("stub", WORKER)], "true", &json!({"required_verifiers": []}));
    assert_refused(&repo, &[], 2, &["nothing checks the result"]);
    repo.configure(&[repo.agent("stub", WORKER)], "true", &json!({"required_verifiers": ["lint"]}));
    assert_refused(&repo, &[], 2, &["lint"]);
    repo.write(".ralph/agent.json", "{\n  \"version\": 1,\n  \"turnes\": []\n}");
    repo.configure(
        &[json!({"name": "actor", "kind": "scripted", "script": ".ralph/agent.json"})],
        "true",
        &json!({}),
    );
    assert_refused(&repo, &[], 2, &["agent.json:3"]);
    repo.configure(
        &[json!({"name": "actor", "kind": "scripted", "script": "missing.json"})],
        "true",
        &json!({}),
    );
    assert_refused(&repo, &[], 2, &["missing.json"]);
}

#[test]
fn usage_errors_exit_2() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    for args in [
        &["run", "--nonsense"][..],
        &["fly"],
        &["run", "--isolation", "maybe"],
        &["run", "--max-iterations", "x"],
        &["run", "--worktree", "--clone", "x"],
        &["-C", "/no/such/folder", "status"],
    ] {
        let done = repo.ralph(args).exits(2);
        assert!(!done.stderr.is_empty() && !done.stderr.contains("panicked"), "{args:?}: {}", done.stderr);
    }
    // With `--json`, the error is JSON, too.
    let told = repo.ralph(&["--json", "run", "--nonsense"]).exits(2).json();
    assert_eq!(
        (&told["success"], &told["error"]["code"]),
        (&json!(false), &json!("INVALID_INPUT")),
        "{told}"
    );
}

#[test]
fn folders_outside_a_repo_are_explained() {
    let env = TestEnv::new(RALPH);
    let folder = env.path("plain");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("PROMPT.md"), "# Task\n").unwrap();
    let run = ["run", "--isolation", "none", "--verify", "true", "--json"];
    let none = env.ralph(&folder, &run).exits(2);
    assert_message(&none, &["plain", "git init"]);
    assert!(!folder.join(".ralph").exists());

    let bare = env.path("bare");
    TestEnv::finish(env.command("git", &folder).args(["init", "-q", "--bare"]).arg(&bare)).exits(0);
    std::fs::write(bare.join("PROMPT.md"), "# Task\n").unwrap();
    let done = env.ralph(&bare, &run).exits(2);
    assert_message(&done, &["bare"]);

    let empty = TestRepo::new(&env, "empty", &[]);
    std::fs::remove_dir_all(empty.dir.join(".git")).unwrap();
    empty.git(&["init", "-q", "-b", "main"]);
    empty.write("PROMPT.md", "# Task\n");
    empty.stub(WORKER, CHECK);
    let done = empty.run(&[]).exits(2);
    assert_message(&done, &["commit"]);
    assert!(!empty.dir.join(".ralph/runs").exists());
}

#[test]
fn detached_head_works_in_place_but_not_with_a_branch() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    repo.git(&["checkout", "-q", "--detach"]);
    repo.configure(&[repo.agent("stub", WORKER)], CHECK, &json!({"checkpoint_commits": true}));
    assert_refused(&repo, &[], 2, &["HEAD is detached", "--branch"]);
    repo.stub(WORKER, CHECK);
    let run = repo.run(&[]).exits(0).json();
    assert!(run["ref"].as_str().unwrap().starts_with("refs/ralph/"), "{run}");
    assert!(repo.read(".ralph/changelog/global.md").contains("detached HEAD"));
}

#[test]
fn isolation_none_counts_only_from_the_user() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    // The sandbox of a run: a machine without one refuses the run instead of running it unsandboxed.
    let isolation = |args: &[&str]| {
        let _ = std::fs::remove_file(repo.dir.join("part.txt"));
        let done = repo.ralph(&[&["run", "--json"], args].concat());
        if done.code == Some(4) {
            assert_message(&done, &["cannot sandbox", "--isolation none"]);
            return "refused".to_owned();
        }
        done.exits(0);
        let spec: serde_json::Value = serde_json::from_str(&repo.run_file("spec.json")).unwrap();
        spec["settings"]["isolation"].as_str().unwrap().to_owned()
    };
    assert_ne!(isolation(&[]), "none");
    repo.configure(&[repo.agent("stub", WORKER)], CHECK, &json!({"isolation": "none"}));
    for args in [&[][..], &["--isolation", "auto"], &["--sandbox"]] {
        assert_ne!(isolation(args), "none", "{args:?}");
    }
    std::fs::create_dir_all(env.path("config/ralph")).unwrap();
    std::fs::write(env.path("config/ralph/config.json"), "{\"isolation\": \"none\"}").unwrap();
    assert_eq!(isolation(&[]), "none");
    assert_ne!(isolation(&["--sandbox"]), "none");
    std::fs::remove_file(env.path("config/ralph/config.json")).unwrap();
    assert_eq!(isolation(&["--no-sandbox"]), "none");
}

#[test]
fn config_layers_are_user_then_repo_then_flags() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    std::fs::create_dir_all(env.path("config/ralph")).unwrap();
    std::fs::write(
        env.path("config/ralph/config.json"),
        "{\"isolation\": \"none\", \"max_iterations\": 2, \"max_tokens_total\": 77}",
    )
    .unwrap();
    let budgets = |args: &[&str]| {
        repo.run(args).exits(1);
        serde_json::from_str::<serde_json::Value>(&repo.run_file("spec.json")).unwrap()["settings"]["budgets"]
            .clone()
    };
    repo.configure(&[repo.agent("stub", "echo ok")], "false", &json!({"max_iterations": 1}));
    let seen = budgets(&[]);
    assert_eq!((&seen["max_iterations"], &seen["max_tokens"]), (&json!(1), &json!(77)));
    assert_eq!(budgets(&["--max-iterations", "2", "--max-tokens", "88"])["max_tokens"], 88);
    std::fs::write(env.path("config/ralph/config.json"), "{\n\"max_iteration\": 2}").unwrap();
    assert_message(&repo.run(&[]).exits(2), &["config/ralph/config.json:2", "max_iterations"]);
}

#[test]
fn read_only_folders_are_named() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    // As root every folder can be written; a file where a folder must be cannot.
    repo.write(".ralph/runs", "in the way");
    // This folder only has a copy; the record is elsewhere.
    repo.run(&[]).exits(0);
    assert_eq!(repo.read(".ralph/runs"), "in the way");
    std::fs::remove_dir_all(repo.dir.join(".ralph")).unwrap();
    repo.write(".ralph", "in the way");
    let done = repo.run(&["--verify", "true"]).exits(2);
    assert_message(&done, &[".ralph"]);
    std::fs::remove_file(repo.dir.join(".ralph")).unwrap();
    repo.stub(WORKER, CHECK);
    std::fs::remove_dir_all(env.path("state")).unwrap();
    std::fs::write(env.path("state"), "in the way").unwrap();
    assert_message(&repo.run(&[]).exits(4), &["state"]);
}

#[test]
fn a_full_disk_stops_the_run_and_loses_nothing() {
    let env = TestEnv::new(RALPH);
    let small = env.path("small");
    std::fs::create_dir(&small).unwrap();
    let mount = TestEnv::finish(
        env.command("mount", &small).args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&small),
    );
    if mount.code != Some(0) {
        return ralph_loop_testkit::skip(&format!(
            "a full disk needs a small tmpfs, and it cannot be mounted here: {}",
            mount.stderr.trim()
        ));
    }
    let _unmount = Unmount(&env, &small);
    let repo = TestRepo::new(&env, "small/repo", &[("PROMPT.md", "# Task\n")]);
    let full = "[ $RALPH_ITERATION = 2 ] && [ ! -e ../freed ] && cat /dev/zero > ../ballast 2>/dev/null";
    repo.stub(&format!("echo \"$RALPH_ITERATION work\" > part.txt\n{full}\necho ok; [ $RALPH_ITERATION -lt 3 ] || echo '<promise>COMPLETE</promise>'"), CHECK);
    let done = repo.run(&[]);
    assert!(done.code == Some(4), "{done:?}");
    assert!(
        !done.stderr.contains("panicked")
            && done.stderr.to_lowercase().contains("space")
            && done.stderr.contains("next:"),
        "{}",
        done.stderr
    );
    std::fs::remove_file(small.join("ballast")).unwrap();
    std::fs::write(small.join("freed"), "").unwrap();
    let run = repo.ralph(&["resume", "--json"]).exits(0).json();
    assert_eq!(run["success"], true);
    let seqs: Vec<u64> = repo.events().iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

struct Unmount<'a>(&'a TestEnv, &'a std::path::Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        TestEnv::finish(self.0.command("umount", std::path::Path::new("/")).arg("-l").arg(self.1));
    }
}

#[test]
fn binary_output_is_harmless() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let noise = "head -c 100000 /dev/urandom; printf '\\377\\376\\000\\033[31m\\n'";
    repo.stub(&format!("{noise}; {noise} >&2; head -c 3000 /dev/urandom > blob.bin; echo x > part.txt\necho; echo '<promise>COMPLETE</promise>'"), noise);
    repo.run(&[]).exits(0);
    for name in ["iterations/1/receipt.json", "iterations/1/response.json", "proof.json"] {
        serde_json::from_str::<serde_json::Value>(&repo.run_file(name)).unwrap();
    }
    assert!(
        repo.git(&["ls-tree", "-r", "--name-only", &format!("refs/ralph/{}/work", repo.latest())])
            .contains("blob.bin")
    );
}

#[test]
fn flooded_output_stays_bounded() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let flood = "yes 'a line of no interest whatsoever' | head -c 200000000";
    repo.stub(&format!("{flood}; echo x > part.txt; echo; echo '<promise>COMPLETE</promise>'"), "true");
    repo.run(&[]).exits(0);
    let size =
        |name: &str| std::fs::metadata(repo.dir.join(format!(".ralph/iterations/1/{name}"))).unwrap().len();
    assert!(size("output.log") < 20_000_000, "{}", size("output.log"));
    assert!(size("response.json") < 1_000_000, "{}", size("response.json"));
    assert!(std::fs::metadata(repo.dir.join(".ralph/state.json")).unwrap().len() < 1_000_000);
}

#[test]
fn crlf_and_names_with_spaces_and_umlauts_work() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(
        &env,
        "ein Ordner mit Ümläuten ✓",
        &[("PROMPT.md", "# Aufgabe\r\n\r\nTu es.\r\n"), ("ä ö/ü'\"$x.txt", "alt\n")],
    );
    let agent = repo.agent("stub", "echo neu > \"ä ö/ü'\\\"\\$x.txt\"; printf 'work\\n' > 'neue Datei.txt'; printf 'fertig\\r\\n<promise>COMPLETE</promise>\\r\\n'");
    let config = serde_json::to_string_pretty(&json!({"agents": [agent], "verifiers": [{"name": "tests", "command_argv": ["test", "-f", "neue Datei.txt"]}]})).unwrap();
    repo.write(".ralph/config.json", &format!("\u{feff}{}", config.replace('\n', "\r\n")));
    let run = repo.run(&["--branch", "größe/ü"]).exits(0).json();
    assert_eq!(run["files_changed"], json!(["neue Datei.txt", "ä ö/ü'\"$x.txt"]));
    assert!(!repo.run_file("iterations/1/prompt.md").contains('\r'));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let run = repo.run(&["--worktree", "--branch", "zweiter Versuch"]);
    assert_message(&run.exits(2), &["`zweiter Versuch` is not a valid branch name"]);
}

#[test]
fn run_started_in_a_subfolder_works_on_the_whole_repo() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    repo.write("sub/dir/PROMPT.md", "# Task of the subfolder\n");
    let run = env.ralph(&repo.dir.join("sub/dir"), &["run", "--isolation", "none", "--json"]).exits(0).json();
    assert_eq!(repo.latest(), run["run_id"].as_str().unwrap(), "it is shown at the top of the repo");
    assert!(!repo.dir.join("sub/dir/.ralph").exists());
    assert!(repo.run_file("iterations/1/prompt.md").contains("Task of the subfolder"));
}

#[test]
fn without_home_ralph_says_what_it_needs() {
    let env = TestEnv::new(RALPH);
    let repo = ready_repo(&env);
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none"]);
    command.env_remove("HOME").env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    assert_message(&TestEnv::finish(&mut command).exits(4), &["HOME"]);
    assert!(!repo.dir.join(".ralph/runs").exists());
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none"]);
    command.env_remove("HOME").env_remove("USER");
    TestEnv::finish(&mut command).exits(0);
}

#[test]
fn agent_that_fails_to_start_fails_its_session_not_the_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let script = repo.agent("stub", "rm \"$0\"; echo x > part.txt; echo ok");
    repo.configure(&[script], "false", &json!({"max_iterations": 2}));
    let done = repo.run(&[]).exits(4);
    assert!(done.json()["summary"].as_str().unwrap().starts_with("cannot start"), "{}", done.stderr);
    let path = env.path("odd.sh");
    std::fs::write(&path, "no interpreter line\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.configure(&[json!({"name": "odd", "command_argv": [path]})], "false", &json!({"max_iterations": 1}));
    let done = repo.run(&["--new"]).exits(4);
    assert!(done.json()["summary"].as_str().unwrap().starts_with("cannot start"), "{done:?}");
}
