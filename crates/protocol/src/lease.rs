//! A driver's lease on a run: its machine, its epoch and its version.

use crate::id::MachineId;
use serde::{Deserialize, Serialize};

/// Driver epoch, increased by each driver that starts. If two drivers both think that they hold a run, the one with
/// the smaller epoch was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The next epoch.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A driver's hold on its run, as in its journal and its lock. Older versions don't record it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriverLease {
    /// The machine it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// The driver's epoch, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
    /// The driver's program version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl DriverLease {
    /// Whether the two are known to be on different machines.
    pub fn is_elsewhere(&self, other: &Self) -> bool {
        matches!((&self.machine, &other.machine), (Some(here), Some(there)) if here != there)
    }
}
