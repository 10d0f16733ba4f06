//! Watching from a browser or a script: every event of a run with its number, and what it shows while it works.
//!
//! Whoever watches has a reader of their own and takes what they can carry. Nothing is gathered for a slow one, and no run waits
//! for anybody: one that falls far behind is told where to read again.

mod frames;
mod list_socket;
mod reader;
mod run_socket;
mod sse;

pub use frames::{event_frame, tone_word};
pub use list_socket::list_socket;
pub use run_socket::run_socket;
pub use sse::run_events;

use serde::Deserialize;

/// Where to begin.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FromQuery {
    /// The first event that is wanted; without it, only what comes from now on.
    pub from: Option<u64>,
    /// The number of the last output that was seen.
    pub live: Option<u64>,
}
