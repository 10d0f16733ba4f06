//! Steering runs from the dashboard.

use super::machine::{Served, detached, machine, waiting_script};
use ralph_loop_testkit::TestRepo;
use ralph_loop_testkit::env::until;
use serde_json::json;

#[test]
fn dashboard_pauses_resumes_notes_and_stops_a_run() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    // Two sessions: it is paused between them.
    let script = waiting_script(&repo).replace("> part.txt", ">> part.txt");
    let script = script.replace("; echo '<promise>", "; [ \"$RALPH_ITERATION\" -lt 2 ] || echo '<promise>");
    repo.stub(&script, "test $(wc -l < part.txt) -ge 2");
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    server.row_when(&run, "the run at work", |row| row["status"] == "working");
    let said = server.control(&run, json!({ "kind": "note", "text": "The port is 8080." })).is(202).json();
    assert_eq!(said["outcome"], "received", "{said}");
    assert!(said["letter"].as_str().is_some());
    server.control(&run, json!({ "kind": "nudge", "text": "x" })).is(403);
    server.control(&run, json!({ "kind": "fly" })).is(400);
    server.control(&run, json!({ "kind": "skip", "agent": "unknown" })).is(422);
    server.control(&run, json!({ "kind": "pause" })).is(202);
    repo.write(".git/go", "");
    server.row_when(&run, "the pause", |row| row["status"] == "paused");
    server.control(&run, json!({ "kind": "resume" })).is(202);
    server.row_when(&run, "the end", |row| row["status"] == "done");
    let notes = server.get(&format!("/runs/{run}/guardrails")).is(200).json();
    assert!(notes["notes"].as_str().unwrap().contains("8080"), "{notes}");
}

#[test]
fn dead_run_is_resumed_or_ended_from_the_dashboard() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    let kill = || {
        let status = repo.ralph(&["status", &run, "--json"]).exits(0).json();
        let pid = nix::unistd::Pid::from_raw(i32::try_from(status["pid"].as_i64().unwrap()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        server.row_when(&run, "a run without a driver", |row| {
            row["driven"] == false && row["status"] == "interrupted"
        });
    };
    kill();
    let resumed = server.control(&run, json!({ "kind": "resume" })).is(202).json();
    assert_eq!(resumed["outcome"], "started", "{resumed}");
    server.row_when(&run, "the run at work again", |row| row["status"] == "working");
    kill();
    let ended = server.control(&run, json!({ "kind": "cancel" })).is(202).json();
    assert_eq!(ended["outcome"], "ended", "{ended}");
    server.row_when(&run, "the end", |row| row["status"] == "stopped");
}

#[test]
fn run_modes_limit_controls() {
    let env = machine();
    let repo = TestRepo::new(
        &env,
        "repo",
        &[("PROMPT.md", "# Do the work\n\nWrite `part.txt`.\n"), ("Makefile", "lint:\n\t@echo linted\n")],
    );
    repo.stub(&waiting_script(&repo), "echo checked; grep -q work part.txt");
    let checks = ["--verify", "echo checked; grep -q work part.txt", "--verify", "make lint"];
    let debug = detached(&repo, &[&["--mode", "debug", "--worktree"], &checks[..]].concat());
    let plain = detached(&repo, &["--worktree", "--new"]);
    let server = Served::start(&env, &repo.dir, &[]);
    server.row_when(&debug, "the run at work", |row| row["status"] == "working" && row["mode"] == "debug");
    server.control(&debug, json!({ "kind": "nudge", "text": "Look at the drain." })).is(202);
    let run =
        |id: &str, command: &str| server.post(&format!("/runs/{id}/debug"), &json!({ "command": command }));
    run(&plain, "rerun_tests").is(403);
    run(&debug, "sh -c id").is(422);
    let tests = run(&debug, "rerun_tests").is(200).json();
    assert!(tests["results"][0]["output"].as_str().unwrap().contains("checked"), "{tests}");
    assert!(tests["results"][0]["exit_code"].as_i64().is_some_and(|code| code != 0), "{tests}");
    let lint = run(&debug, "lint").is(200).json();
    assert!(lint["results"][0]["output"].as_str().unwrap().contains("linted"), "{lint}");
    assert_eq!(lint["results"][0]["command"], "make lint");
    run(&debug, "typecheck").is(422);
    let logs = run(&debug, "logs").is(200).json();
    assert_eq!(logs["results"][0]["command"], "activity.log", "{logs}");
    let config = repo.ralph(&["run", "--mode", "free"]).exits(2);
    assert!(config.stderr.contains("autonomous"), "{}", config.stderr);
    for id in [&debug, &plain] {
        repo.ralph(&["cancel", id]).exits(0);
    }
}

#[test]
fn doctor_advice_is_applied_from_the_dashboard() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("echo again >> part.txt; echo '<promise>COMPLETE</promise>'", "false");
    let run = repo.run(&["--max-iterations", "2"]).exits(1).json()["run_id"].as_str().unwrap().to_owned();
    let server = Served::start(&env, &repo.dir, &[]);
    server.control(&run, json!({ "kind": "apply" })).is(409);
    server.control(&run, json!({ "kind": "diagnose" })).is(202);
    let report = until("the report", || {
        let found = server.get(&format!("/runs/{run}/diagnosis")).is(200).json();
        found["report"].is_object().then_some(found)
    });
    assert!(report["markdown"].as_str().is_some_and(|text| !text.is_empty()), "{report}");
    until("the doctor has gone", || {
        let status = repo.ralph(&["status", &run, "--json"]).exits(0).json();
        status["pid"].is_null().then_some(())
    });
    let more = server.control(&run, json!({ "kind": "budget", "max_iterations": 3 })).is(202).json();
    assert_eq!(more["outcome"], "started", "{more}");
    server.row_when(&run, "one more iteration", |row| row["iteration"] == 3 && row["status"] == "failed");
}

#[test]
fn result_is_applied_from_the_dashboard() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    env.user_config(&json!({ "local_forge": env.path("forge") }));
    env.server_config(&json!({ "local_forge": env.path("forge") }));
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let run = repo.run(&["--worktree"]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    let server = Served::start(&env, &repo.dir, &[]);
    let path = format!("/runs/{run}/result");

    let result = server.get(&path).is(200).json();
    assert_eq!(result["files"][0]["path"], "part.txt", "{result}");
    let ways = |result: &serde_json::Value| {
        let ways = result["ways"].as_array().unwrap().clone();
        ways.iter().map(|way| (way["kind"].clone(), way["possible"].clone())).collect::<Vec<_>>()
    };
    let kinds = [("apply", true), ("branch", true), ("push", false), ("pr", true)];
    assert_eq!(ways(&result), kinds.map(|(kind, possible)| (json!(kind), json!(possible))), "{result}");
    assert!(result["pr_draft"]["body"].as_str().unwrap().starts_with("**Proven, independent.**"));

    repo.write("part.txt", "mine\n");
    assert_eq!(server.get(&path).is(200).json()["ways"][0]["conflicts"], json!(["part.txt"]));
    server.post(&path, &json!({ "kind": "apply" })).is(409);
    assert_eq!(repo.read("part.txt"), "mine\n");
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    let taken = server.post(&path, &json!({ "kind": "apply" })).is(200).json();
    assert_eq!((&taken["outcome"], repo.read("part.txt").as_str()), (&json!("applied"), "work\n"));
    assert_eq!(server.post(&path, &json!({ "kind": "apply" })).is(200).json()["outcome"], "already_there");

    let started = server.post(&path, &json!({ "kind": "pr", "title": "Add the part" })).is(202).json();
    assert_eq!(started["outcome"], "started");
    until("the pull request", || server.get(&path).is(200).json()["pr_url"].as_str().map(str::to_owned));
    server.row_when(&run, "the end", |row| row["status"] == "done");
}
