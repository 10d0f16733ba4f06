//! Suspends a run from outside.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Suspends a run from outside (a signal handler, another thread). A suspended run can be resumed.
#[derive(Debug, Default)]
pub struct CancelToken {
    signal: AtomicU8,
    times: AtomicU8,
    rest: AtomicBool,
    told: AtomicBool,
    look: AtomicBool,
}

impl CancelToken {
    /// The value for [`Self::set`] when the calling program stops awaiting the run.
    pub const CALLER: u8 = 255;

    /// Requests suspension for a signal number, or 0 for a caller.
    pub fn set(&self, signal: u8) {
        self.signal.store(signal.max(1), Ordering::SeqCst);
        // Called by signal handlers: one instruction, no loop. Assumes fewer than 255 requests.
        self.times.fetch_add(1, Ordering::SeqCst);
    }
    /// Who requested it.
    pub fn get(&self) -> Option<&'static str> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            2 => Some("Ctrl-C"),
            15 => Some("SIGTERM"),
            1 => Some("SIGHUP"),
            Self::CALLER => Some("the calling program"),
            _ => Some("a signal"),
        }
    }
    /// Requests suspension at the next point where nothing is lost: before the next session, or in a wait.
    pub fn request_idle(&self) {
        self.rest.store(true, Ordering::SeqCst);
    }
    /// Whether [`Self::request_idle`] was called.
    pub fn is_idle_requested(&self) -> bool {
        self.rest.load(Ordering::SeqCst)
    }
    /// Declares that the code host pushes updates, so the run polls rarely.
    pub fn set_push_updates(&self) {
        self.told.store(true, Ordering::SeqCst);
    }
    /// Whether the code host pushes updates.
    pub fn has_push_updates(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }
    /// Reports an update on the code host: a waiting run polls immediately.
    pub fn refresh_now(&self) {
        self.look.store(true, Ordering::SeqCst);
    }
    /// Whether there was an update since the last call.
    pub(crate) fn take_refresh(&self) -> bool {
        self.look.swap(false, Ordering::SeqCst)
    }
    /// Number of requests; more than one is urgent.
    pub fn times(&self) -> u8 {
        self.times.load(Ordering::SeqCst)
    }
}
