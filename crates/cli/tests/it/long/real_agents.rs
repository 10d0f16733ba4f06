//! The real agent CLIs, in the versions of `scripts/agent-clis`, driven by the real `ralph` against a scripted model on
//! this machine: each run is proven, and each provider failure is recognized.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

pub mod machine;
mod plugin;
mod settings;

use machine::{Machine, programs};
use ralph_loop_testkit::model_server::ModelServer;

/// A whole run: the CLI writes a file, runs a command and promises; the check passes.
fn run_is_proven(cli: &'static str) {
    let Some(programs) = programs() else { return };
    let server = ModelServer::start().unwrap();
    let machine = Machine::new(cli, &programs);
    let repo = machine.repo("repo");
    let url = server.base_url("ok", cli);
    let done = machine.ralph(&repo, &url, &["run", "--isolation", "none", "--json"]).exits(0);
    let run = done.json();
    assert_eq!(run["files_changed"], serde_json::json!(["hello.txt"]), "{run}");
    assert!(repo.read("hello.txt").ends_with("shell-ran\n"), "{:?}", repo.read("hello.txt"));
    let read = repo.ralph(&["logs", "-o"]).exits(0).stdout;
    assert!(read.lines().any(|line| line.starts_with("> ")), "no tool call as text:\n{read}");
    assert!(!read.lines().any(|line| line.starts_with("{\"")), "data among the words:\n{read}");
    let followed = repo.ralph(&["logs", "-f"]).exits(0).stdout;
    assert!(followed.contains("            > "), "no line for a tool call:\n{followed}");
    let sessions = repo.events_named("session_ended");
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let usage = &sessions[0]["usage"];
    // Three turns of 1200 fresh and 800 cached tokens; some CLIs make side requests.
    assert!(usage["tokens"]["input"].as_u64().unwrap() >= 3600, "{usage}");
    assert!(usage["tokens"]["cached"].as_u64().unwrap() >= 2400, "{usage}");
    assert!(usage["tokens"]["output"].as_u64().unwrap() >= 120, "{usage}");
    assert!(usage["model"].is_string(), "{usage}");
    // Two of them report their cost; the others use the price list.
    let basis = if matches!(cli, "claude" | "opencode") { "reported" } else { "estimated" };
    assert_eq!(usage["basis"], basis, "{usage}");
    assert!(usage["cost"].as_f64().is_some_and(|cost| cost > 0.001), "{usage}");
}

/// Asserts the name that `ralph probe` gives to the end of a session in `scenario`.
fn assert_fault_outcome(cli: &'static str, scenario: &str, word: &str) {
    let Some(programs) = programs() else { return };
    let server = ModelServer::start().unwrap();
    let machine = Machine::new(cli, &programs);
    let report = match scenario {
        "refused" => machine.probe_at("http://127.0.0.1:9/s/x/x", scenario),
        "nokey" => machine.probe_without_key(&server),
        _ => machine.probe(&server, scenario),
    };
    assert_eq!(report["end"], word, "{report}");
}

/// A test for each provider failure and the run's name for it.
macro_rules! faults_of {
    ($cli:ident: $($scenario:ident => $word:literal),+ $(,)?) => {
        mod $cli {
            $(#[test]
            fn $scenario() {
                super::assert_fault_outcome(stringify!($cli), stringify!($scenario), $word);
            })+
        }
    };
}

#[test]
fn claude_run_is_proven() {
    run_is_proven("claude");
}

#[test]
fn codex_run_is_proven() {
    run_is_proven("codex");
}

#[test]
fn gemini_run_is_proven() {
    run_is_proven("gemini");
}

#[test]
fn opencode_run_is_proven() {
    run_is_proven("opencode");
}

#[test]
fn qwen_run_is_proven() {
    run_is_proven("qwen");
}

faults_of! {
    claude:
    text => "completed",
    rl429 => "rate limited",
    rl429once => "completed",
    rl429long => "rate limited",
    usagelimit => "rate limited",
    quota => "rate limited",
    auth => "not logged in",
    forbidden => "not logged in",
    credit => "no credit",
    overloaded => "provider overloaded",
    unavail => "provider overloaded",
    err500 => "provider overloaded",
    toolong => "context too long",
    nomodel => "agent failed",
    streamerr => "provider overloaded",
    streamrl => "rate limited",
    streamcut => "provider overloaded",
    refusal => "refused",
    refused => "provider not reachable",
    nokey => "not logged in",
}

faults_of! {
    codex:
    text => "completed",
    rl429 => "rate limited",
    rl429long => "rate limited",
    usagelimit => "rate limited",
    quota => "rate limited",
    auth => "not logged in",
    forbidden => "not logged in",
    credit => "no credit",
    overloaded => "provider overloaded",
    unavail => "provider overloaded",
    err500 => "provider overloaded",
    toolong => "context too long",
    nomodel => "agent failed",
    streamcut => "provider overloaded",
    refused => "provider not reachable",
    nokey => "not logged in",
}

faults_of! {
    gemini:
    text => "completed",
    rl429 => "rate limited",
    rl429long => "rate limited",
    usagelimit => "rate limited",
    quota => "rate limited",
    auth => "not logged in",
    credit => "not logged in",
    forbidden => "not logged in",
    overloaded => "provider overloaded",
    unavail => "provider overloaded",
    err500 => "provider overloaded",
    toolong => "context too long",
    nomodel => "agent failed",
    streamcut => "provider overloaded",
    refused => "provider not reachable",
    nokey => "not logged in",
}

// It waits out limits and an overloaded provider in silence, and a prompt that is too long it shortens without end:
// those are left to the idle time-out.
faults_of! {
    opencode:
    auth => "not logged in",
    credit => "no credit",
    nomodel => "agent failed",
}

// It waits silently for limits and an overloaded provider, so the idle timeout ends those.
faults_of! {
    qwen:
    auth => "not logged in",
    credit => "no credit",
    toolong => "context too long",
    nomodel => "agent failed",
    streamcut => "provider overloaded",
}

/// The same in the sandbox in the user's folder, like the README's first command: the CLI finds its files, its login and the
/// model's server.
fn works_in_the_sandbox(cli: &'static str) {
    let Some(programs) = programs() else { return };
    let server = ModelServer::start().unwrap();
    let machine = Machine::new(cli, &programs);
    let repo = machine.repo("repo");
    let url = server.base_url("ok", cli);
    let done = machine.ralph(&repo, &url, &["run", "--json"]);
    if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
        ralph_loop_testkit::skip(&done.stderr);
        return;
    }
    let run = done.exits(0).json();
    assert_eq!(run["files_changed"], serde_json::json!(["hello.txt"]), "{run}");
    assert!(repo.dir.join("hello.txt").is_file(), "the result is in the user's own tree");
}

#[test]
fn claude_works_in_the_sandbox() {
    works_in_the_sandbox("claude");
}

#[test]
fn codex_works_in_the_sandbox() {
    works_in_the_sandbox("codex");
}

#[test]
fn gemini_works_in_the_sandbox() {
    works_in_the_sandbox("gemini");
}

#[test]
fn opencode_works_in_the_sandbox() {
    works_in_the_sandbox("opencode");
}

#[test]
fn qwen_works_in_the_sandbox() {
    works_in_the_sandbox("qwen");
}
