//! WebSockets and server-sent events.

use crate::auth::Caller;
use crate::http::extract::{Answer, QueryParams};
use crate::http::problem::Problem;
use crate::server::Server;
use crate::stream::{FromQuery, list_socket, run_events, run_socket};
use axum::extract::{Path, State, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Clients only send pings.
const MESSAGE_MAX: usize = 4 * 1024;

fn room(server: &Server) -> Result<OwnedSemaphorePermit, Problem> {
    server.sockets.clone().try_acquire_owned().map_err(|_| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many watch already").hint("try again in a moment")
    })
}

pub(crate) async fn run_ws(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(run): Path<String>,
    QueryParams(from): QueryParams<FromQuery>,
    upgrade: WebSocketUpgrade,
) -> Answer<Response> {
    let entry = server.entry(&run)?;
    let permit = room(&server)?;
    Ok(upgrade.max_message_size(MESSAGE_MAX).on_upgrade(move |socket| async move {
        run_socket(server, caller, entry, from, socket).await;
        drop(permit);
    }))
}

pub(crate) async fn list_ws(
    State(server): State<Arc<Server>>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Answer<Response> {
    let permit = room(&server)?;
    Ok(upgrade.max_message_size(MESSAGE_MAX).on_upgrade(move |socket| async move {
        list_socket(server, caller, socket).await;
        drop(permit);
    }))
}

pub(crate) async fn run_sse(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(run): Path<String>,
    QueryParams(mut from): QueryParams<FromQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let entry = server.entry(&run)?;
    let room = room(&server)?;
    // A reconnecting browser sends the last event it saw.
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    from.from = last.map(|seq| seq.saturating_add(1)).or(from.from);
    run_events(server, caller, &entry, from, room).await
}
