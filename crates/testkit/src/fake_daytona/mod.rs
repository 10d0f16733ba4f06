//! A fake Daytona on this machine: its API and toolbox, with sandboxes that are folders whose commands really run.
//!
//! The tests of `ralph-loop-providers` check it against the vendor's published specification and SDK.

mod api;
mod toolbox;

pub use crate::fake_cloud::{Fault, Seen};

use crate::fake_cloud::{Inside, Query, Reply, Server};
use crate::model_server::http::Request;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NOW: &str = "2026-11-15T12:00:00.000Z";

/// The server; it ends when it is dropped, with everything that runs in it.
pub struct FakeDaytona {
    server: Server,
    state: Arc<Mutex<State>>,
    key: String,
}

struct Sandbox {
    id: String,
    name: String,
    /// The current state, and the states of the next requests.
    states: Vec<&'static str>,
    asked: Value,
    labels: Value,
    auto_stop: f64,
    starts: u32,
    activity: u32,
    inside: Arc<Inside>,
}

#[derive(Default)]
struct State {
    sandboxes: BTreeMap<String, Sandbox>,
    volumes: BTreeMap<String, bool>,
    made: u32,
    page: usize,
    toolbox_url: String,
    old_daemon: bool,
}

impl FakeDaytona {
    pub fn start() -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State { page: 100, ..State::default() }));
        let key = ["dtn", "fake", "0123456789abcdef"].join("_");
        let (for_server, wanted) = (Arc::clone(&state), format!("Bearer {key}"));
        let handler = move |request: &Request| {
            if request.header("authorization") != Some(wanted.as_str()) {
                return refusal(401, &request.target, "Invalid credentials");
            }
            answer(&for_server, request)
        };
        let server = Server::start(handler, |status, why| refusal(status, "/", why))?;
        lock(&state).toolbox_url = format!("{}/toolbox", server.url());
        Ok(Self { server, state, key })
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    pub fn toolbox_url(&self) -> String {
        format!("{}/toolbox", self.server.url())
    }

    /// Announces another URL of the toolboxes, such as a proxy's.
    pub fn announce_toolbox(&self, url: &str) {
        url.clone_into(&mut lock(&self.state).toolbox_url);
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// Makes the next response fail if the request line (`POST /sandbox`) contains `part`.
    pub fn fail(&self, part: &str, fault: Fault) {
        self.server.fail(part, fault);
    }

    pub fn page_size(&self, size: usize) {
        lock(&self.state).page = size.max(1);
    }

    /// Splits commands into words and starts them without a shell, like older daemons.
    pub fn old_daemon(&self) {
        lock(&self.state).old_daemon = true;
    }

    /// Stops a sandbox without a request, as the vendor does with idle ones.
    pub fn stop_idle(&self, id: &str) {
        if let Some(sandbox) = lock(&self.state).sandboxes.get_mut(id) {
            sandbox.inside.kill_all();
            sandbox.states = vec!["stopped"];
        }
    }

    /// Creates a foreign sandbox; returns its id.
    pub fn make_foreign(&self, name: &str) -> String {
        let body = json!({ "name": name, "labels": { "owner": name } });
        let reply = api::create(&mut lock(&self.state), body, &|status, why| refusal(status, "/", why));
        let made: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        made["id"].as_str().unwrap_or_default().to_owned()
    }

    pub fn activity(&self, id: &str) -> u32 {
        lock(&self.state).sandboxes.get(id).map_or(0, |sandbox| sandbox.activity)
    }

    pub fn asked(&self, id: &str) -> Option<Value> {
        lock(&self.state).sandboxes.get(id).map(|sandbox| sandbox.asked.clone())
    }

    /// The port that a request to this URL with these headers reaches; `None` if the vendor refuses it.
    pub fn reached_by(&self, url: &str, headers: &BTreeMap<String, String>) -> Option<u16> {
        let (port, rest) = url.strip_prefix("https://")?.split_once('-')?;
        let state = lock(&self.state);
        let sandbox = state.sandboxes.get(rest.strip_suffix(".proxy.daytona.invalid")?)?;
        let token = format!("token-{}", sandbox.starts);
        let open = sandbox.states.first() == Some(&"started")
            && headers.get("X-Daytona-Preview-Token") == Some(&token);
        port.parse().ok().filter(|_| open)
    }

    pub fn left(&self) -> Vec<String> {
        lock(&self.state).sandboxes.keys().cloned().collect()
    }

    pub fn lose_all(&self) {
        let lost = std::mem::take(&mut lock(&self.state).sandboxes);
        lost.values().for_each(|sandbox| sandbox.inside.end());
    }

    pub fn made(&self) -> u32 {
        lock(&self.state).made
    }

    /// All requests, oldest first.
    pub fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }
}

impl Drop for FakeDaytona {
    fn drop(&mut self) {
        lock(&self.state).sandboxes.values().for_each(|sandbox| sandbox.inside.end());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refusal(status: u16, path: &str, message: &str) -> Reply {
    let body =
        json!({ "path": path, "timestamp": NOW, "statusCode": status, "error": "Error", "message": message });
    Reply::json(status, &body)
}

fn answer(state: &Mutex<State>, request: &Request) -> Reply {
    let (mut path, query) = Query::split(&request.target);
    if path.first().is_some_and(|first| first == "api") {
        path.remove(0);
    }
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["toolbox", id, rest @ ..] => {
            let mut state = lock(state);
            let old = state.old_daemon;
            let inside = match state.sandboxes.get_mut(*id) {
                None => return refusal(404, &request.target, "Sandbox not found"),
                Some(found) if found.states.first() != Some(&"started") => {
                    return refusal(400, &request.target, "Sandbox is not running");
                }
                Some(found) => Arc::clone(&found.inside),
            };
            drop(state);
            if old && rest == ["process", "execute"] {
                return toolbox::execute_words(&inside, request);
            }
            toolbox::answer(&inside, request, rest, &query)
        }
        rest => api::answer(&mut lock(state), request, rest, &query),
    }
}
