//! Server-sent events for scripts, for `curl -N`.

use super::FromQuery;
use super::reader::{Frame, Reader};
use crate::auth::Caller;
use crate::http::problem::Problem;
use crate::live::Viewer;
use crate::server::Server;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::Response;
use futures_util::stream;
use ralph_loop_journal::folder::registry::Registration;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

/// Keep-alive interval, so that proxies keep the connection.
const SILENCE: Duration = Duration::from_secs(15);

/// Interval for checking the session.
const LOOK: Duration = Duration::from_secs(10);

/// A run's events and live output as server-sent events. Holds `room` while connected.
pub async fn run_events(
    server: Arc<Server>,
    caller: Caller,
    entry: &Registration,
    from: FromQuery,
    room: OwnedSemaphorePermit,
) -> Result<Response, Problem> {
    let viewer = server.live.view(&entry.run_id);
    let zone = server.app.environment().zone();
    let reader = Reader::open(entry.run_dir(), zone, from).await?;
    let mut closing = server.closing.clone();
    closing.mark_unchanged();
    let state = (reader, viewer, closing, Instant::now(), room);
    let frames = stream::unfold(state, move |(mut reader, mut viewer, mut closing, mut looked, room)| {
        let (server, caller) = (server.clone(), caller.clone());
        async move {
            let text = tokio::select! {
                text = next(&mut reader, &mut viewer) => text?,
                _ = closing.changed() => return None,
            };
            // Stops when the token or session is revoked.
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                if !caller.is_still_here(&server) {
                    return None;
                }
            }
            Some((Ok::<Bytes, Infallible>(Bytes::from(text)), (reader, viewer, closing, looked, room)))
        }
    });
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .header(header::CACHE_CONTROL, "no-store")
        .header("x-accel-buffering", "no")
        .body(Body::from_stream(frames))
        .map_err(|_| Problem::internal("the answer could not be made"))
}

/// The next piece; `None` if the run can't be read any more.
async fn next(reader: &mut Reader, viewer: &mut Viewer) -> Option<String> {
    loop {
        let frames = reader.next().await.ok()?;
        if !frames.is_empty() {
            return Some(text(&frames));
        }
        match tokio::time::timeout(SILENCE, viewer.changed()).await {
            Ok(()) => {}
            Err(_) => return Some(": still here\n\n".to_owned()),
        }
    }
}

fn text(frames: &[Frame]) -> String {
    let mut text = String::new();
    for frame in frames {
        if let Some(seq) = frame.seq {
            let _ = writeln!(text, "id: {seq}");
        }
        // A frame is one line: JSON escapes line ends.
        let _ = write!(text, "data: {}\n\n", frame.text);
    }
    text
}
