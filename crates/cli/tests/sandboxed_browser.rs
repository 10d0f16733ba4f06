//! In the sandbox: a dev server of one command is seen by the browser of another and by people outside, and the host's own
//! servers by neither.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use ralph_testkit::env::until;
use ralph_testkit::model_server::{Action, ModelServer, Script, Turn};
use ralph_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

fn chromium() -> bool {
    let paths = std::env::var("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = paths.split(':').any(|p| names.iter().any(|name| Path::new(p).join(name).exists()));
    if !found {
        ralph_testkit::skip("there is no Chromium here; `scripts/setup --tests` installs it");
    }
    found
}

/// A server of the host that nobody in the sandbox may reach; counts who tries.
fn host_server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let page = "<title>Secret</title>the host's own page";
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", page.len());
            let _ = stream.write_all(format!("{head}{page}").as_bytes());
        }
    });
    (port, calls)
}

fn repo<'a>(env: &'a TestEnv, base_url: &str) -> TestRepo<'a> {
    let repo = TestRepo::with_task(env);
    let profiles = format!(
        "profiles:\n  scripted:\n    litellm_model: anthropic/claude-sonnet-5\n    wire: anthropic\n    base_url: {base_url}\n    api_key_env: \"\"\n    max_retries: 1\n"
    );
    repo.write(".ralph/models.yaml", &profiles);
    repo.configure(
        &[json!({"name": "thinker", "kind": "tools", "profile": "scripted"})],
        "test -f part.txt",
        &json!({}),
    );
    repo
}

/// The journal of the only run, wherever its workspace is.
fn events(env: &TestEnv) -> Option<(PathBuf, Vec<Value>)> {
    let all = std::fs::read_dir(env.path("state").join("ralph/workspaces")).ok()?;
    let top = all.flatten().next()?.path();
    let run = std::fs::read_dir(top.join(".ralph/runs")).ok()?.flatten().next()?.path();
    let text = std::fs::read_to_string(run.join("events.jsonl")).ok()?;
    Some((top, text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()))
}

fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_server_inside_is_seen_by_the_browser_and_by_people_and_the_hosts_own_by_nobody() {
    if !chromium() {
        return;
    }
    let (host_port, calls) = host_server();
    let server = ModelServer::start().unwrap();
    let page = "<title>Inside</title><h1>hello from inside</h1>";
    let start = json!({"name": "web", "command": "python3 -m http.server 8123 --bind 127.0.0.1", "env": {"PYTHONUNBUFFERED": "1"}});
    let open = |name: &str, url: String| Action::tool("openBrowser", json!({"name": name, "url": url}));
    server.script(
        "work",
        Script::turns([
            Turn::new([Action::tool("writeFile", json!({"path": "index.html", "content": page}))]),
            Turn::new([Action::tool("startProcess", start)]),
            Turn::new([open("main", "http://localhost:8123/index.html".into())]),
            Turn::new([open("main", format!("http://localhost:{host_port}/"))]),
            Turn::new([open("main", format!("http://127.0.0.1:{host_port}/"))]),
            Turn::new([Action::tool("exec", json!({"command": "until [ -e seen ]; do sleep 0.1; done"}))]),
            Turn::new([Action::tool("exec", json!({"command": "rm seen index.html; echo x > part.txt"}))]),
            Turn::new([Action::tool("done", json!({"summary": "it is seen"}))]),
        ]),
    );
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, &server.base_url("work", "anthropic"));
    let child = env.spawn(&repo.dir, &["run", "--worktree", "--json", "--isolation", "bwrap"]);
    let mut child = Some(child);
    // People outside see it while the run goes on.
    let found = until("the preview, or an early end", || {
        if child.as_mut().unwrap().try_wait().unwrap().is_some() {
            return Some(None);
        }
        let (top, events) = events(&env)?;
        let lines: Vec<String> =
            events.iter().filter_map(|e| e["result"].as_str().map(str::to_owned)).collect();
        let shown = lines.iter().find_map(|line| line.split("people see it at http://").nth(1))?;
        let address: String = shown.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
        // The last browser action is over.
        (lines.len() >= 5).then_some(Some((top, address)))
    });
    let Some((top, address)) = found else {
        let done = TestEnv::wait(child.take().unwrap());
        if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
            return ralph_testkit::skip(&done.stderr);
        }
        panic!("{done:?}");
    };
    assert!(get(&address).contains("hello from inside"), "{}", get(&address));
    // The agent works on a copy of the worktree.
    let copy = env.path("state/ralph/copies").join(top.file_name().unwrap());
    std::fs::write(copy.join("seen"), "").unwrap();
    let done = TestEnv::wait(child.take().unwrap()).exits(0);
    let (_, events) = events(&env).unwrap();
    let mut finished: Vec<&Value> = events.iter().filter(|e| e["kind"] == "action_finished").collect();
    finished.sort_by_key(|e| e["number"].as_u64());
    let oks: Vec<bool> = finished.iter().map(|e| e["ok"] == true).collect();
    assert_eq!(oks[..5], [true, true, true, true, true], "{finished:#?}");
    let asked = server
        .requests("work", "anthropic")
        .into_iter()
        .map(|r| r.body.to_string())
        .collect::<Vec<_>>()
        .join("\n");
    assert!(asked.contains("hello from inside") && asked.contains("Inside"), "the model was shown the page");
    assert!(!asked.contains("the host's own page"), "and not the host's");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "nobody called the host's server");
    assert!(TcpStream::connect(&address).is_err(), "the preview ends with the run: {}", done.stderr);
}

#[test]
fn with_landlock_there_is_no_browser_and_the_agent_is_told_so() {
    let (host_port, calls) = host_server();
    let server = ModelServer::start().unwrap();
    server.script(
        "work",
        Script::turns([
            Turn::new([Action::tool(
                "openBrowser",
                json!({"url": format!("http://localhost:{host_port}/")}),
            )]),
            Turn::new([Action::tool("writeFile", json!({"path": "part.txt", "content": "x"}))]),
            Turn::new([Action::tool("done", json!({"summary": "without a browser"}))]),
        ]),
    );
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, &server.base_url("work", "anthropic"));
    let done = env.ralph(&repo.dir, &["run", "--worktree", "--json", "--isolation", "landlock"]);
    if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
        return ralph_testkit::skip(&done.stderr);
    }
    done.exits(0);
    let asked =
        server.requests("work", "anthropic").into_iter().map(|r| r.body.to_string()).collect::<String>();
    assert!(asked.contains("no browser runs in this sandbox"), "the agent is told");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "nobody called the host's server");
}
