//! Health, readiness and metrics.

use crate::auth::{Caller, is_named_locally};
use crate::http::extract::Answer;
use crate::http::problem::Problem;
use crate::metrics::{gauge, head, label};
use crate::server::{SOCKETS, Server};
use axum::Json;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use ralph_loop_fleet::lease;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

pub(crate) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

pub(crate) async fn readyz(State(server): State<Arc<Server>>) -> Response {
    let probe = server.probe.get();
    let index = probe.index;
    let draining = server.scheduler.state().draining;
    let ready = index && !draining;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = json!({
        "ready": ready, "index": index, "draining": draining, "all_records_read": server.live.is_reconciled(),
    });
    if server.fleet.is_some() && probe.standby == Some(false) {
        // Usable, but losing the database's machine may lose data.
        body["warning"] =
            "the database has no synchronous standby: the latest sealed events may be lost with its machine"
                .into();
    }
    (status, Json(body)).into_response()
}

/// For logged-in users; on a local-only server, for requests by a local host name.
pub(crate) async fn metrics(State(server): State<Arc<Server>>, request: Request) -> Answer<Response> {
    if !server.is_local || !is_named_locally(request.headers()) {
        let (mut parts, _) = request.into_parts();
        Caller::from_request_parts(&mut parts, &server).await?;
    }
    let text = text(&server).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

async fn text(server: &Server) -> Result<String, Problem> {
    let mut text = server.metrics.text();
    text.push_str(&head("ralph_runs", "gauge", "Runs by status."));
    for (status, count) in server.index.statuses().await? {
        let _ = writeln!(text, "ralph_runs{{status=\"{}\"}} {count}", label(&status));
    }
    let state = server.scheduler.state();
    text.push_str(&head("ralph_scheduler_runs", "gauge", "Runs of this server."));
    let _ = writeln!(text, "ralph_scheduler_runs{{state=\"running\"}} {}", state.running);
    let _ = writeln!(text, "ralph_scheduler_runs{{state=\"waiting\"}} {}", state.waiting);
    text.push_str(&gauge("ralph_scheduler_limit", "Runs at a time, at most.", state.limit as f64));
    text.push_str(&head("ralph_provider_runs", "gauge", "Runs of this server by provider of sandboxes."));
    for provider in &state.providers {
        let name = label(&provider.name);
        let _ = writeln!(text, "ralph_provider_runs{{provider=\"{name}\"}} {}", provider.running);
    }
    let (held, watched) = server.live.sizes();
    let used = SOCKETS - server.sockets.available_permits();
    for (name, help, value) in [
        ("ralph_live_runs", "Runs whose state is held in memory.", held),
        ("ralph_watched_folders", "Folders that are watched.", watched),
        ("ralph_viewers", "Readers of runs.", server.live.viewer_count()),
        ("ralph_sockets", "Open WebSockets.", used),
    ] {
        text.push_str(&gauge(name, help, value as f64));
    }
    if let Some(side) = &server.fleet {
        let faults = side.fleet.within(lease::faults(side.fleet.pool())).await?;
        text.push_str(&head(
            "ralph_faults_total",
            "counter",
            "Holds on fleet runs that ended without a result.",
        ));
        for (class, total) in faults {
            let _ = writeln!(text, "ralph_faults_total{{class=\"{}\"}} {total}", label(&class));
        }
    }
    if let Some(bytes) = resident_bytes() {
        text.push_str(&gauge("process_resident_memory_bytes", "Memory of the server.", bytes as f64));
    }
    let costs = server.index.costs(crate::index::CostsBy::Agent, jiff::Timestamp::UNIX_EPOCH).await?;
    text.push_str(&head("ralph_cost_usd", "gauge", "What the runs of this machine have cost, by agent."));
    // A sample needs a number, so unknown costs are omitted.
    for (name, cost) in costs.rows.iter().filter_map(|row| Some((&row.name, row.cost_usd?))) {
        let _ = writeln!(text, "ralph_cost_usd{{agent=\"{}\"}} {cost}", label(name));
    }
    text.push_str(&head(
        "ralph_tokens",
        "gauge",
        "Tokens that the runs of this machine have used, by agent.",
    ));
    for (name, tokens) in costs.rows.iter().filter_map(|row| Some((&row.name, row.tokens?))) {
        let _ = writeln!(text, "ralph_tokens{{agent=\"{}\"}} {tokens}", label(name));
    }
    Ok(text)
}

fn resident_bytes() -> Option<u64> {
    let text = String::from_utf8(ralph_loop_safe_fs::read_plain("/proc/self/statm", 4096).ok()?).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
