//! The one word that ends everything a session has under way: set by the thread that listens to the engine, read by
//! the threads that work.

use ralph_loop_domain::ports::StopCause;
use ralph_loop_protocol::event::SessionEnd;
use std::sync::{Mutex, PoisonError};

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

/// Says whether the session is to end.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    stop: Mutex<Option<Stop>>,
}

impl Halt {
    /// Ends everything; the first word counts.
    pub(crate) fn stop(&self, stop: Stop) {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(stop);
    }
    /// Why the session is to end, if it is.
    pub(crate) fn get(&self) -> Option<Stop> {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
