//! A fake Vercel Sandbox on this machine, with sandboxes that are folders whose commands really run.
//!
//! There is no published specification; the vendor's own SDK, run against it by the tests of `ralph-loop-providers`, checks every
//! answer's shape.

mod api;
mod session;

pub use crate::fake_cloud::{Fault, Seen};

use crate::fake_cloud::{Inside, Query, Reply, Server};
use crate::model_server::http::Request;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NOW: u64 = 1_794_744_000_000;

/// The server; it ends when it is dropped, with everything that runs in it.
pub struct FakeVercel {
    server: Server,
    state: Arc<Mutex<State>>,
    token: String,
}

struct Sandbox {
    name: String,
    asked: Value,
    sessions: u32,
    /// The current state, and the states of the next requests.
    states: Vec<&'static str>,
    ports: Vec<u64>,
    timeout: u64,
    extended: u32,
    commands: u32,
    inside: Arc<Inside>,
}

impl Sandbox {
    fn session(&self) -> String {
        format!("sbx_{}_{}", self.name, self.sessions)
    }
    fn status(&self) -> &'static str {
        self.states.first().copied().unwrap_or("failed")
    }
    /// Each request shows the next state of a change in progress.
    fn look(&mut self) {
        if self.states.len() > 1 {
            self.states.remove(0);
        }
    }
}

#[derive(Default)]
struct State {
    sandboxes: BTreeMap<String, Sandbox>,
    drives: BTreeSet<String>,
    made: u32,
    page: usize,
}

impl FakeVercel {
    pub const TEAM: &str = "team_fake";
    pub const PROJECT: &str = "prj_fake";

    pub fn start() -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State { page: 100, ..State::default() }));
        let token = ["vercel", "fake", "0123456789abcdef"].join("_");
        let (for_server, wanted) = (Arc::clone(&state), format!("Bearer {token}"));
        let handler = move |request: &Request| {
            if request.header("authorization") != Some(wanted.as_str()) {
                return refusal(403, "The request is missing an authentication token");
            }
            answer(&for_server, request)
        };
        let server = Server::start(handler, refusal)?;
        Ok(Self { server, state, token })
    }

    pub fn url(&self) -> String {
        format!("{}/api", self.server.url())
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// Makes the next response fail if the request line (`POST /api/v3/sandboxes`) contains `part`.
    pub fn fail(&self, part: &str, fault: Fault) {
        self.server.fail(part, fault);
    }

    pub fn page_size(&self, size: usize) {
        lock(&self.state).page = size.max(1);
    }

    pub fn expire(&self, name: &str) {
        if let Some(sandbox) = lock(&self.state).sandboxes.get_mut(name) {
            sandbox.inside.kill_all();
            sandbox.states = vec!["stopped"];
        }
    }

    /// A session's length in milliseconds, and how often it was extended.
    pub fn extended(&self, name: &str) -> (u64, u32) {
        lock(&self.state).sandboxes.get(name).map_or((0, 0), |sandbox| (sandbox.timeout, sandbox.extended))
    }

    pub fn asked(&self, name: &str) -> Option<Value> {
        lock(&self.state).sandboxes.get(name).map(|sandbox| sandbox.asked.clone())
    }

    pub fn make_foreign(&self, name: &str) {
        api::create(
            &mut lock(&self.state),
            json!({ "projectId": Self::PROJECT, "name": name, "tags": { "owner": name } }),
        );
    }

    /// The port that a request to this URL reaches; `None` if the vendor refuses it.
    pub fn reached_by(&self, url: &str) -> Option<u16> {
        let name = url.strip_prefix("https://")?.strip_suffix(".vercel.invalid")?;
        let (name, port) = name.rsplit_once('-')?;
        let port = port.parse::<u16>().ok()?;
        let state = lock(&self.state);
        let sandbox = state.sandboxes.get(name)?;
        (sandbox.status() == "running" && sandbox.ports.contains(&u64::from(port))).then_some(port)
    }

    pub fn made(&self) -> u32 {
        lock(&self.state).made
    }

    /// All requests, oldest first.
    pub fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }
}

impl Drop for FakeVercel {
    fn drop(&mut self) {
        lock(&self.state).sandboxes.values().for_each(|sandbox| sandbox.inside.end());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refusal(status: u16, message: &str) -> Reply {
    let code = match status {
        404 => "not_found",
        410 => "sandbox_stopped",
        _ => "bad_request",
    };
    Reply::json(status, &json!({ "error": { "code": code, "message": message } }))
}

fn answer(state: &Mutex<State>, request: &Request) -> Reply {
    let (path, query) = Query::split(&request.target);
    let words: Vec<&str> = path.iter().map(String::as_str).skip_while(|word| *word == "api").collect();
    if query.get("teamId") != Some(FakeVercel::TEAM) {
        return refusal(403, "Not authorized: this team is not yours");
    }
    match words.as_slice() {
        ["v2", "sandboxes", "sessions", id, rest @ ..] => session::answer(state, request, id, rest),
        ["v2" | "v3", "sandboxes", rest @ ..] => api::answer(&mut lock(state), request, rest, &query),
        _ => refusal(404, "no such route"),
    }
}
