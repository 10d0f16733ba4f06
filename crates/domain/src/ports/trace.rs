//! A watched command's activity, as far as it can decide a result.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a watched command and its children did to the files of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecTrace {
    /// Each step once, in no particular order.
    pub steps: BTreeSet<TraceStep>,
    /// Ports on which a server of this machine listens and nothing in the sandbox, and to which it tried to connect.
    #[serde(default)]
    pub kept_out: BTreeSet<u16>,
}

impl ExecTrace {
    /// The files that script runners executed or read.
    pub fn executed_or_read(&self) -> impl Iterator<Item = &str> {
        let seen = self.steps.iter().filter(|step| matches!(step.kind, TraceKind::Ran | TraceKind::Read));
        seen.map(|step| step.path.as_str())
    }
}

/// One access to a file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TraceStep {
    pub kind: TraceKind,
    /// How many scripts of the workspace are between the command and this: 0 if only runners are.
    pub scripts: u32,
    /// The file, relative to the root.
    pub path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
    /// A runner (a shell, `make`, `npm`, …) ran it.
    Ran,
    Read,
    /// Any process opened it for writing, replaced or removed it.
    Wrote,
    /// Code of the workspace wrote to installed files that programs load unasked: a package, a compiled source, or
    /// settings and programs at home (`~/…`).
    Planted,
}
