//! Checks, statuses, jobs and their logs.

use super::api::{paged, put_status, refusal};
use super::shapes;
use super::state::{CheckRun, State};
use crate::fake_cloud::{Query, Reply};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) fn answer(state: &mut State, method: &str, path: &[&str], query: &Query, body: &Value) -> Reply {
    let run = |state: &State, id: &str| -> Option<(u64, CheckRun)> {
        state.checks.iter().find(|(known, _)| known.to_string() == id).cloned()
    };
    match (method, path) {
        ("GET", ["commits", commit, "check-runs"]) => {
            let found =
                latest(state, commit).iter().map(|(id, run)| shapes::check(state, *id, run)).collect();
            paged(state, path, query, found, Some(("check_runs", json!({}))))
        }
        ("GET", ["commits", commit, "status"]) => combined(state, path, query, commit),
        ("POST", ["statuses", commit]) => put_status(state, commit, body),
        ("GET", ["check-runs", id]) => match run(state, id) {
            Some((id, run)) => Reply::json(200, &shapes::check(state, id, &run)),
            None => refusal(404, "Not Found"),
        },
        ("GET", ["check-runs", id, "annotations"]) => {
            let all = run(state, id).map(|(_, run)| run.annotations).unwrap_or_default();
            let all = all.iter().map(|(path, line, text)| shapes::annotation(path, *line, text)).collect();
            paged(state, path, query, all, None)
        }
        ("GET", ["actions", "jobs", id, "logs"]) => match run(state, id) {
            Some((id, CheckRun { log: Some(_), .. })) => {
                Reply::empty(302).header("location", format!("{}/log-store/{id}?sig=x", state.url))
            }
            _ => refusal(404, "Not Found"),
        },
        ("GET", ["actions", "runs"]) => {
            let wanted = query.get("head_sha").unwrap_or_default();
            let suites: BTreeMap<u64, &CheckRun> = state
                .checks
                .iter()
                .filter(|(_, run)| run.commit == wanted)
                .map(|(_, run)| (run.suite, run))
                .collect();
            let found = suites.into_values().map(|run| shapes::workflow_run(state, run)).collect();
            paged(state, path, query, found, Some(("workflow_runs", json!({}))))
        }
        _ => refusal(404, "Not Found"),
    }
}

/// A log, for every client with its URL; GitHub's store takes no token.
pub(crate) fn log(state: &State, id: &str, has_token: bool) -> Reply {
    if has_token {
        return Reply::bytes(400, "text/plain", b"no token belongs here".to_vec());
    }
    let found =
        state.checks.iter().find(|(known, _)| known.to_string() == id).and_then(|(_, run)| run.log.clone());
    let lines: String = found
        .unwrap_or_default()
        .lines()
        .map(|line| format!("2026-11-15T12:00:00.0000000Z {line}\n"))
        .collect();
    Reply::bytes(200, "text/plain", lines.into_bytes())
}

/// Like `filter=latest`: the latest of each name within a suite, newest first.
fn latest(state: &State, commit: &str) -> Vec<(u64, CheckRun)> {
    let mut found: BTreeMap<(String, u64), (u64, CheckRun)> = BTreeMap::new();
    for (id, run) in state.checks.iter().filter(|(_, run)| run.commit == commit) {
        found.insert((run.name.clone(), run.suite), (*id, run.clone()));
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
    found
}

fn combined(state: &State, path: &[&str], query: &Query, commit: &str) -> Reply {
    let mut seen = std::collections::BTreeSet::new();
    let found: Vec<_> = state
        .statuses
        .iter()
        .rev()
        .filter(|s| s.commit == commit && seen.insert(s.context.clone()))
        .collect();
    let any = |word: &str| found.iter().any(|s| s.state == word);
    let whole = match found.len() {
        0 => "pending",
        _ if any("failure") || any("error") => "failure",
        _ if any("pending") => "pending",
        _ => "success",
    };
    let url = format!("{}/repos/{}/commits/{commit}", state.url, state.full_name());
    let within = json!({
        "state": whole, "sha": commit, "url": url, "commit_url": url,
        "repository": shapes::repo(state, super::state::Reach::Read),
    });
    let all = found.into_iter().map(|status| shapes::status(state, status)).collect();
    paged(state, path, query, all, Some(("statuses", within)))
}
