//! `.ralph/active.json`: a loop works in this folder. It names one session; your own session in the same folder is
//! never blocked.

use crate::HookContext;
use crate::project::Project;
use ralph_loop_safe_fs::{Links, SafeDir};
use serde::Deserialize;

const MARKER_MAX: u64 = 64 * 1024;

/// What the loop says about its session.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub(crate) struct Marker {
    pub run_id: String,
    #[serde(default)]
    pub pid: u32,
    /// When it began, in ticks since boot: its id may be reused.
    #[serde(default)]
    pub began: Option<u64>,
    #[serde(default)]
    pub pid_namespace: Option<String>,
    #[serde(default)]
    pub iteration: u32,
    #[serde(default)]
    pub attempt: u32,
    #[serde(default)]
    pub commits: bool,
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

/// The marker, if it has the run, iteration and attempt in this session's variables.
pub(crate) fn of_session(project: &Project, context: &HookContext) -> Option<Marker> {
    let run = context.vars.filled("RALPH_RUN")?;
    let number = |name: &str| context.vars.get(name)?.parse::<u32>().ok();
    let top = SafeDir::open(&project.top).ok()?;
    let bytes = top.read(".ralph/active.json", Links::Refused, MARKER_MAX).ok()?;
    let marker: Marker = serde_json::from_slice(&bytes).ok()?;
    let same = marker.run_id == run
        && Some(marker.iteration) == number("RALPH_ITERATION")
        && Some(marker.attempt) == number("RALPH_ATTEMPT");
    (same && !marker.is_left_behind()).then_some(marker)
}

impl Marker {
    /// Whether its loop is gone: its process has ended, or its id was reused. In a sandbox, which has other ids,
    /// every process ends with the loop.
    fn is_left_behind(&self) -> bool {
        let (Some(began), Some(namespace)) = (self.began, &self.pid_namespace) else { return false };
        let here = std::fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string());
        if here.ok().as_ref() != Some(namespace) {
            return false;
        }
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let found =
            stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)?.parse::<u64>().ok());
        found != Some(began)
    }
}
