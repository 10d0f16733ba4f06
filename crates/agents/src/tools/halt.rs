//! Stops everything in a session: set by the thread that listens to the engine, read by the working threads.

use ralph_loop_domain::ports::StopCause;
use ralph_loop_protocol::event::SessionEnd;
use std::sync::{Mutex, PoisonError};

/// Why a session is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Cause(StopCause),
    TimedOut,
}

impl Stop {
    pub(crate) fn session_end(self) -> SessionEnd {
        match self {
            Self::Cause(cause) => SessionEnd::Stopped { cause },
            Self::TimedOut => SessionEnd::TimedOut,
        }
    }
    /// The stop cause for commands.
    pub(crate) fn cause(self) -> StopCause {
        match self {
            Self::Cause(cause) => cause,
            Self::TimedOut => StopCause::Budget,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Halt {
    stop: Mutex<Option<Stop>>,
}

impl Halt {
    /// Stops everything; the first cause counts.
    pub(crate) fn stop(&self, stop: Stop) {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(stop);
    }
    pub(crate) fn get(&self) -> Option<Stop> {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
