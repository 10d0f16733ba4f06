//! The sandboxes of a run: created, gone, and refused connections.

use crate::money::Usd;
use serde::{Deserialize, Serialize};

/// A sandbox to work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxReady {
    /// The provider.
    pub provider: String,
    /// The provider's id.
    pub id: String,
    /// Its price per hour, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly: Option<Usd>,
}

/// A sandbox is gone or stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxGone {
    /// The provider's id.
    pub id: String,
    /// What happened to it.
    pub fate: SandboxFate,
}

/// What happened to a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum SandboxFate {
    /// It was removed with its files.
    Destroyed,
    /// It was stopped; its files stay.
    Stopped,
    /// It was left running, as requested.
    Kept,
    /// It disappeared while in use.
    Lost,
}

/// The sandbox refused a command access to a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EgressRefused {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Why.
    pub reason: String,
    /// How often it was tried since the last report.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub times: u32,
}
