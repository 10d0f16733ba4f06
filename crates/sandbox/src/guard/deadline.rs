//! The end of the lease: a time in a file that the driver extends as long as it holds the run. The guard reads it, so
//! that a frozen driver keeps nothing alive.

use std::os::fd::OwnedFd;
use std::time::Duration;

pub(super) struct Deadline(OwnedFd);

impl Deadline {
    pub(super) fn new(file: OwnedFd) -> Self {
        Self(file)
    }

    pub(super) fn left(&self) -> Duration {
        crate::lease_clock::left(&self.0)
    }

    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}
