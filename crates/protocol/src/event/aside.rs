//! Events alongside the iterations: actions of a session, reports of doctor and critic.

use crate::id::{AgentName, Digest, TreeId};
use crate::money::Usage;
use serde::{Deserialize, Serialize};

/// A managed action of a session begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionStarted {
    /// Its iteration.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub iteration: u32,
    /// Its number in the session, from 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub number: u32,
    /// The kind: `run`, `patch`, `write`, … or a tool's name.
    pub action: String,
    /// Its target, in one line.
    pub what: String,
}

/// A managed action has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionFinished {
    /// Its iteration.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub iteration: u32,
    /// Its number in the session.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub number: u32,
    /// Whether it worked.
    pub ok: bool,
    /// The result, in one line.
    pub result: String,
    /// Exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
}

/// The doctor has analyzed the run; the report is in `diagnostics.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosed {
    /// The number of iterations at that time.
    pub iteration: u32,
    /// The profile used, or `rules`.
    pub by: String,
    /// One sentence.
    pub summary: String,
    /// Digest of the report.
    pub report: Digest,
    /// What it used.
    pub usage: Usage,
    /// What happens with them: `applied` or `offered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

/// Files were restored to an earlier tree of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WentBack {
    /// The iteration whose changes were undone.
    pub iteration: u32,
    /// The restored tree.
    pub tree: TreeId,
    /// How many files.
    pub files: usize,
    /// Why.
    pub why: String,
    /// The message for the next session, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A session whose checks pass was asked for the promise that it left out, in the same iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromiseAsked {
    /// Its iteration.
    pub iteration: u32,
    /// Its agent.
    pub agent: AgentName,
    /// Whether it says that the task is done.
    pub promised: bool,
    /// What it says is left, if it doesn't.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// What the question used.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
}

/// A critic reviewed the last changes and failures; its objections go into the next prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Criticised {
    /// The last iteration it reviewed.
    pub iteration: u32,
    /// The agent or profile used.
    pub by: String,
    /// The objections; empty if it had none or failed.
    pub objections: String,
    /// What it used.
    pub usage: Usage,
}
