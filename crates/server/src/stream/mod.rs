//! Streams a run to browsers and scripts: numbered events and live output.
//!
//! Each viewer has its own reader and pace. Nothing is buffered for a slow one and no run waits; one that
//! falls far behind gets the position from which to read again.

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

/// Where to start.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FromQuery {
    /// The first event; omitted for new events only.
    pub from: Option<u64>,
    /// Number of the last output seen.
    pub live: Option<u64>,
}
