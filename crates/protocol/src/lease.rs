//! Which driver holds a run: where it stands, which one in the row it is, and what it was built from.

use crate::id::MachineId;
use serde::{Deserialize, Serialize};

/// The how-manieth driver of a run. Each one that starts gets the next: of two that both believe to drive, the one with the
/// smaller epoch is the one that was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The one after this.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A driver's hold on its run, as its journal and its lock tell it. Those of older versions tell nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriverLease {
    /// The machine it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// Which driver of the run it is, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
    /// The version of the program that drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl DriverLease {
    /// Whether the two are known to be on different machines.
    pub fn is_elsewhere(&self, other: &Self) -> bool {
        matches!((&self.machine, &other.machine), (Some(here), Some(there)) if here != there)
    }
}
