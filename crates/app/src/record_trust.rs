//! What of a repo's asks was allowed to one run: a file in its record, so that it holds whenever the run goes on.

use crate::error::AppError;
use ralph_loop_journal::artifacts;
use ralph_loop_journal::layout::StateHome;
use ralph_loop_protocol::id::{Digest, RunId};
use std::path::PathBuf;

/// The file's name in the record.
pub const FILE: &str = "trust.json";

fn file(home: &StateHome, run: &RunId) -> PathBuf {
    home.record(run).path().join(FILE)
}

/// Keeps it.
pub fn write(home: &StateHome, run: &RunId, allowed: &[Digest]) -> Result<(), AppError> {
    let text = serde_json::to_vec(allowed).unwrap_or_default();
    Ok(artifacts::write_atomic(&file(home, run), &text)?)
}

/// What was kept; `None` for a run of an older version, which kept nothing.
pub fn read(home: &StateHome, run: &RunId) -> Option<Vec<Digest>> {
    serde_json::from_slice(&std::fs::read(file(home, run)).ok()?).ok()
}
