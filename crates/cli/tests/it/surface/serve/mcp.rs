//! `/mcp`: the same server for agents, with the tokens, roles and audit log that the page has.

use super::client::{Reply, request};
use super::machine::{Served, machine, waiting_script};
use ralph_loop_testkit::TestRepo;
use serde_json::{Value, json};

const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");

fn post(server: &Served, headers: &[(&str, &str)], method: &str, params: Value) -> Reply {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let headers: Vec<(&str, &str)> = headers.iter().copied().chain([ACCEPT]).collect();
    request(server.port, "POST", "/mcp", &headers, Some(&body))
}

/// The message of a response, either JSON or an event.
fn message(reply: &Reply) -> Value {
    let text = reply.text();
    let (start, end) = (text.find("{\"jsonrpc\"").unwrap_or(0), text.rfind('}').unwrap());
    serde_json::from_str(&text[start..=end]).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn ask(server: &Served, token: &str, method: &str, params: Value) -> Value {
    let bearer = format!("Bearer {token}");
    message(&post(server, &[("Authorization", &bearer)], method, params).is(200))
}

/// Calls a tool; returns its text, and whether it failed.
fn call(server: &Served, token: &str, tool: &str, arguments: Value) -> (String, bool) {
    let answer = ask(server, token, "tools/call", json!({"name": tool, "arguments": arguments}));
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), result["isError"] == true)
}

fn tools(server: &Served, token: &str) -> Vec<String> {
    let listed = ask(server, token, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn mcp_needs_a_token_and_the_same_origin() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let server = Served::start(&env, &repo.dir, &[]);
    post(&server, &[], "tools/list", json!({})).is(401);
    post(&server, &[("Authorization", "Bearer wrong")], "tools/list", json!({})).is(401);
    let bearer = format!("Bearer {}", server.token);
    let page = [("Authorization", bearer.as_str()), ("Origin", "http://evil.example")];
    post(&server, &page, "tools/list", json!({})).is(403);
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = ask(&server, &server.token, "initialize", hello);
    assert_eq!(hello["result"]["serverInfo"]["name"], "ralph", "{hello}");
    // There are no sessions to resume.
    request(server.port, "GET", "/mcp", &[("Authorization", &bearer), ACCEPT], None).is(405);
}

#[test]
fn mcp_uses_the_server_roles_queue_and_audit_log() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    env.server_config(&json!({"isolation": "none"}));
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "configuration"]);
    let server = Served::start(&env, &repo.dir, &[]);
    let (eve, olga) = (server.person("eve", "viewer"), server.person("olga", "operator"));
    assert!(!tools(&server, &eve).contains(&"start_run".to_owned()), "a viewer only looks");
    assert_eq!(tools(&server, &olga).len(), 11);
    let refused = ask(&server, &eve, "tools/call", json!({"name": "start_run", "arguments": {}}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("unknown tool"), "{refused}");

    let (elsewhere, failed) = call(&server, &olga, "start_run", json!({"folder": "/etc"}));
    assert!(failed && elsewhere.contains("not started in `/etc`"), "{elsewhere}");
    let (lint, failed) = call(&server, &eve, "lint_task", json!({}));
    assert!(!failed && lint.contains("PROMPT.md"), "{lint}");
    let (started, failed) =
        call(&server, &olga, "start_run", json!({"file": "PROMPT.md", "max_iterations": 3}));
    assert!(!failed, "{started}");
    let run = serde_json::from_str::<Value>(&started).unwrap()["run_id"].as_str().unwrap().to_owned();
    server.row_when(&run, "the run at work", |row| row["status"] == "working");
    let (noted, failed) = call(&server, &olga, "note", json!({"run": run, "text": "The port is 8080."}));
    assert!(!failed && noted.contains(&run), "{noted}");
    let (nudged, failed) = call(&server, &olga, "nudge", json!({"run": run, "text": "x"}));
    assert!(failed && nudged.contains("guided or debug"), "{nudged}");
    let (listed, _) = call(&server, &eve, "list_runs", json!({}));
    assert!(listed.contains(&run), "{listed}");
    repo.write(".git/go", "");
    let (seen, failed) = call(&server, &eve, "watch_run", json!({"run": run, "seconds": 120}));
    assert!(!failed && seen.contains("done"), "{seen}");
    let (result, _) = call(&server, &eve, "run_result", json!({"run": run}));
    assert!(result.contains("proof"), "{result}");
    let read =
        ask(&server, &eve, "resources/read", json!({"uri": format!("ralph://runs/{run}/iterations/1/log")}));
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("here 1"), "{read}");

    let audit = server.get("/audit").is(200).json().to_string();
    for (who, action) in [("olga", "create"), ("olga", "note")] {
        assert!(audit.contains(&format!("\"action\":\"{action}\"")) && audit.contains(who), "{audit}");
    }
    assert!(!audit.contains("\"who\":\"eve\""), "reads aren't audited: {audit}");
}
