//! Receipts of iterations: usage, changes and verdict. `receipt.json` is for users and accounting,
//! `metrics.json` for stuck detection.

use jiff::Timestamp;
use ralph_loop_domain::state::{Current, RunState};
use ralph_loop_domain::stuck::Signals;
use ralph_loop_protocol::event::Verdict;
use ralph_loop_protocol::money::Cost;
use ralph_loop_protocol::money::receipt::{Receipt, VERSION};

pub(crate) fn receipt(state: &RunState, current: &Current, verdict: Verdict, now: Timestamp) -> Vec<u8> {
    let session = current.session.as_ref();
    let change = current.change.as_ref();
    let used_model = session.and_then(|s| s.usage.model.as_deref());
    let receipt = Receipt {
        version: VERSION,
        run_id: state.spec.run_id.clone(),
        iteration: current.iteration,
        attempt: current.attempt,
        agent: current.agent.clone(),
        model: used_model.or(current.model.as_deref()).map(str::to_owned),
        prompt: current.prompt.clone(),
        started_at: current.started_at,
        ended_at: now,
        session_ms: session.map_or(0, |s| s.duration_ms),
        end: session.map(|s| s.end.clone()),
        exit_code: session.and_then(|s| s.exit_code),
        promised: session.is_some_and(|s| s.promised),
        message: session.map(|s| s.message.clone()).unwrap_or_default(),
        tokens: session.and_then(|s| s.usage.tokens),
        cost: session.map_or(Cost::UNKNOWN, |s| s.usage.spent()),
        saved_usd: session.and_then(|s| s.usage.saved),
        tree: change.map(|c| c.tree.clone()),
        commit: change.and_then(|c| c.commit.clone()),
        files_changed: change.map_or(0, |c| c.files),
        lines_added: change.map_or(0, |c| c.added),
        lines_removed: change.map_or(0, |c| c.removed),
        checks: current.checked.iter().filter_map(|name| state.work.checks.get(name)).cloned().collect(),
        protected_changed: current.protected.clone(),
        verdict,
        total_cost_usd: state.spending.totals.cost.known(),
        total_compute_usd: state.spending.compute.known_cost(),
        total_tokens: state.spending.totals.tokens,
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
        "consecutive_gutters": state.stuck.gutters,
        "files_changed": change.map_or(0, |c| c.files),
        "lines_added": change.map_or(0, |c| c.added),
        "lines_removed": change.map_or(0, |c| c.removed),
        "session_ms": current.session.as_ref().map_or(0, |s| s.duration_ms),
        "working_ms_total": state.spending.totals.working_ms,
        "waited_ms_total": state.spending.totals.waited_ms,
    });
    serde_json::to_vec_pretty(&value).unwrap_or_default()
}
