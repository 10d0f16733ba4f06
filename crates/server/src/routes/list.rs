//! All routes by path and purpose.

use super::{costs, create, demo, docs, health, page, prepare, races, run, runs, watch};
use crate::routes::people::{access, fleet, mcp, session};
use crate::routes::record::{artifacts, diff, events, files, iterations, output};
use crate::routes::steer::{control, debug, diagnosis, guardrails, result, sandbox, task};
use crate::server::Server;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any, delete, get, post, put};
use std::sync::Arc;

/// Size limit of a request.
const BODY_MAX: usize = 1024 * 1024;

/// One route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The method in lower case.
    pub method: &'static str,
    pub path: &'static str,
    /// The required role; empty if no login is needed.
    pub role: &'static str,
    pub summary: &'static str,
}

const fn op(
    method: &'static str,
    path: &'static str,
    role: &'static str,
    summary: &'static str,
) -> Operation {
    Operation { method, path, role, summary }
}

#[rustfmt::skip]
pub fn operations() -> &'static [Operation] {
    const ALL: &[Operation] = &[
        op("post", "/api/v1/login", "", "Log in with a token, or with a code that works once; sets the session's cookie"),
        op("post", "/api/v1/logout", "viewer", "End the session of this browser"),
        op("get", "/api/v1/me", "viewer", "Who is logged in"),
        op("get", "/api/v1/runs", "viewer", "The list of runs: filtered, sorted, a page at a time"),
        op("post", "/api/v1/runs", "operator", "Start a run, or put it into the queue; `Idempotency-Key` makes it safe to repeat"),
        op("get", "/api/v1/races", "viewer", "The latest races, newest first: several runs of one task side by side"),
        op("get", "/api/v1/races/{run}", "viewer", "The race that a run is one of"),
        op("get", "/api/v1/runs/{run}", "viewer", "The state of one run"),
        op("delete", "/api/v1/runs/{run}", "operator", "Remove a run that has ended, or one that hasn't started"),
        op("get", "/api/v1/runs/{run}/events", "viewer", "Its events from a number on"),
        op("get", "/api/v1/runs/{run}/ws", "viewer", "WebSocket: its events from a number on, its output, and views of it"),
        op("get", "/api/v1/runs/{run}/sse", "viewer", "The same as server-sent events"),
        op("get", "/api/v1/ws", "viewer", "WebSocket: rows of the list as they change"),
        op("get", "/api/v1/runs/{run}/iterations", "viewer", "Its finished iterations with their receipts"),
        op("get", "/api/v1/runs/{run}/iterations/{iteration}", "viewer", "One iteration in detail"),
        op("get", "/api/v1/runs/{run}/output/{iteration}", "viewer", "What its agent printed, a piece at a time"),
        op("get", "/api/v1/runs/{run}/output/{iteration}/search", "viewer", "Lines of that output with some words"),
        op("post", "/api/v1/runs/{run}/control", "operator", "Steer it: a letter to its inbox"),
        op("get", "/api/v1/runs/{run}/task", "viewer", "Its task, with an ETag"),
        op("put", "/api/v1/runs/{run}/task", "operator", "Edit its task; needs `If-Match`"),
        op("get", "/api/v1/runs/{run}/files", "viewer", "A folder of its workspace"),
        op("get", "/api/v1/runs/{run}/files/{path}", "viewer", "A text file of its workspace, with an ETag"),
        op("put", "/api/v1/runs/{run}/files/{path}", "operator", "Edit the task, or add to notes and guardrails; needs `If-Match`"),
        op("get", "/api/v1/runs/{run}/guardrails", "viewer", "Its guardrails and notes"),
        op("get", "/api/v1/runs/{run}/diff", "viewer", "What it has changed: in all, in one iteration, or between two"),
        op("get", "/api/v1/runs/{run}/result", "viewer", "Its result, and the ways to take it"),
        op("post", "/api/v1/runs/{run}/result", "operator", "Apply its result, make a branch of it, push it, or open a pull request"),
        op("get", "/api/v1/runs/{run}/diagnosis", "viewer", "The doctor's latest report"),
        op("post", "/api/v1/runs/{run}/debug", "operator", "One of the listed commands, where its mode is debug"),
        op("get", "/api/v1/runs/{run}/sandbox", "viewer", "Where it works"),
        op("get", "/api/v1/runs/{run}/artifacts", "viewer", "The files of its record"),
        op("get", "/api/v1/runs/{run}/artifacts/{name}", "viewer", "A file of its record"),
        op("post", "/api/v1/demo", "operator", "Start a scripted run, without account or network, in a separate folder"),
        op("post", "/api/v1/lint", "viewer", "What the linter says of a task"),
        op("post", "/api/v1/preview", "operator", "The first prompt of a run that is not started"),
        op("get", "/api/v1/templates", "viewer", "Beginnings for tasks"),
        op("get", "/api/v1/repos", "viewer", "Folders that runs may be started in"),
        op("get", "/api/v1/suggestions", "viewer", "Branches, agents, profiles and task files of a repo, for a new run"),
        op("get", "/api/v1/costs", "viewer", "What runs cost, by day, agent, model or repo"),
        op("get", "/api/v1/scheduler", "viewer", "How busy the server is"),
        op("get", "/api/v1/audit", "admin", "Who did what, when and from where"),
        op("get", "/api/v1/secrets", "admin", "Which secrets are set; none is ever shown"),
        op("put", "/api/v1/secrets/{name}", "admin", "Set a secret"),
        op("delete", "/api/v1/secrets/{name}", "admin", "Remove a secret"),
        op("get", "/api/v1/people", "admin", "List the users"),
        op("post", "/api/v1/people", "admin", "Add a user; the token is shown once"),
        op("delete", "/api/v1/people/{name}", "admin", "Revoke a user's token"),
        op("get", "/api/v1/fleet/workers", "viewer", "The workers of the fleet: labels, load, version, health"),
        op("get", "/api/v1/fleet/runs", "viewer", "The runs of the fleet, and who has each"),
        op("post", "/api/v1/fleet/tokens", "admin", "A token that lets one worker in, within an hour; shown once"),
        op("post", "/api/v1/fleet/enrol", "", "Change such a token for a login of the worker's own"),
        op("post", "/api/v1/fleet/workers/{worker}/revoke", "admin", "Take a worker's rights away; others take its runs"),
        op("post", "/api/v1/fleet/workers/{worker}/drain", "admin", "Let a worker hand over its runs and take no further one"),
        op("post", "/api/v1/hooks/github", "", "What GitHub sends, by its signature"),
        op("get", "/healthz", "", "Whether the server lives"),
        op("get", "/readyz", "", "Whether it can be used"),
        op("get", "/metrics", "", "Counters for Prometheus; needs a token where others than this machine reach the server"),
        op("post", "/mcp", "viewer", "The Model Context Protocol (streamable HTTP) for other agents; what a caller may change there is what its role may"),
    ];
    ALL
}

pub fn router(server: Arc<Server>) -> Router {
    let runs = Router::new()
        .route("/", get(run::view).delete(runs::remove))
        .route("/events", get(events::events))
        .route("/ws", get(watch::run_ws))
        .route("/sse", get(watch::run_sse))
        .route("/iterations", get(iterations::iterations))
        .route("/iterations/{iteration}", get(iterations::iteration))
        .route("/output/{iteration}", get(output::output))
        .route("/output/{iteration}/search", get(output::search))
        .route("/control", post(control::control))
        .route("/task", get(task::get).put(task::put))
        .route("/files", get(files::folder))
        .route("/files/{*path}", get(files::get).put(files::put))
        .route("/guardrails", get(guardrails::guardrails))
        .route("/diff", get(diff::diff))
        .route("/result", get(result::get).post(result::post))
        .route("/diagnosis", get(diagnosis::diagnosis))
        .route("/debug", post(debug::debug))
        .route("/sandbox", get(sandbox::sandbox))
        .route("/artifacts", get(artifacts::list))
        .route("/artifacts/{*name}", get(artifacts::file));
    let api = Router::new()
        .route("/login", post(session::login))
        .route("/logout", post(session::logout))
        .route("/me", get(session::me))
        .route("/runs", get(runs::list).post(create::create))
        .nest("/runs/{run}", runs)
        .route("/ws", get(watch::list_ws))
        .route("/demo", post(demo::start))
        .route("/lint", post(prepare::lint))
        .route("/preview", post(prepare::preview))
        .route("/templates", get(prepare::templates))
        .route("/repos", get(prepare::repos))
        .route("/suggestions", get(prepare::suggestions))
        .route("/races", get(races::list))
        .route("/races/{run}", get(races::one))
        .route("/costs", get(costs::costs))
        .route("/scheduler", get(access::scheduler))
        .route("/audit", get(access::audit))
        .route("/secrets", get(access::secrets))
        .route("/secrets/{name}", put(access::set_secret).delete(access::unset_secret))
        .route("/fleet/workers", get(fleet::list))
        .route("/fleet/runs", get(fleet::fleet_runs))
        .route("/fleet/tokens", post(fleet::new_token))
        .route("/fleet/enrol", post(fleet::enrol_worker))
        .route("/fleet/workers/{worker}/revoke", post(fleet::revoke))
        .route("/fleet/workers/{worker}/drain", post(fleet::drain))
        .route(
            "/hooks/github",
            post(fleet::github).layer(DefaultBodyLimit::max(ralph_loop_fleet::delivery::DELIVERY_MAX)),
        )
        .route("/people", get(access::people).post(access::add_person))
        .route("/people/{name}", delete(access::remove_person));
    Router::new()
        .nest("/api/v1", api)
        .route("/api/docs", get(docs::docs))
        .route("/api/openapi.json", get(docs::openapi))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .route("/mcp", any(mcp::mcp))
        .fallback(page::page)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(server)
}
