//! The server's state: scripts, and the requests per scenario and run id.

use super::ask::Ask;
use super::fault::FaultKind;
use super::scenarios::built_in;
use super::script::{Script, Turn};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Requests kept per run; older ones are only counted.
const SEEN_MAX: usize = 64;
/// Maximum number of runs; beyond that the least recently active one is dropped.
const RUNS_MAX: usize = 1024;
/// Characters of a body that `/__state` shows.
const BODY_SHOWN: usize = 2000;
/// Headers whose value `/__state` does not show.
const SECRET_HEADERS: &[&str] = &["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"];

#[derive(Debug, Clone)]
pub struct SeenRequest {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// Its JSON; null if it wasn't valid JSON.
    pub body: Value,
    pub at: Duration,
    /// The number of earlier answers in it; none for counts and lists.
    pub turn: Option<usize>,
    /// Whether it was a title or a router, outside the script.
    pub side: bool,
    /// The fault sent instead of the script.
    pub fault: Option<&'static str>,
}

impl SeenRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    fn shown(&self) -> Value {
        let headers = self.headers.iter().map(|(name, value)| {
            let is_secret = SECRET_HEADERS.contains(&name.as_str());
            (name.clone(), json!(if is_secret { format!("<{} chars>", value.len()) } else { value.clone() }))
        });
        let body: String = self.body.to_string().chars().take(BODY_SHOWN).collect();
        json!({"method": self.method, "path": self.path, "at_ms": self.at.as_millis() as u64, "turn": self.turn,
            "side": self.side, "fault": self.fault, "headers": headers.collect::<serde_json::Map<_, _>>(), "body": body})
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub requests: u64,
    /// Requests that were part of the script, including failed ones.
    pub turns: u64,
    pub side: u64,
    pub faults: u64,
    pub sessions: usize,
}

#[derive(Debug, Default)]
struct Run {
    counts: Counts,
    hits: Vec<i64>,
    last: u64,
    seen: VecDeque<SeenRequest>,
}

#[derive(Debug)]
pub(super) enum Plan {
    Side,
    Turn { turn: Box<Turn>, session: usize, fault: Option<FaultKind> },
}

#[derive(Debug, Default)]
pub(super) struct State {
    scripts: BTreeMap<String, Arc<Script>>,
    runs: BTreeMap<(String, String), Run>,
    counter: u64,
    clock: u64,
}

impl State {
    pub(super) fn script(&mut self, name: &str, script: Script) {
        self.scripts.insert(name.to_owned(), Arc::new(script));
    }

    /// The scenario of this name. Built-in ones are made when first asked for.
    pub(super) fn find(&mut self, name: &str) -> Option<Arc<Script>> {
        if let Some(script) = self.scripts.get(name) {
            return Some(Arc::clone(script));
        }
        let script = Arc::new(built_in(name)?);
        self.scripts.insert(name.to_owned(), Arc::clone(&script));
        Some(script)
    }

    pub(super) fn reset(&mut self) {
        self.runs.clear();
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn run(&mut self, scenario: &str, run: &str) -> &mut Run {
        self.clock += 1;
        let key = (scenario.to_owned(), run.to_owned());
        if self.runs.len() >= RUNS_MAX && !self.runs.contains_key(&key) {
            let oldest = self.runs.iter().min_by_key(|(_, run)| run.last).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.runs.remove(&key));
        }
        let found = self.runs.entry(key).or_default();
        found.last = self.clock;
        found
    }

    pub(super) fn note(&mut self, scenario: &str, run: &str, seen: SeenRequest) {
        self.run(scenario, run).keep(seen);
    }

    pub(super) fn plan(
        &mut self,
        names: (&str, &str),
        script: &Script,
        ask: &Ask,
        mut seen: SeenRequest,
    ) -> Plan {
        let run = self.run(names.0, names.1);
        if ask.is_side(script.toolless) {
            run.counts.side += 1;
            seen.side = true;
            run.keep(seen);
            return Plan::Side;
        }
        run.counts.turns += 1;
        seen.turn = Some(ask.turn);
        run.hits.resize(script.faults.len(), 0);
        let due =
            script.faults.iter().zip(&mut run.hits).find(|(fault, hits)| fault.is_due(ask.turn, **hits));
        let fault = due.map(|(fault, hits)| {
            *hits += 1;
            fault.kind.clone()
        });
        run.counts.faults += u64::from(fault.is_some());
        seen.fault = fault.as_ref().map(FaultKind::name);
        let session = match ask.session {
            Some(session) => session,
            // A request without a response is retried: it is the same session.
            None if ask.turn == 0 && !fault.as_ref().is_some_and(FaultKind::spoils) => {
                run.counts.sessions += 1;
                run.counts.sessions - 1
            }
            None if ask.turn == 0 => run.counts.sessions,
            None => run.counts.sessions.saturating_sub(1),
        };
        run.keep(seen);
        Plan::Turn { turn: Box::new(script.turn(session, ask.turn)), session, fault }
    }

    /// The kept requests of a run, oldest first.
    pub(super) fn requests(&self, scenario: &str, run: &str) -> Vec<SeenRequest> {
        let found = self.runs.get(&(scenario.to_owned(), run.to_owned()));
        found.map(|run| run.seen.iter().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn counts(&self, scenario: &str, run: &str) -> Counts {
        self.runs.get(&(scenario.to_owned(), run.to_owned())).map(|run| run.counts).unwrap_or_default()
    }

    pub(super) fn shown(&self) -> Value {
        let runs = self.runs.iter().map(|((scenario, name), run)| {
            json!({"scenario": scenario, "run": name, "requests": run.counts.requests, "turns": run.counts.turns, "side": run.counts.side,
                "faults": run.counts.faults, "sessions": run.counts.sessions,
                "last": run.seen.iter().rev().take(3).map(SeenRequest::shown).collect::<Vec<_>>()})
        });
        json!({"runs": runs.collect::<Vec<_>>(), "scripts": self.scripts.keys().collect::<Vec<_>>()})
    }
}

impl Run {
    fn keep(&mut self, seen: SeenRequest) {
        self.counts.requests += 1;
        if self.seen.len() >= SEEN_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(seen);
    }
}
