//! Browser and previews in other sandboxes.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use crate::long::providers::fixture::Fixture;
use ralph_loop_testkit::docker::engine;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::fake_e2b::FakeE2b;
use ralph_loop_testkit::model_server::{Action, ModelServer, Script, Turn};
use ralph_loop_testkit::pages::{self, HOSTS_PAGE, HostServer};
use ralph_loop_testkit::{TestEnv, TestRepo, skip};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

/// An image with this machine's Chromium; `None` if it can't be built.
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

/// A repo whose agent is a scripted model with tools that plays `turns`.
fn repo<'a>(fixture: &'a Fixture, server: &ModelServer, turns: Vec<Turn>) -> TestRepo<'a> {
    server.script("work", Script::turns(turns));
    let agent = json!({"name": "thinker", "kind": "tools", "profile": "scripted"});
    let repo = fixture.repo(agent, "test -f part.txt");
    repo.write(".ralph/models.yaml", &pages::scripted_profile(server));
    fixture.ralph(&repo, &["trust", "--yes"]).exits(0);
    repo
}

#[test]
fn container_server_is_reachable_by_browser_and_preview_but_host_servers_are_not() {
    let Some(engine) = engine() else { return };
    let Some(image) = image() else { return };
    let host = HostServer::start().unwrap();
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
        open(format!("http://localhost:{}/", host.port)),
        open("http://nowhere.example/".into()),
        exec("until [ -e seen ]; do sleep 0.1; done"),
        exec("rm seen index.html && echo x > part.txt"),
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
        let address = lines.iter().find_map(|line| pages::preview(line))?;
        // The last page was requested, too.
        (lines.len() >= 5).then_some(address)
    });
    if address.is_empty() {
        panic!("{:?}", TestEnv::wait(child));
    }
    // The user can open it during the run.
    let page = pages::get(&address).unwrap();
    assert!(page.contains("hello from inside"), "{page}");
    std::fs::write(fixture.agents_folder().join("seen"), "").unwrap();
    TestEnv::wait(child).exits(0);
    let told = pages::asked(&server);
    assert!(told.contains("hello from inside") && told.contains("Inside"), "the model was shown the page");
    assert!(!told.contains(HOSTS_PAGE), "and not the host's");
    assert_eq!(host.calls(), 0, "the host's server got no request");
    let refused: Vec<Value> =
        fixture.events_named("egress_refused").iter().map(|e| e["host"].clone()).collect();
    assert!(refused.contains(&json!("nowhere.example")), "the browser's way out is the proxy: {refused:?}");
    assert!(TcpStream::connect(&address).is_err(), "the preview ends with the run");
}

#[test]
fn cloud_tells_the_agent_that_it_has_no_browser() {
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
    assert!(pages::asked(&server).contains("no browser runs in this sandbox: it is not on this machine"));
}
