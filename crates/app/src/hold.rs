//! A hold on a run that several machines could drive.

use ralph_loop_journal::seal::SealSource;
use ralph_loop_sandbox::LeaseClock;
use std::sync::Arc;

/// Where such a run is sealed, and how long it is ours.
#[derive(Debug, Clone)]
pub struct Hold {
    /// Where it is sealed.
    pub seal: Arc<dyn SealSource>,
    /// When the hold ends: the guards of its commands keep to it.
    pub clock: Arc<LeaseClock>,
}
