//! A run's events, by page.

use crate::auth::Caller;
use crate::http::extract::{Answer, QueryParams};
use crate::http::problem::Problem;
use crate::server::Server;
use crate::stream::event_frame;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use ralph_loop_journal::live::stream::{RunStream, StreamItem, StreamStart};
use ralph_loop_protocol::id::Seq;
use serde::Deserialize;
use std::sync::Arc;

/// Default and maximum events per page.
const EVENTS: (usize, usize) = (500, 5000);

/// Which events.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// The first event; 1 by default.
    from: Option<u64>,
    /// Maximum number of events.
    limit: Option<usize>,
}

/// A page of events.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema, serde::Serialize)]
#[allow(dead_code, reason = "the answer is written piece by piece; this is its shape")]
pub(crate) struct EventsPage {
    /// In order.
    events: Vec<EventFrame>,
    /// The number of the last event of the run.
    head: u64,
    /// The first event after these.
    next: u64,
}

/// An event with its sentence.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema, serde::Serialize)]
#[allow(dead_code, reason = "the answer is written piece by piece; this is its shape")]
pub(crate) struct EventFrame {
    /// `event`.
    r#type: String,
    /// Its number.
    seq: u64,
    /// The line of the journal.
    event: ralph_loop_protocol::event::Event,
    /// One sentence; null for internal events.
    text: Option<String>,
    /// plain, muted, good, attention or bad.
    tone: String,
}

pub(crate) async fn events(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
    QueryParams(query): QueryParams<EventsQuery>,
) -> Answer<Response> {
    let entry = server.entry(&run)?;
    let (live, zone) = (server.live.clone(), server.app.environment().zone());
    let body = server
        .blocking(move || {
            let from = query.from.unwrap_or(1).max(1);
            let limit = query.limit.unwrap_or(EVENTS.0).clamp(1, EVENTS.1);
            let head = live.with(&entry.run_id, |run| run.reading().state.seq.0)?;
            let mut stream = RunStream::open(&entry.run_dir(), StreamStart::From(Seq(from)))?.events_only();
            let mut frames: Vec<String> = Vec::new();
            let mut next = from;
            'pages: loop {
                let items = stream.poll().map_err(Problem::from)?;
                if items.is_empty() {
                    break;
                }
                for item in &items {
                    let StreamItem::Event(line) = item else { continue };
                    if frames.len() >= limit {
                        break 'pages;
                    }
                    frames.push(event_frame(line, &zone));
                    next = line.event.seq.0 + 1;
                }
            }
            let head = if frames.is_empty() { head } else { head.max(next - 1) };
            Ok(format!("{{\"events\":[{}],\"head\":{head},\"next\":{next}}}", frames.join(",")))
        })
        .await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}
