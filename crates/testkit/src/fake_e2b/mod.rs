//! A fake E2B on this machine: its API and the `envd` inside, with sandboxes that are folders whose commands really run.
//!
//! The tests of `ralph-loop-providers` check it against the vendor's published specification and SDK.

mod api;
mod envd;

pub use crate::fake_cloud::{Fault, Seen};

use crate::fake_cloud::{Inside, Query, Reply, Server};
use crate::model_server::http::Request;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NOW: &str = "2026-11-15T12:00:00Z";
/// The reported `envd` version.
const ENVD: &str = "0.5.7";

/// The server; it ends when it is dropped, with everything that runs in it.
pub struct FakeE2b {
    server: Server,
    state: Arc<Mutex<State>>,
    key: String,
}

struct Sandbox {
    id: String,
    paused: bool,
    asked: Value,
    /// The last timeout, and how often a timeout was set.
    timeout: u64,
    extended: u32,
    wakes: u32,
    inside: Arc<Inside>,
}

impl Sandbox {
    fn token(&self) -> String {
        format!("envd-{}-{}", self.id, self.wakes)
    }
}

#[derive(Default)]
struct State {
    sandboxes: BTreeMap<String, Sandbox>,
    volumes: Vec<String>,
    made: u32,
    page: usize,
}

impl FakeE2b {
    pub fn start() -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State { page: 100, ..State::default() }));
        let key = ["e2b", "0123456789abcdef0123456789abcdef01234567"].join("_");
        let (for_server, wanted) = (Arc::clone(&state), key.clone());
        let handler = move |request: &Request| answer(&for_server, request, &wanted);
        let server = Server::start(handler, refusal)?;
        Ok(Self { server, state, key })
    }

    /// The URL of the API and of the sandboxes, which a header distinguishes.
    pub fn url(&self) -> String {
        self.server.url()
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// Makes the next response fail if the request line (`POST /sandboxes`) contains `part`.
    pub fn fail(&self, part: &str, fault: Fault) {
        self.server.fail(part, fault);
    }

    pub fn page_size(&self, size: usize) {
        lock(&self.state).page = size.max(1);
    }

    /// Lets a sandbox time out: it pauses.
    pub fn expire(&self, id: &str) {
        if let Some(sandbox) = lock(&self.state).sandboxes.get_mut(id) {
            sandbox.inside.kill_all();
            sandbox.paused = true;
        }
    }

    /// The last timeout, and how often a timeout was set.
    pub fn extended(&self, id: &str) -> (u64, u32) {
        lock(&self.state).sandboxes.get(id).map_or((0, 0), |sandbox| (sandbox.timeout, sandbox.extended))
    }

    pub fn asked(&self, id: &str) -> Option<Value> {
        lock(&self.state).sandboxes.get(id).map(|sandbox| sandbox.asked.clone())
    }

    /// Creates a foreign sandbox; returns its id.
    pub fn make_foreign(&self, name: &str) -> String {
        let body = json!({ "templateID": "base", "metadata": { "owner": name } });
        let reply = api::create(&mut lock(&self.state), body);
        let made: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        made["sandboxID"].as_str().unwrap_or_default().to_owned()
    }

    /// The port that a request to this URL with these headers reaches; `None` if the vendor refuses it.
    pub fn reached_by(&self, url: &str, headers: &BTreeMap<String, String>) -> Option<u16> {
        let (port, rest) = url.strip_prefix("https://")?.split_once('-')?;
        let id = rest.strip_suffix(".e2b.invalid")?;
        let awake = lock(&self.state).sandboxes.get(id).is_some_and(|sandbox| !sandbox.paused);
        let told = headers.get("e2b-traffic-access-token") == Some(&format!("traffic-{id}"));
        port.parse().ok().filter(|_| awake && told)
    }

    pub fn made(&self) -> u32 {
        lock(&self.state).made
    }

    /// All requests, oldest first.
    pub fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }
}

impl Drop for FakeE2b {
    fn drop(&mut self) {
        lock(&self.state).sandboxes.values().for_each(|sandbox| sandbox.inside.end());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refusal(status: u16, message: &str) -> Reply {
    Reply::json(status, &json!({ "code": status, "message": message }))
}

fn answer(state: &Mutex<State>, request: &Request, key: &str) -> Reply {
    let (path, query) = Query::split(&request.target);
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    if let Some(id) = request.header("e2b-sandbox-id") {
        let inside = match lock(state).sandboxes.get(id) {
            // The sandbox proxy's answer for a missing or paused sandbox.
            None => return refusal(502, "The sandbox was not found"),
            Some(found) if found.paused => return refusal(502, "The sandbox is paused"),
            Some(found) if request.header("x-access-token") != Some(found.token().as_str()) => {
                return refusal(401, "unauthenticated");
            }
            Some(found) => Arc::clone(&found.inside),
        };
        return envd::answer(&inside, request, &words, &query);
    }
    if request.header("x-api-key") != Some(key) {
        return refusal(401, "Invalid API key");
    }
    api::answer(&mut lock(state), request, &words, &query)
}
