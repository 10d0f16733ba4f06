//! How long this driver holds the run: an anonymous file that the driver writes and its guards read.

use nix::sys::uio::{pread, pwrite};
use nix::time::clock_gettime;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Milliseconds of a monotonic clock that also runs while the machine sleeps.
pub(crate) fn now_ms() -> u64 {
    let now = clock_gettime(crate::os::CLOCK).map(Duration::from).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The time left of the lease in such a file. An unreadable lease counts as over.
pub(crate) fn left(file: &OwnedFd) -> Duration {
    let mut bytes = [0u8; 8];
    let at = match pread(file, &mut bytes, 0) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => 0,
    };
    Duration::from_millis(at.saturating_sub(now_ms()))
}

/// When the lease on a run ends. Guards with a lease end everything then, whether the driver lives, hangs or is
/// frozen.
#[derive(Debug)]
pub struct LeaseClock(OwnedFd);

impl LeaseClock {
    /// A lease that ends after `time`.
    pub fn start(time: Duration) -> std::io::Result<Self> {
        let file = crate::os::empty_file(c"ralph-lease")?;
        let clock = Self(file);
        clock.write(now_ms().saturating_add(millis(time)))?;
        Ok(clock)
    }

    /// The present time, for [`Self::extend`].
    pub fn now() -> MonotonicTime {
        MonotonicTime(now_ms())
    }

    /// Extends the lease to `time` after `since`. Pass the moment before requesting it, so that it is never longer
    /// than granted.
    pub fn extend(&self, since: MonotonicTime, time: Duration) -> std::io::Result<()> {
        self.write(since.0.saturating_add(millis(time)))
    }

    /// Ends the lease now.
    pub fn end(&self) -> std::io::Result<()> {
        self.write(0)
    }

    /// Whether the lease has ended.
    pub fn is_over(&self) -> bool {
        left(&self.0).is_zero()
    }

    fn write(&self, at: u64) -> std::io::Result<()> {
        pwrite(&self.0, &at.to_ne_bytes(), 0)?;
        Ok(())
    }

    /// Another handle to the same file, for a guard.
    pub fn for_guard(&self) -> std::io::Result<OwnedFd> {
        self.0.try_clone()
    }
}

/// A time of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicTime(u64);

impl MonotonicTime {
    /// The time since then.
    pub fn elapsed(self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.0))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
