//! In the sandbox, a dev server started by one command is reachable by the browser of another command and by the user; the
//! host's servers are reachable by neither.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use crate::RALPH;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::model_server::{Action, ModelServer, Script, Turn};
use ralph_loop_testkit::pages::{self, HOSTS_PAGE, HostServer};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

fn chromium() -> bool {
    let paths = std::env::var("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = paths.split(':').any(|p| names.iter().any(|name| Path::new(p).join(name).exists()));
    if !found {
        ralph_loop_testkit::skip("there is no Chromium here; `scripts/setup --tests` installs it");
    }
    found
}

fn repo<'a>(env: &'a TestEnv, server: &ModelServer) -> TestRepo<'a> {
    let repo = TestRepo::with_task(env);
    repo.write(".ralph/models.yaml", &pages::scripted_profile(server));
    let agent = json!({"name": "thinker", "kind": "tools", "profile": "scripted"});
    repo.configure(&[agent], "test -f part.txt", &json!({}));
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

#[test]
fn sandbox_server_is_reachable_by_browser_and_preview_but_host_servers_are_not() {
    if !chromium() {
        return;
    }
    let host = HostServer::start().unwrap();
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
            Turn::new([open("main", format!("http://localhost:{}/", host.port))]),
            Turn::new([open("main", format!("http://127.0.0.1:{}/", host.port))]),
            Turn::new([Action::tool("exec", json!({"command": "until [ -e seen ]; do sleep 0.1; done"}))]),
            Turn::new([Action::tool("exec", json!({"command": "rm seen index.html; echo x > part.txt"}))]),
            Turn::new([Action::tool("done", json!({"summary": "it is seen"}))]),
        ]),
    );
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, &server);
    let child = env.spawn(&repo.dir, &["run", "--worktree", "--json", "--isolation", "bwrap"]);
    let mut child = Some(child);
    // The user can open it during the run.
    let found = until("the preview, or an early end", || {
        if child.as_mut().unwrap().try_wait().unwrap().is_some() {
            return Some(None);
        }
        let (top, events) = events(&env)?;
        let lines: Vec<String> =
            events.iter().filter_map(|e| e["result"].as_str().map(str::to_owned)).collect();
        let address = lines.iter().find_map(|line| pages::preview(line))?;
        // The last browser action is over.
        (lines.len() >= 5).then_some(Some((top, address)))
    });
    let Some((top, address)) = found else {
        let done = TestEnv::wait(child.take().unwrap());
        if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
            return ralph_loop_testkit::skip(&done.stderr);
        }
        panic!("{done:?}");
    };
    let page = pages::get(&address).unwrap();
    assert!(page.contains("hello from inside"), "{page}");
    // The agent works on a copy of the worktree.
    let copy = env.path("state/ralph/copies").join(top.file_name().unwrap());
    std::fs::write(copy.join("seen"), "").unwrap();
    let done = TestEnv::wait(child.take().unwrap()).exits(0);
    let (_, events) = events(&env).unwrap();
    let mut finished: Vec<&Value> = events.iter().filter(|e| e["kind"] == "action_finished").collect();
    finished.sort_by_key(|e| e["number"].as_u64());
    let oks: Vec<bool> = finished.iter().map(|e| e["ok"] == true).collect();
    assert_eq!(oks[..5], [true, true, true, true, true], "{finished:#?}");
    let asked = pages::asked(&server);
    assert!(asked.contains("hello from inside") && asked.contains("Inside"), "the model was shown the page");
    assert!(!asked.contains(HOSTS_PAGE), "and not the host's");
    assert_eq!(host.calls(), 0, "the host's server got no request");
    assert!(TcpStream::connect(&address).is_err(), "the preview ends with the run: {}", done.stderr);
}

#[test]
fn landlock_tells_the_agent_that_it_has_no_browser() {
    let host = HostServer::start().unwrap();
    let server = ModelServer::start().unwrap();
    server.script(
        "work",
        Script::turns([
            Turn::new([Action::tool(
                "openBrowser",
                json!({"url": format!("http://localhost:{}/", host.port)}),
            )]),
            Turn::new([Action::tool("writeFile", json!({"path": "part.txt", "content": "x"}))]),
            Turn::new([Action::tool("done", json!({"summary": "without a browser"}))]),
        ]),
    );
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, &server);
    let done = env.ralph(&repo.dir, &["run", "--worktree", "--json", "--isolation", "landlock"]);
    if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
        return ralph_loop_testkit::skip(&done.stderr);
    }
    done.exits(0);
    let asked = pages::asked(&server);
    assert!(asked.contains("no browser runs in this sandbox"), "the prompt says so");
    assert_eq!(host.calls(), 0, "the host's server got no request");
}
