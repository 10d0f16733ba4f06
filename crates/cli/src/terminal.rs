//! What `main` found out about the terminal and its user, for texts that fit it.

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

/// Takes what is needed from the environment, once.
pub fn learn(env: &Environment) {
    let vars = env.vars();
    let columns = vars.get("COLUMNS").and_then(|columns| columns.parse().ok());
    let home = vars.get("HOME").filter(|home| home.len() > 1).map(PathBuf::from);
    let _ = FACTS.set(TerminalInfo { columns, home, zone: env.zone() });
}

/// The width that the user asked for.
pub fn columns() -> Option<usize> {
    FACTS.get()?.columns
}

/// The user's home.
pub fn home() -> Option<&'static Path> {
    FACTS.get()?.home.as_deref()
}

/// The zone in which the user reads times.
pub fn zone() -> TimeZone {
    FACTS.get().map_or(TimeZone::UTC, |facts| facts.zone.clone())
}

/// A sentence with every instant in it by the clock of this machine.
pub fn local_times(text: &str) -> String {
    let now = ralph_loop_core::clock::SystemClock::default().now();
    ralph_loop_protocol::describe::local_times(text, now, Some(&zone()))
}
