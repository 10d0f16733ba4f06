//! Terminal and user facts, captured by `main` for formatting.

use jiff::tz::TimeZone;
use ralph_loop_app::Environment;
use ralph_loop_domain::ports::Clock as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

struct TerminalInfo {
    columns: Option<usize>,
    home: Option<PathBuf>,
    zone: TimeZone,
}

static FACTS: OnceLock<TerminalInfo> = OnceLock::new();

/// Captures them once from the environment.
pub fn learn(env: &Environment) {
    let vars = env.vars();
    let columns = vars.get("COLUMNS").and_then(|columns| columns.parse().ok());
    let home = vars.get("HOME").filter(|home| home.len() > 1).map(PathBuf::from);
    let _ = FACTS.set(TerminalInfo { columns, home, zone: env.zone() });
}

/// The width requested by the user.
pub fn columns() -> Option<usize> {
    FACTS.get()?.columns
}

/// The user's home folder.
pub fn home() -> Option<&'static Path> {
    FACTS.get()?.home.as_deref()
}

/// The time zone for displayed times.
pub fn zone() -> TimeZone {
    FACTS.get().map_or(TimeZone::UTC, |facts| facts.zone.clone())
}

/// A sentence with its instants in local time.
pub fn local_times(text: &str) -> String {
    let now = ralph_loop_core::clock::SystemClock::default().now();
    ralph_loop_protocol::describe::local_times(text, now, Some(&zone()))
}
