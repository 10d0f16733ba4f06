//! The sandboxes of a run: made, gone, and what they refused to reach.

use crate::money::Usd;
use serde::{Deserialize, Serialize};

/// A sandbox to work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxReady {
    /// Who made it.
    pub provider: String,
    /// The provider's id.
    pub id: String,
    /// What it costs per hour, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly: Option<Usd>,
}

/// A sandbox that is no more, or rests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxGone {
    /// The provider's id.
    pub id: String,
    /// What became of it.
    pub fate: SandboxFate,
}

/// What became of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum SandboxFate {
    /// It was removed with its files.
    Destroyed,
    /// It was stopped; its files stay.
    Stopped,
    /// It was left running, because a person asked for that.
    Kept,
    /// It vanished while it was needed.
    Lost,
}

/// A host that the sandbox refused to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EgressRefused {
    /// Whom.
    pub host: String,
    /// On which port.
    pub port: u16,
    /// Why.
    pub reason: String,
    /// How often it was tried, since this was last told.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub times: u32,
}
