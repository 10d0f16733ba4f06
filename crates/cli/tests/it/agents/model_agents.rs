//! Agents whose model the engine calls itself, through the real binary against the scripted model server: JSON actions and
//! managed tools end proven, with the same receipts, limits, artifacts and stop as the CLIs.

use crate::RALPH;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::model_server::{Action, Fault, FaultKind, ModelServer, Script, Turn, Usage};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const WIRES: [(&str, &str); 4] = [
    ("anthropic", "anthropic/claude-sonnet-5"),
    ("openai-chat", "openai/gpt-5.4"),
    ("openai-responses", "openai/gpt-5.5"),
    ("gemini", "gemini/gemini-2.5-pro"),
];

/// A repo whose only agent has this `kind` and talks to the server over `wire`.
fn repo<'a>(
    env: &'a TestEnv,
    kind: &str,
    base_url: &str,
    (wire, model): (&str, &str),
    more: Value,
) -> TestRepo<'a> {
    let repo = TestRepo::with_task(env);
    let base = match wire {
        "openai-chat" | "openai-responses" => format!("{base_url}/v1"),
        _ => base_url.to_owned(),
    };
    let profiles = format!(
        "profiles:\n  scripted:\n    litellm_model: {model}\n    wire: {wire}\n    base_url: {base}\n    api_key_env: \"\"\n    max_retries: 1\n"
    );
    repo.write(".ralph/models.yaml", &profiles);
    let mut agent = json!({"name": "thinker", "kind": kind, "profile": "scripted"});
    for (key, value) in more.as_object().into_iter().flatten() {
        agent[key] = value.clone();
    }
    repo.configure(&[agent], "grep -q done part.txt", &json!({}));
    repo
}

fn answer(value: Value) -> Turn {
    Turn::new([Action::text(value.to_string())])
}

/// Two sessions of JSON actions: the first reads files, the second uses the results to do the work.
fn two_sessions() -> Script {
    Script::sessions([
        vec![answer(json!({
            "summary": "looked around",
            "actions": [
                {"type": "run", "command": "cat readme.txt; exit 3"},
                {"type": "write", "path": "never.txt", "content": "after a failure"}
            ]
        }))],
        vec![answer(json!({
            "summary": "wrote the part",
            "actions": [
                {"type": "write", "path": "part.txt", "content": "half\n"},
                {"type": "patch", "path": "part.txt", "patch": "--- a/part.txt\n+++ b/part.txt\n@@ -1 +1 @@\n-half\n+done\n"},
                {"type": "run", "command": "grep done part.txt"},
                {"type": "commit", "message": "the part is done\n\nRalph-Run: forged"},
                {"type": "stop_success", "reason": "the check passes"}
            ]
        }))],
    ])
}

#[test]
fn json_actions_end_proven_on_every_wire_and_see_earlier_results() {
    for wire in WIRES {
        let server = ModelServer::start().unwrap();
        server.script("work", two_sessions());
        let env = TestEnv::new(RALPH);
        let repo = repo(&env, "actions", &server.base_url("work", wire.0), wire, json!({}));
        let run = repo.run(&[]).exits(0).json();
        assert_eq!(
            (&run["iterations"], &run["files_changed"]),
            (&json!(2), &json!(["part.txt"])),
            "{wire:?}: {run}"
        );
        // The failing action stopped the rest, and the next prompt shows its output.
        let prompt = repo.run_file("iterations/2/prompt.md");
        assert!(prompt.contains("1. run `cat readme.txt; exit 3`: exit code 3\n    "), "{prompt}");
        assert!(prompt.contains("hello") && prompt.contains("write `never.txt`"), "{prompt}");
        let started: Vec<Value> =
            repo.events_named("action_started").iter().map(|e| e["action"].clone()).collect();
        assert_eq!(started, ["run", "write", "patch", "run", "commit", "stop_success"], "{wire:?}");
        assert_eq!(repo.events_named("action_finished").len(), started.len());
        assert_eq!(repo.run_file("iterations/2/actions.jsonl").lines().count(), 5);
        let followed = repo.ralph(&["logs", "-f"]).exits(0).stdout;
        let calls = followed.lines().filter(|line| line.starts_with("            > ")).count();
        assert_eq!(calls, started.len(), "one line for each action:\n{followed}");
        assert!(!followed.contains("            {"), "data is nothing that was said:\n{followed}");
        // Cost: the server reports tokens, the price list sets the price, and the receipt shows the cache savings.
        let receipt: Value = serde_json::from_str(&repo.run_file("iterations/2/receipt.json")).unwrap();
        assert_eq!(receipt["tokens"]["cached"], 800, "{receipt}");
        assert_eq!(receipt["cost_basis"], "estimated", "{receipt}");
        assert!(
            receipt["cost_usd"].as_f64().unwrap() > 0.0 && receipt["saved_usd"].as_f64().is_some(),
            "{receipt}"
        );
        let shown = repo.ralph(&["show", &repo.latest(), "2"]).exits(0).stdout;
        assert!(shown.contains("800 from cache"), "{shown}");
        // The commit has the agent's message without the trailers that it made up.
        let log = repo.git(&["log", "-1", "--format=%B", &format!("refs/ralph/{}/work", repo.latest())]);
        assert!(log.contains("the part is done") && !log.contains("forged"), "{log}");
    }
}

#[test]
fn cached_prompt_parts_are_identical_in_every_iteration() {
    let server = ModelServer::start().unwrap();
    server.script("work", two_sessions());
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "actions", &server.base_url("work", "cache"), WIRES[0], json!({}));
    repo.run(&[]).exits(0);
    let requests = server.requests("work", "cache");
    let system = |at: usize| requests[at].body["system"].clone();
    assert_eq!(system(0), system(1), "the provider can cache it");
    assert_eq!(system(0).as_array().unwrap().last().unwrap()["cache_control"]["type"], "ephemeral");
    let one = repo.run_file("iterations/1/prompt.md");
    let two = repo.run_file("iterations/2/prompt.md");
    let shared = one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count();
    assert!(shared * 5 >= two.len() * 4, "{shared} of {} bytes are shared", two.len());
}

#[test]
fn invalid_model_answer_is_repaired_or_fails_the_iteration() {
    let server = ModelServer::start().unwrap();
    let good = json!({"summary": "s", "actions": [{"type": "write", "path": "part.txt", "content": "done\n"},
        {"type": "stop_success", "reason": "r"}]});
    server.script(
        "fixed",
        Script::turns([Turn::new([Action::text("{\"summary\": \"s\", \"actionz\": []}")]), answer(good)]),
    );
    let env = TestEnv::new(RALPH);
    let repo1 = repo(&env, "actions", &server.base_url("fixed", "a"), WIRES[0], json!({}));
    let run = repo1.run(&[]).exits(0).json();
    assert_eq!(run["iterations"], 1);
    let second = serde_json::to_string(&server.requests("fixed", "a")[1].body["messages"]).unwrap();
    assert!(second.contains("actionz"), "the repair call names the mistake: {second}");

    server.script("hopeless", Script::turns([Turn::new([Action::text("I would rather chat.")])]));
    let env = TestEnv::new(RALPH);
    let repo2 = repo(&env, "actions", &server.base_url("hopeless", "b"), WIRES[0], json!({"max_repairs": 1}));
    let run = repo2.run(&["--max-iterations", "1"]).exits(1).json();
    assert_eq!(run["reason"], "max_iterations");
    assert_eq!(server.counts("hopeless", "b").requests, 2, "one call and one repair");
    assert_eq!(repo2.events_named("session_ended")[0]["end"]["how"], "failed");
}

#[test]
fn model_question_asks_the_user() {
    let server = ModelServer::start().unwrap();
    let pause = json!({"summary": "s", "actions": [{"type": "pause", "reason": "which database is it?"}]});
    server.script("ask", Script::turns([answer(pause)]));
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "actions", &server.base_url("ask", "q"), WIRES[0], json!({}));
    let run = repo.run(&[]).exits(3).json();
    assert_eq!(run["reason"], "needs_human");
    assert!(run.to_string().contains("which database is it?"), "{run}");
}

/// A session with tools: reads, edits, runs a background server, and finishes.
fn with_tools() -> Script {
    Script::turns([
        Turn::new([
            Action::tool("readFile", json!({"path": "readme.txt"})),
            Action::tool("exec", json!({"command": "echo one; echo two"})),
        ]),
        Turn::new([Action::tool(
            "startProcess",
            json!({"name": "web", "command": "echo listening on http://127.0.0.1:1; sleep 600", "readySignal": "listening"}),
        )]),
        Turn::new([Action::tool("writeFile", json!({"path": "part.txt", "content": "done\n"}))]),
        Turn::new([Action::tool("writeFile", json!({"path": "../out.txt", "content": "x"}))]),
        Turn::new([Action::tool("done", json!({"summary": "the part is done"}))]),
    ])
}

#[test]
fn managed_tools_are_proven_on_every_wire_and_leave_no_process() {
    for wire in WIRES {
        let server = ModelServer::start().unwrap();
        server.script("work", with_tools());
        let env = TestEnv::new(RALPH);
        let repo = repo(&env, "tools", &server.base_url("work", wire.0), wire, json!({}));
        let run = repo.run(&[]).exits(0).json();
        assert_eq!(run["iterations"], 1, "{wire:?}: {run}");
        assert!(!env.path("out.txt").exists(), "a path that leads out was refused");
        // Independent calls run side by side, so the journal may have them in any order.
        let mut started = repo.events_named("action_started");
        started.sort_by_key(|e| e["number"].as_u64());
        let tools: Vec<Value> = started.iter().map(|e| e["action"].clone()).collect();
        assert_eq!(tools, ["readFile", "exec", "startProcess", "writeFile", "writeFile", "done"], "{wire:?}");
        let followed = repo.ralph(&["logs", "-f"]).exits(0).stdout;
        let calls = followed.lines().filter(|line| line.starts_with("            > ")).count();
        assert_eq!(calls, tools.len(), "one line for each call:\n{followed}");
        let failed: Vec<bool> =
            repo.events_named("action_finished").iter().map(|e| e["ok"] == false).collect();
        assert_eq!(failed.iter().filter(|f| **f).count(), 1, "only the refused one failed");
        assert_eq!(run["files_changed"], json!(["part.txt"]), "DONE.md isn't part of the result: {run}");
        let left = TestEnv::finish(env.command("pgrep", &repo.dir).args(["-f", &repo.latest()]));
        assert_eq!(left.stdout, "", "nothing of the run is left");
    }
}

fn background(mut command: Command) -> std::process::Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn model_calls_wait_out_limits_resume_after_kill_and_can_be_cancelled() {
    let server = ModelServer::start().unwrap();
    server.script(
        "limited",
        with_tools().with_fault(Fault::times(FaultKind::RateLimit { retry_after_s: 90 }, 1)),
    );
    let env = TestEnv::new(RALPH);
    let repo1 = repo(&env, "tools", &server.base_url("limited", "l"), WIRES[0], json!({}));
    // The call doesn't sleep through a wait of 90 s: the agent cools down, and the user may end its cooldown.
    let ralph = background(env.ralph_command(&repo1.dir, &["run", "--isolation", "none", "--json"]));
    until("the rest", || (!repo1.events_named("cooldown_set").is_empty()).then_some(()));
    assert_eq!(repo1.events_named("session_ended")[0]["end"]["how"], "rate_limited");
    repo1.ralph(&["cooldown", "thinker", "--clear"]).exits(0);
    let done: Finished = TestEnv::wait(ralph);
    assert_eq!(done.code, Some(0));

    server.script("slow", Script::turns([Turn { wait_ms: 600_000, ..Turn::new([Action::text("never")]) }]));
    let env = TestEnv::new(RALPH);
    let repo2 = repo(&env, "tools", &server.base_url("slow", "s"), WIRES[0], json!({}));
    let mut ralph = background(env.ralph_command(&repo2.dir, &["run", "--isolation", "none"]));
    until("the call", || (server.counts("slow", "s").requests > 0).then_some(()));
    ralph.kill().unwrap();
    ralph.wait().unwrap();
    let ralph = background(env.ralph_command(&repo2.dir, &["resume"]));
    until("the call after the kill", || (server.counts("slow", "s").requests > 1).then_some(()));
    repo2.ralph(&["cancel"]).exits(0);
    assert_eq!(TestEnv::wait(ralph).code, Some(130));
    assert_eq!(repo2.events_named("iteration_ended").len(), 0, "neither counts as an iteration");
}

#[test]
fn model_keys_are_hidden_from_commands() {
    let server = ModelServer::start().unwrap();
    let canary = ["canary", "value", "77aa88bb"].join("-");
    let work = json!({"summary": "s", "actions": [
        {"type": "run", "command": "env > seen.txt; echo done > part.txt"}, {"type": "stop_success", "reason": "r"}]});
    server.script("work", Script::turns([answer(work)]));
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "actions", &server.base_url("work", "k"), WIRES[0], json!({}));
    let profile =
        repo.read(".ralph/models.yaml").replace("api_key_env: \"\"", "api_key_env: ANTHROPIC_API_KEY");
    repo.write(".ralph/models.yaml", &profile);
    // The repo names a server that gets a key: nothing is sent without permission.
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "--json"]);
    TestEnv::finish(command.env("ANTHROPIC_API_KEY", &canary)).exits(3);
    assert!(server.requests("work", "k").is_empty());
    TestEnv::finish(command.arg("--yes")).exits(0);
    assert_eq!(
        server.requests("work", "k")[0].header("x-api-key"),
        Some(canary.as_str()),
        "the server gets it"
    );
    assert!(!repo.read("seen.txt").contains("canary"), "the command does not");
}

#[test]
fn missing_cli_falls_back_to_the_default_model_and_missing_key_lists_options() {
    let server = ModelServer::start().unwrap();
    server.script("work", two_sessions());
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(
        ".ralph/config.json",
        &json!({"verifiers": [{"name": "tests", "command_argv": ["grep", "-q", "done", "part.txt"]}]})
            .to_string(),
    );
    let bare = |args: &[&str]| {
        let mut command = env.ralph_command(&repo.dir, args);
        command.env("PATH", "/usr/bin:/bin");
        command
    };
    let refused = TestEnv::finish(&mut bare(&["run", "--isolation", "none"])).exits(4);
    assert!(refused.stderr.contains("three ways out"), "{}", refused.stderr);
    let mut command = bare(&["run", "--isolation", "none", "--json"]);
    command
        .env("ZAI_API_KEY", "scripted")
        .env("ZAI_API_BASE", format!("{}/v1", server.base_url("work", "z")));
    let run = TestEnv::finish(&mut command).exits(0).json();
    assert_eq!(run["iterations"], 2);
    assert_eq!(repo.events_named("iteration_started")[0]["agent"], "actions");
    assert_eq!(server.requests("work", "z")[0].body["model"], "glm-4.7");
}

#[test]
fn fallback_profile_takes_over_and_a_model_is_the_doctor() {
    let server = ModelServer::start().unwrap();
    server.script(
        "down",
        Script::turns([Turn::new([Action::text("never")])]).with_fault(Fault::always(FaultKind::Overloaded)),
    );
    server.script("work", two_sessions());
    let report = json!({"summary": "The seed is wrong.", "guardrails": [{"trigger": "always", "instruction": "seed the clock"}]});
    server.script("doctor", Script::turns([answer(report).with_usage(Usage::plain(1000, 100))]));
    let env = TestEnv::new(RALPH);
    let repo =
        repo(&env, "actions", &server.base_url("down", "f"), WIRES[0], json!({"fallback_profile": "spare"}));
    let profiles = repo.read(".ralph/models.yaml")
        + &format!(
            "  spare:\n    litellm_model: anthropic/claude-haiku-5-5\n    base_url: {}\n    api_key_env: \"\"\n  sage:\n    litellm_model: anthropic/claude-opus-5\n    base_url: {}\n    api_key_env: \"\"\n    tags: [doctor]\n",
            server.base_url("work", "f"),
            server.base_url("doctor", "f")
        );
    repo.write(".ralph/models.yaml", &profiles);
    repo.run(&[]).exits(0);
    assert!(server.counts("down", "f").requests >= 1 && server.counts("work", "f").requests >= 2);

    let done = repo.ralph(&["diagnose", "--profile", "sage", "--json"]).exits(0).json();
    assert_eq!(
        (&done["by"], &done["report"]["summary"]),
        (&json!("sage"), &json!("The seed is wrong.")),
        "{done}"
    );
    assert!(done["cost_usd"].as_f64().unwrap() > 0.0, "{done}");
    assert!(repo.read(".ralph/diagnostics.md").contains("seed the clock"));
}

#[test]
fn probe_and_doctor_know_agents_without_a_command() {
    let server = ModelServer::start().unwrap();
    server.script("ok", Script::turns([Turn::new([Action::text("ok")])]));
    server.script(
        "closed",
        Script::turns([Turn::new([Action::text("never")])]).with_fault(Fault::always(FaultKind::Auth)),
    );
    let env = TestEnv::new(RALPH);
    let good = repo(&env, "tools", &server.base_url("ok", "p"), WIRES[0], json!({}));
    let report = good.ralph(&["probe", "--json"]).exits(0).json();
    assert_eq!((&report[0]["status"], &report[0]["end"]), (&json!("ok"), &json!("completed")), "{report}");
    let doctor = good.ralph(&["doctor", "--json"]).json();
    let found = |doctor: &Value, status: &str| {
        let checks = doctor["checks"].as_array().unwrap().clone();
        checks.iter().any(|c| c["name"] == "configured: thinker" && c["status"] == status)
    };
    assert!(found(&doctor, "ok"), "{doctor}");

    let env = TestEnv::new(RALPH);
    let bad = repo(&env, "actions", &server.base_url("closed", "p"), WIRES[0], json!({}));
    let report = bad.ralph(&["probe", "--json"]).exits(4).json();
    assert_eq!(
        (&report[0]["status"], &report[0]["end"]),
        (&json!("auth"), &json!("not logged in")),
        "{report}"
    );
    let profile =
        bad.read(".ralph/models.yaml").replace("api_key_env: \"\"", "api_key_env: NOT_SET_ANYWHERE");
    bad.write(".ralph/models.yaml", &profile);
    assert!(
        bad.ralph(&["doctor", "--json"]).stdout.contains("waits for you"),
        "sending a key needs permission"
    );
    bad.ralph(&["trust", "--yes"]).exits(0);
    let doctor = bad.ralph(&["doctor", "--json"]).json();
    assert!(found(&doctor, "missing") && doctor.to_string().contains("NOT_SET_ANYWHERE"), "{doctor}");
}
