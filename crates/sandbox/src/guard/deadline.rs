//! The time after which the run may be somebody else's: a number in a file that the driver writes anew as long as it holds the
//! run. The guard reads it, so that a driver that is frozen keeps nothing alive.

use std::os::fd::OwnedFd;
use std::time::Duration;

/// The file with the time.
pub(super) struct Deadline(OwnedFd);

impl Deadline {
    pub(super) fn new(file: OwnedFd) -> Self {
        Self(file)
    }

    /// How long it is until then.
    pub(super) fn left(&self) -> Duration {
        crate::lease_clock::left(&self.0)
    }

    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}
