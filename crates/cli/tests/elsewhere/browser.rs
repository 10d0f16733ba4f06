//! A browser and previews where commands run somewhere else.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use crate::docker::engine;
use crate::fixture::Fixture;
use ralph_testkit::env::until;
use ralph_testkit::fake_e2b::FakeE2b;
use ralph_testkit::model_server::{Action, ModelServer, Script, Turn};
use ralph_testkit::{TestEnv, TestRepo, skip};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An image with the Chromium of this machine; `None` where that cannot be.
fn image() -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/dockerd");
    let done = Command::new(script).arg("browser").output().unwrap();
    match done.status.code() {
        Some(0) => Some(String::from_utf8(done.stdout).unwrap().trim().to_owned()),
        Some(77) => {
            skip(String::from_utf8_lossy(&done.stderr).trim());
            None
        }
        _ => panic!("{}", String::from_utf8_lossy(&done.stderr)),
    }
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
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nthe host's own page");
        }
    });
    (port, calls)
}

/// A repo whose agent is a model with tools that plays `turns`.
fn repo<'a>(fixture: &'a Fixture, server: &ModelServer, turns: Vec<Turn>) -> TestRepo<'a> {
    server.script("work", Script::turns(turns));
    let agent = json!({"name": "thinker", "kind": "tools", "profile": "scripted"});
    let repo = fixture.repo(agent, "test -f part.txt");
    let base = server.base_url("work", "anthropic");
    let profiles = format!(
        "profiles:\n  scripted:\n    litellm_model: anthropic/claude-sonnet-5\n    wire: anthropic\n    \
         base_url: {base}\n    api_key_env: \"\"\n    max_retries: 1\n"
    );
    repo.write(".ralph/models.yaml", &profiles);
    fixture.ralph(&repo, &["trust"]).exits(0);
    repo
}

/// Everything that the model was sent.
fn asked(server: &ModelServer) -> String {
    server.requests("work", "anthropic").into_iter().map(|request| request.body.to_string()).collect()
}

fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_server_in_a_container_is_seen_by_its_browser_and_by_people_and_the_hosts_own_by_nobody() {
    let Some(engine) = engine() else { return };
    let Some(image) = image() else { return };
    let (host_port, calls) = host_server();
    let server = ModelServer::start().unwrap();
    let page = "<title>Inside</title><h1>hello from inside</h1>";
    let open = |url: String| Turn::new([Action::tool("openBrowser", json!({ "url": url }))]);
    let exec = |command: &str| Turn::new([Action::tool("exec", json!({ "command": command }))]);
    // It listens before it names its address.
    let serve = "httpd -p 127.0.0.1:8123 && echo http://127.0.0.1:8123/ && exec sleep 1000";
    let turns = vec![
        Turn::new([Action::tool("writeFile", json!({"path": "index.html", "content": page}))]),
        Turn::new([Action::tool("startProcess", json!({"name": "web", "command": serve}))]),
        open("http://localhost:8123/index.html".into()),
        open(format!("http://localhost:{host_port}/")),
        open("http://nowhere.example/".into()),
        exec("until [ -e seen ]; do sleep 0.1; done"),
        exec("rm seen index.html; echo x > part.txt"),
        Turn::new([Action::tool("done", json!({"summary": "it is seen"}))]),
    ];
    let fixture = Fixture::new("docker", &[("DOCKER_HOST", &engine)], json!({ "image": image }));
    let repo = repo(&fixture, &server, turns);
    let mut child = fixture.spawn(&repo, &["run", "--json", "--yes"]);
    let address = until("the preview, or an early end", || {
        if child.try_wait().unwrap().is_some() {
            return Some(String::new());
        }
        let events = if fixture.runs().is_empty() { Vec::new() } else { fixture.events() };
        let lines: Vec<&str> = events.iter().filter_map(|event| event["result"].as_str()).collect();
        let shown = lines.iter().find_map(|line| line.split("people see it at http://").nth(1))?;
        let address = shown.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
        // The last page was tried, too.
        (lines.len() >= 5).then_some(address)
    });
    if address.is_empty() {
        panic!("{:?}", TestEnv::wait(child));
    }
    // People outside see it while the run goes on.
    assert!(get(&address).contains("hello from inside"), "{}", get(&address));
    std::fs::write(fixture.workspace().join("seen"), "").unwrap();
    TestEnv::wait(child).exits(0);
    let told = asked(&server);
    assert!(told.contains("hello from inside") && told.contains("Inside"), "the model was shown the page");
    assert!(!told.contains("the host's own page"), "and not the host's");
    assert_eq!(calls.load(Ordering::SeqCst), 0, "nobody called the host's server");
    let refused: Vec<Value> =
        fixture.events_named("egress_refused").iter().map(|e| e["host"].clone()).collect();
    assert!(refused.contains(&json!("nowhere.example")), "the browser's way out is the proxy: {refused:?}");
    assert!(TcpStream::connect(&address).is_err(), "the preview ends with the run");
}

#[test]
fn in_a_cloud_there_is_no_browser_and_the_agent_is_told_so() {
    let cloud = FakeE2b::start().unwrap();
    let url = cloud.url();
    let vars = [("E2B_API_URL", url.as_str()), ("E2B_SANDBOX_URL", &url), ("E2B_API_KEY", cloud.key())];
    let fixture = Fixture::new("e2b", &vars, json!({}));
    let server = ModelServer::start().unwrap();
    let turns = vec![
        Turn::new([Action::tool("openBrowser", json!({"url": "http://localhost:8123/"}))]),
        Turn::new([Action::tool("writeFile", json!({"path": "part.txt", "content": "x"}))]),
        Turn::new([Action::tool("done", json!({"summary": "without a browser"}))]),
    ];
    let repo = repo(&fixture, &server, turns);
    fixture.ralph(&repo, &["run", "--json"]).exits(0);
    assert!(asked(&server).contains("no browser runs in this sandbox: it is not on this machine"));
}
