//! The one word that ends everything a session has under way: set by the thread that listens to the engine, read by
//! the threads that work.

use ralph_domain::event::SessionEnd;
use ralph_domain::ports::StopCause;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Why a session is ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The engine said so.
    Cause(StopCause),
    /// The session's time is over.
    TimedOut,
}

impl Stop {
    /// The end of the session that follows.
    pub(crate) fn session_end(self) -> SessionEnd {
        match self {
            Self::Cause(cause) => SessionEnd::Stopped { cause },
            Self::TimedOut => SessionEnd::TimedOut,
        }
    }
    /// What commands are told.
    pub(crate) fn cause(self) -> StopCause {
        match self {
            Self::Cause(cause) => cause,
            Self::TimedOut => StopCause::Budget,
        }
    }
}

/// Says whether the session is to end, and wakes who waits.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    stop: Mutex<Option<Stop>>,
    set: Condvar,
}

impl Halt {
    /// Ends everything; the first word counts.
    pub(crate) fn stop(&self, stop: Stop) {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(stop);
        self.set.notify_all();
    }
    /// Why the session is to end, if it is.
    pub(crate) fn get(&self) -> Option<Stop> {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits until `until` or until the session is to end; `Some` in the latter case.
    pub(crate) fn wait(&self, until: Instant) -> Option<Stop> {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let (stop, _) =
            self.set.wait_timeout_while(stop, left, |s| s.is_none()).unwrap_or_else(PoisonError::into_inner);
        *stop
    }
    /// Waits in steps of `step` until `ready` gives something; `None` at `until` or when the session is to end.
    pub(crate) fn until<T>(
        &self,
        until: Instant,
        step: Duration,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        loop {
            if let Some(found) = ready() {
                return Some(found);
            }
            let now = Instant::now();
            if now >= until || self.wait(until.min(now + step)).is_some() {
                return None;
            }
        }
    }
}
