//! What happens beside the iterations: single actions of a session, the words of doctor and critic.

use crate::id::{Digest, TreeId};
use crate::money::Usage;
use serde::{Deserialize, Serialize};

/// A managed action of a session begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionStarted {
    /// Its iteration.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub iteration: u32,
    /// Its place in the session, from 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub number: u32,
    /// What it is: `run`, `patch`, `write`, … or a tool's name.
    pub action: String,
    /// On what, in one line.
    pub what: String,
}

/// It is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionFinished {
    /// Its iteration.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub iteration: u32,
    /// Its place in the session.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub number: u32,
    /// Whether it worked.
    pub ok: bool,
    /// What came of it, in one line.
    pub result: String,
    /// Exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
}

/// The doctor has read the run; the report is in `diagnostics.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosed {
    /// Iterations when it did.
    pub iteration: u32,
    /// The profile that spoke, or `rules`.
    pub by: String,
    /// In one sentence.
    pub summary: String,
    /// Digest of the report.
    pub report: Digest,
    /// What it used.
    pub usage: Usage,
    /// What follows: `applied` or `offered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

/// Files were brought back to an earlier tree of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WentBack {
    /// The iteration whose changes were taken back.
    pub iteration: u32,
    /// The tree that the files have again.
    pub tree: TreeId,
    /// How many files.
    pub files: usize,
    /// Why.
    pub why: String,
    /// The message for the next session, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A critic looked at the last changes and failures; its objections go into the next prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Criticised {
    /// The last iteration it looked at.
    pub iteration: u32,
    /// The agent or profile that spoke.
    pub by: String,
    /// The objections; empty where it had none or could not speak.
    pub objections: String,
    /// What it used.
    pub usage: Usage,
}
