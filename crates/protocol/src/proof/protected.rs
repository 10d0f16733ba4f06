//! Protected paths that differ from the start of a run.

use serde::{Deserialize, Serialize};

/// How a protected path differs from the start of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProtectedChange {
    /// The path.
    pub path: String,
    /// What happened to it.
    pub change: ProtectedKind,
}

/// What happened to a protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum ProtectedKind {
    /// Its content or mode changed.
    Changed,
    /// It was removed.
    Removed,
    /// It is new, below a protected pattern.
    Added,
}

impl ProtectedKind {
    /// The word for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Added => "added",
        }
    }
}
