//! What a watched command did, as far as it may decide a result.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a watched command and all that it started did to the files of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecTrace {
    /// Each thing once, whatever the order.
    pub steps: BTreeSet<TraceStep>,
}

impl ExecTrace {
    /// The files that script runners executed or read.
    pub fn executed_or_read(&self) -> impl Iterator<Item = &str> {
        let seen = self.steps.iter().filter(|step| matches!(step.kind, TraceKind::Ran | TraceKind::Read));
        seen.map(|step| step.path.as_str())
    }
}

/// One thing that was done to a file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TraceStep {
    /// What.
    pub kind: TraceKind,
    /// How many scripts of the workspace stand between the command and this: 0 where it leads there by runners alone.
    pub scripts: u32,
    /// The file, relative to the root.
    pub path: String,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
    /// A runner (a shell, `make`, `npm`, …) ran it.
    Ran,
    /// A runner opened it for reading.
    Read,
    /// Somebody, runner or not, opened it for writing, replaced or removed it.
    Wrote,
    /// Code of the workspace did so where installed things stand that programs load by themselves: a package, a compiled source,
    /// or settings and programs at home (`~/…`).
    Planted,
}
