//! Receipts: what one iteration used, did and was judged to be. `receipt.json` is for people and accounting,
//! `metrics.json` for the stuck signals.

use jiff::Timestamp;
use ralph_domain::event::{CheckResult, SessionEnd, Verdict};
use ralph_domain::id::{AgentName, CommitId, Digest, RunId, TreeId};
use ralph_domain::money::{CostBasis, Tokens, Usd};
use ralph_domain::protect::ProtectedChange;
use ralph_domain::state::{Current, RunState};
use ralph_domain::stuck::Signals;
use serde::Serialize;

#[derive(Debug, Serialize)]
struct Receipt<'a> {
    version: u32,
    run_id: &'a RunId,
    iteration: u32,
    attempt: u32,
    agent: &'a AgentName,
    model: Option<&'a str>,
    prompt: &'a Digest,
    started_at: Timestamp,
    ended_at: Timestamp,
    session_ms: u64,
    end: Option<&'a SessionEnd>,
    exit_code: Option<i32>,
    promised: bool,
    message: &'a str,
    tokens: Option<Tokens>,
    cost_usd: Option<Usd>,
    cost_basis: CostBasis,
    saved_usd: Option<Usd>,
    tree: Option<&'a TreeId>,
    commit: Option<&'a CommitId>,
    files_changed: usize,
    lines_added: u64,
    lines_removed: u64,
    checks: Vec<&'a CheckResult>,
    protected_changed: &'a [ProtectedChange],
    verdict: Verdict,
    total_cost_usd: Usd,
    /// An estimate of what the run's sandboxes have cost up to now.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_compute_usd: Option<Usd>,
    total_tokens: Tokens,
}

pub(crate) fn receipt(state: &RunState, current: &Current, verdict: Verdict, now: Timestamp) -> Vec<u8> {
    let session = current.session.as_ref();
    let change = current.change.as_ref();
    let used_model = session.and_then(|s| s.usage.model.as_deref());
    let receipt = Receipt {
        version: 1,
        run_id: &state.spec.run_id,
        iteration: current.iteration,
        attempt: current.attempt,
        agent: &current.agent,
        model: used_model.or(current.model.as_deref()),
        prompt: &current.prompt,
        started_at: current.started_at,
        ended_at: now,
        session_ms: session.map_or(0, |s| s.duration_ms),
        end: session.map(|s| &s.end),
        exit_code: session.and_then(|s| s.exit_code),
        promised: session.is_some_and(|s| s.promised),
        message: session.map_or("", |s| s.message.as_str()),
        tokens: session.and_then(|s| s.usage.tokens),
        cost_usd: session.and_then(|s| s.usage.cost),
        cost_basis: session.map_or(CostBasis::Unknown, |s| s.usage.basis),
        saved_usd: session.and_then(|s| s.usage.saved),
        tree: change.map(|c| &c.tree),
        commit: change.and_then(|c| c.commit.as_ref()),
        files_changed: change.map_or(0, |c| c.files),
        lines_added: change.map_or(0, |c| c.added),
        lines_removed: change.map_or(0, |c| c.removed),
        checks: current.checked.iter().filter_map(|name| state.checks.get(name)).collect(),
        protected_changed: &current.protected,
        verdict,
        total_cost_usd: state.totals.cost,
        total_compute_usd: state.compute.known_cost(),
        total_tokens: state.totals.tokens,
    };
    serde_json::to_vec_pretty(&receipt).unwrap_or_default()
}

pub(crate) fn metrics(state: &RunState, current: &Current, signals: &Signals) -> Vec<u8> {
    let change = current.change.as_ref();
    let seen: Vec<_> = signals
        .seen()
        .map(|(signal, weight, words)| {
            serde_json::json!({ "signal": signal.name(), "kind": signal.kind(), "weight": weight, "evidence": words })
        })
        .collect();
    let value = serde_json::json!({
        "version": 1,
        "iteration": current.iteration,
        "loop_score": signals.loop_score,
        "kinds": signals.kinds(),
        "signals": signals,
        "seen": seen,
        "gutter_score": state.spec.settings.gutter_score,
        "consecutive_gutters": state.gutters,
        "files_changed": change.map_or(0, |c| c.files),
        "lines_added": change.map_or(0, |c| c.added),
        "lines_removed": change.map_or(0, |c| c.removed),
        "session_ms": current.session.as_ref().map_or(0, |s| s.duration_ms),
        "working_ms_total": state.totals.working_ms,
        "waited_ms_total": state.totals.waited_ms,
    });
    serde_json::to_vec_pretty(&value).unwrap_or_default()
}
