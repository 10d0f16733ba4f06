//! Whether the server can work: a probe checks its database all the time, so that `/readyz` answers at once.

use std::sync::Mutex;

/// What the last probe found.
#[derive(Debug, Clone, Copy)]
pub struct Readiness {
    /// The index answers.
    pub index: bool,
    /// The fleet's database commits only what a standby has, too; `None` without a fleet, or if it isn't known.
    pub standby: Option<bool>,
}

/// The latest finding. A server starts only with an index that answers.
#[derive(Debug)]
pub struct LastProbe(Mutex<Readiness>);

impl Default for LastProbe {
    fn default() -> Self {
        Self(Mutex::new(Readiness { index: true, standby: None }))
    }
}

impl LastProbe {
    /// Replaces the finding.
    pub(crate) fn set(&self, found: Readiness) {
        *self.0.lock().unwrap_or_else(|e| e.into_inner()) = found;
    }

    /// The latest finding.
    pub fn get(&self) -> Readiness {
        *self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}
