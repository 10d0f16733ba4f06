//! `ralph mcp` as another agent uses it: lines of JSON on its standard input and output.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A client of the server.
struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: u64,
    /// Messages that aren't answers.
    notes: Vec<Value>,
}

impl Client {
    fn start(env: &TestEnv, repo: &TestRepo<'_>, args: &[&str]) -> Self {
        let args = [&["mcp"], args].concat();
        let mut child =
            env.ralph_command(&repo.dir, &args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, to, from, next: 0, notes: Vec::new() };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = client.ask("initialize", hello);
        assert_eq!(answer["serverInfo"]["name"], "ralph", "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and returns the result or the error.
    fn send_request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "the server is gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
            self.notes.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.send_request(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool; returns whether it failed, and its text.
    fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let answer = self.ask(
            "tools/call",
            json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p1"}}),
        );
        (answer["isError"] == true, answer["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    }

    fn value(&mut self, tool: &str, arguments: Value) -> Value {
        let (failed, text) = self.call(tool, arguments);
        assert!(!failed, "{tool}: {text}");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// Disconnects, like an agent that ends.
    fn end(mut self) {
        self.to = None;
        assert!(self.child.wait().unwrap().success());
    }
}

fn repo(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    env.user_config(&json!({"isolation": "none"}));
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    repo
}

#[test]
fn agent_starts_and_watches_a_run_over_mcp() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    let mut client = Client::start(&env, &repo, &[]);
    let tools = client.ask("tools/list", json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "lint_task",
            "start_run",
            "list_runs",
            "run_status",
            "watch_run",
            "run_result",
            "note",
            "nudge",
            "pause_run",
            "resume_run",
            "stop_run"
        ]
    );
    let lint = client.value("lint_task", json!({}));
    assert_eq!((&lint["file"], &lint["ok"]), (&json!("PROMPT.md"), &json!(true)), "{lint}");
    let started = client.value("start_run", json!({"max_iterations": 3}));
    let run = started["run_id"].as_str().unwrap().to_owned();
    let seen = client.value("watch_run", json!({"run": run, "seconds": 120}));
    assert_eq!(seen["status"], "done", "{seen}");
    for note in client.notes.iter().filter(|note| note["method"] == "notifications/progress") {
        assert_eq!(note["params"]["progressToken"], "p1", "{note}");
        assert!(note["params"]["message"].is_string(), "{note}");
    }
    let result = client.value("run_result", json!({"run": run}));
    assert_eq!(result["status"], "done");
    assert!(result["proof"].is_object(), "{result}");
    assert_eq!(client.value("list_runs", json!({}))[0]["run_id"], run);
    let (failed, why) = client.call("note", json!({"run": run, "text": "too late"}));
    assert!(failed && why.contains("is over"), "{why}");
    let listed = client.ask("resources/list", json!({}));
    assert_eq!(listed["resources"][1]["uri"], format!("ralph://runs/{run}"));
    let read = |client: &mut Client, path: &str| {
        client.ask("resources/read", json!({"uri": format!("ralph://runs/{run}{path}")}))["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    assert!(read(&mut client, "/iterations/1/diff").contains("+work"));
    assert!(read(&mut client, "/iterations/1/prompt").contains("Write `part.txt`."));
    assert!(read(&mut client, "/events").lines().count() > 5);
    client.end();
    assert_eq!(repo.read("part.txt"), "work\n");
}

#[test]
fn mcp_race_reports_the_winner() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    env.user_config(&json!({"isolation": "none"}));
    let quick = repo.agent("quick", "echo work > part.txt; echo '<promise>COMPLETE</promise>'");
    let slow = repo.agent("slow", "sleep 600");
    repo.configure(&[quick, slow], "test -f part.txt", &json!({}));
    let mut client = Client::start(&env, &repo, &[]);
    let (failed, why) = client.call("start_run", json!({"best": "cost"}));
    assert!(failed && why.contains("is for a race"), "{why}");
    let (failed, why) = client.call("start_run", json!({"race": ["quick"]}));
    assert!(failed && why.contains("1 run cannot race"), "{why}");
    let started = client.value("start_run", json!({"race": ["slow", "quick"]}));
    let names: Vec<&str> =
        started["race"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["slow", "quick"], "{started}");
    let seen = client.value("watch_run", json!({"run": started["race"][0]["run_id"], "seconds": 120}));
    assert_eq!(seen["status"], "stopped", "{seen}");
    let won = ralph_loop_testkit::env::until("the race has a winner", || {
        let seen = client.value("run_status", json!({"run": started["race"][1]["run_id"]}));
        seen["race"]["winner"].as_str().map(str::to_owned)
    });
    assert_eq!(started["race"][1]["run_id"], won, "{started}");
    client.end();
}

#[test]
fn mcp_controls_are_journaled_with_their_sender() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    let gate = env.path("gate");
    repo.stub(
        &format!(
            "while [ ! -f {} ]; do sleep 0.1; done; echo work > part.txt; echo '<promise>COMPLETE</promise>'",
            gate.display()
        ),
        "test -f part.txt",
    );
    let mut client = Client::start(&env, &repo, &[]);
    let run = client.value("start_run", json!({}))["run_id"].as_str().unwrap().to_owned();
    for (tool, args) in [
        ("note", json!({"run": run, "text": "The port is 8080."})),
        ("nudge", json!({"text": "Look at the log."})),
        ("pause_run", json!({})),
        ("resume_run", json!({"run": run})),
    ] {
        assert_eq!(client.value(tool, args)["outcome"], "received", "{tool}");
    }
    let (failed, why) = client.call("note", json!({"text": " "}));
    assert!(failed && why.contains("empty"), "{why}");
    client.value("stop_run", json!({"run": run, "now": true}));
    client.value("watch_run", json!({"run": run, "seconds": 60}));
    let letters =
        repo.events_of(&run).into_iter().filter(|event| event.to_string().contains("via mcp")).count();
    assert!(letters >= 5, "{letters}");
    client.end();
}

#[test]
fn read_only_mcp_lists_no_write_tools_and_rejects_bad_calls() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    let mut client = Client::start(&env, &repo, &["--read-only"]);
    let tools = client.ask("tools/list", json!({}));
    assert!(
        tools["tools"].as_array().unwrap().iter().all(|tool| tool["annotations"]["readOnlyHint"] == true),
        "{tools}"
    );
    for (name, arguments) in [
        ("start_run", json!({})),
        ("nothing", json!({})),
        ("run_status", json!({"runn": "x"})),
        ("list_runs", json!({"everywhere": "yes"})),
    ] {
        let answer = client.send_request("tools/call", json!({"name": name, "arguments": arguments}));
        assert_eq!(answer["error"]["code"], -32602, "{name}: {answer}");
    }
    let (failed, why) = client.call("run_status", json!({}));
    assert!(failed && why.contains("no run in"), "{why}");
    for file in ["../x", "/etc/passwd", "missing.md"] {
        let (failed, why) = client.call("lint_task", json!({"file": file}));
        assert!(failed && why.contains("in this folder"), "{why}");
    }
    for uri in ["ralph://runs/../../etc", "file:///etc/passwd", "ralph://runs/x/iterations/1/../../secret"] {
        assert!(client.send_request("resources/read", json!({"uri": uri}))["error"].is_object(), "{uri}");
    }
    client.end();
}

/// The folder of the inspector's programs; `None` (with a printed reason) if the inspector is skipped.
fn inspector() -> Option<std::path::PathBuf> {
    if std::env::var("RALPH_MCP_INSPECTOR").is_ok_and(|value| value == "0") {
        ralph_loop_testkit::skip(
            "the inspector of the Model Context Protocol is left out (RALPH_MCP_INSPECTOR=0)",
        );
        return None;
    }
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp-inspector");
    let done = TestEnv::finish(&mut std::process::Command::new(script));
    assert_eq!(done.code, Some(0), "scripts/mcp-inspector: {}", done.stderr);
    Some(done.stdout.trim().into())
}

#[test]
fn the_official_inspector_understands_every_answer() {
    let Some(programs) = inspector() else { return };
    let env = TestEnv::new(RALPH);
    let repo = repo(&env);
    repo.run(&[]).exits(0);
    let inspect = |args: &[&str]| {
        let mut command = env.command(programs.join("mcp-inspector"), &repo.dir);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", programs.display()));
        command.args(["--cli", RALPH, "mcp"]).args(args).stdin(Stdio::null());
        let done = TestEnv::finish(&mut command).exits(0);
        serde_json::from_str::<Value>(&done.stdout).unwrap()
    };
    assert_eq!(inspect(&["--method", "tools/list"])["tools"].as_array().unwrap().len(), 11);
    let called = inspect(&["--method", "tools/call", "--tool-name", "list_runs"]);
    assert!(called["content"][0]["text"].as_str().unwrap().contains("\"done\""), "{called}");
    assert_eq!(inspect(&["--method", "resources/list"])["resources"].as_array().unwrap().len(), 2);
    assert!(
        inspect(&["--method", "resources/templates/list"])["resourceTemplates"].as_array().unwrap().len() > 3
    );
    let read = inspect(&["--method", "resources/read", "--uri", "ralph://runs"]);
    assert!(read["contents"][0]["text"].is_string(), "{read}");
}
