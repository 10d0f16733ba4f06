//! The WebSocket of the list: changed rows.

use crate::auth::Caller;
use crate::live::RowChange;
use crate::server::Server;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// Closes a connection that accepts nothing for this long.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between pings.
const PING: Duration = Duration::from_secs(10);

/// Sends every changed row until one side closes.
pub async fn list_socket(server: Arc<Server>, caller: Caller, mut socket: WebSocket) {
    let mut rows = server.live.rows();
    let mut closing = server.closing.clone();
    // An interval, so that pings happen even under constant traffic.
    let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
    if send(&mut socket, json!({ "type": "hello" }).to_string()).await.is_none() {
        return;
    }
    loop {
        let frame = tokio::select! {
            change = rows.recv() => match change {
                Ok(RowChange::Row(row)) => json!({ "type": "row", "row": *row }).to_string(),
                Ok(RowChange::Removed(id)) => json!({ "type": "removed", "id": id }).to_string(),
                // Too slow: missed rows are in the list.
                Err(RecvError::Lagged(_)) => json!({ "type": "reread" }).to_string(),
                Err(RecvError::Closed) => return,
            },
            _ = beat.tick() => {
                // Stops when the token or session is revoked.
                let here = caller.is_still_here(&server);
                let ping = socket.send(Message::Ping(Bytes::new()));
                if !here || !matches!(tokio::time::timeout(SEND_TIMEOUT, ping).await, Ok(Ok(()))) {
                    return;
                }
                continue;
            }
            heard = socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            _ = closing.changed() => {
                let reason = "the server is shutting down".into();
                let close = Message::Close(Some(CloseFrame { code: 1012, reason }));
                let _ = tokio::time::timeout(Duration::from_secs(1), socket.send(close)).await;
                return;
            }
        };
        if send(&mut socket, frame).await.is_none() {
            return;
        }
    }
}

async fn send(socket: &mut WebSocket, text: String) -> Option<()> {
    tokio::time::timeout(SEND_TIMEOUT, socket.send(Message::Text(text.into()))).await.ok()?.ok()
}
