//! Agents with a model, in sandboxes: a real CLI in a container that reaches its model only through the egress proxy, and models
//! that the engine calls itself, of which only the commands run in the sandbox.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use crate::long::providers::fixture::Fixture;
use ralph_loop_agents::presets::preset;
use ralph_loop_testkit::docker::engine;
use ralph_loop_testkit::fake_e2b::FakeE2b;
use ralph_loop_testkit::model_server::{Action, ModelServer, Script, Turn};
use ralph_loop_testkit::{TestEnv, TestRepo, skip};
use serde_json::json;
use std::path::Path;
use std::process::Command;

fn script(name: &str, args: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name);
    let done = TestEnv::finish(Command::new(script).args(args));
    assert_eq!(done.code, Some(0), "{name}: {}", done.stderr);
    done.stdout.trim().to_owned()
}

#[test]
fn claude_run_in_a_container_is_proven_through_the_proxy() {
    let Some(engine) = engine() else { return };
    if std::env::var("RALPH_REAL_CLIS").is_ok_and(|value| value == "0") {
        skip("the real agent CLIs are left out (RALPH_REAL_CLIS=0)");
        return;
    }
    let program = Path::new(&script("agent-clis", &[])).join("claude").canonicalize().unwrap();
    let image = script("dockerd", &["agent", "claude", &program.display().to_string()]);
    let server = ModelServer::start().unwrap();
    let url = server.base_url("ok", "claude");
    let vars =
        [("DOCKER_HOST", engine.as_str()), ("ANTHROPIC_BASE_URL", &url), ("ANTHROPIC_API_KEY", "scripted")];
    let fixture = Fixture::new("docker", &vars, json!({ "image": image }));
    let mut agent = serde_json::to_value(preset("claude").unwrap()).unwrap();
    agent["model"] = "claude-sonnet-4-5".into();
    let repo = fixture.repo(agent, "grep -q shell-ran hello.txt && test -z \"$ANTHROPIC_API_KEY\"");
    // The image is the repo's choice, and its `claude` gets the key.
    let run = fixture.ralph(&repo, &["run", "--json", "--yes"]).exits(0).json();
    assert_eq!(run["files_changed"], json!(["hello.txt"]), "{run}");
    let sessions = fixture.events_named("session_ended");
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert!(sessions[0]["usage"]["tokens"]["input"].as_u64().unwrap() >= 3600, "{sessions:?}");
    assert!(!server.requests("ok", "claude").is_empty());
    assert_eq!(fixture.events_named("sandbox_ready")[0]["provider"], "docker");
    assert_eq!(fixture.sandboxes(&repo), Vec::<serde_json::Value>::new());
}

/// One session of JSON actions: it prints its folder, writes and checks.
fn thinker(fixture: &Fixture) -> (ModelServer, TestRepo<'_>) {
    let answer = json!({
        "summary": "wrote the part",
        "actions": [
            {"type": "run", "command": "pwd > where.txt; test -z \"$THINKING_KEY\""},
            {"type": "write", "path": "part.txt", "content": "done\n"},
            {"type": "run", "command": "grep done part.txt"},
            {"type": "stop_success", "reason": "the check passes"}
        ]
    });
    let server = ModelServer::start().unwrap();
    server.script("work", Script::sessions([vec![Turn::new([Action::text(answer.to_string())])]]));
    let repo = fixture
        .repo(json!({"name": "thinker", "kind": "actions", "profile": "scripted"}), "grep -q done part.txt");
    let base = server.base_url("work", "actions");
    repo.write(
        ".ralph/models.yaml",
        &format!(
            "profiles:\n  scripted:\n    litellm_model: anthropic/claude-sonnet-5\n    wire: anthropic\n    \
             base_url: {base}\n    api_key_env: THINKING_KEY\n    max_retries: 1\n"
        ),
    );
    // The repo names a server that gets a key.
    fixture.ralph(&repo, &["trust", "--yes"]).exits(0);
    (server, repo)
}

#[test]
fn actions_run_in_a_container_without_the_key() {
    let Some(engine) = engine() else { return };
    let vars = [("DOCKER_HOST", engine.as_str()), ("THINKING_KEY", "scripted")];
    let fixture = Fixture::new("docker", &vars, json!({"image": "ralph-test:local"}));
    let (_server, repo) = thinker(&fixture);
    let run = fixture.ralph(&repo, &["run", "--json"]).exits(0).json();
    assert_eq!(run["files_changed"], json!(["part.txt", "where.txt"]), "{run}");
    assert_eq!(run["iterations"], 1);
}

#[test]
fn actions_run_in_a_cloud_and_its_machine_costs_are_counted() {
    let cloud = FakeE2b::start().unwrap();
    let url = cloud.url();
    let vars = [
        ("E2B_API_URL", url.as_str()),
        ("E2B_SANDBOX_URL", &url),
        ("E2B_API_KEY", cloud.key()),
        ("THINKING_KEY", "scripted"),
    ];
    let fixture = Fixture::new("e2b", &vars, json!({}));
    let (_server, repo) = thinker(&fixture);
    let done = fixture.ralph(&repo, &["run", "--json"]).exits(0);
    let run = done.json();
    assert_eq!(run["files_changed"], json!(["part.txt", "where.txt"]), "{run}");
    let place = repo.git(&["show", &format!("{}:where.txt", run["ref"].as_str().unwrap())]);
    assert!(!place.starts_with(&fixture.workspace().display().to_string()), "it ran in the machine: {place}");
    assert!(run["compute_usd"].as_f64().unwrap() > 0.0, "{run}");
    assert!(done.stderr.contains("compute ~$"), "{}", done.stderr);
    let id = fixture.events_named("sandbox_ready")[0]["id"].as_str().unwrap().to_owned();
    assert!(!id.is_empty());
}
