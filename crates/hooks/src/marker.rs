//! `.ralph/active.json`: a loop is at work in this folder. Only its own sessions are meant, never a person's in the same place.

use crate::Surroundings;
use crate::project::Project;
use ralph_safe_fs::{Links, SafeDir};
use serde::Deserialize;

const MARKER_MAX: u64 = 64 * 1024;

/// What the loop says of the session that it has started.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub(crate) struct Marker {
    pub run_id: String,
    #[serde(default)]
    pub iteration: u32,
    #[serde(default)]
    pub attempt: u32,
    /// Whether sessions commit their work themselves.
    #[serde(default)]
    pub commits: bool,
    /// The plan of the run, where it has one.
    #[serde(default)]
    pub plan: Option<MarkedPlan>,
}

/// The files of a plan, from the top of the project.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub(crate) struct MarkedPlan {
    pub tasks: String,
    pub progress: String,
    /// Bytes of the progress file when the session began.
    #[serde(default)]
    pub progress_bytes: u64,
}

/// The marker, where this session is the one that it names: its loop has told it so by its variables.
pub(crate) fn of_session(project: &Project, around: &Surroundings) -> Option<Marker> {
    let run = around.vars.filled("RALPH_RUN")?;
    let number = |name: &str| around.vars.get(name)?.parse::<u32>().ok();
    let top = SafeDir::open(&project.top).ok()?;
    let bytes = top.read(".ralph/active.json", Links::Refused, MARKER_MAX).ok()?;
    let marker: Marker = serde_json::from_slice(&bytes).ok()?;
    let same = marker.run_id == run
        && Some(marker.iteration) == number("RALPH_ITERATION")
        && Some(marker.attempt) == number("RALPH_ATTEMPT");
    same.then_some(marker)
}
