//! A lease on a run that several machines could drive.

use ralph_loop_journal::journal::seal::SealSource;
use ralph_loop_sandbox::LeaseClock;
use std::sync::Arc;

/// Where the run is sealed, and until when it is ours.
#[derive(Debug, Clone)]
pub struct Hold {
    pub seal: Arc<dyn SealSource>,
    /// The guards of its commands end when this lease does.
    pub clock: Arc<LeaseClock>,
}
