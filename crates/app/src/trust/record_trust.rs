//! The permissions allowed to one run, as a file in its record, so that they hold when it resumes.

use crate::error::AppError;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::id::{Digest, RunId};
use std::path::PathBuf;

pub const FILE: &str = "trust.json";

fn file(home: &StateHome, run: &RunId) -> PathBuf {
    home.record(run).path().join(FILE)
}

pub fn write(home: &StateHome, run: &RunId, allowed: &[Digest]) -> Result<(), AppError> {
    let text = serde_json::to_vec(allowed).unwrap_or_default();
    Ok(artifacts::write_atomic(&file(home, run), &text)?)
}

/// `None` for a run of an older version, which recorded nothing.
pub fn read(home: &StateHome, run: &RunId) -> Option<Vec<Digest>> {
    serde_json::from_slice(&std::fs::read(file(home, run)).ok()?).ok()
}
