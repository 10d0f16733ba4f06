//! Which processes go after an iteration.

use std::time::{Duration, Instant};

/// A process that was silent and alone for longer than this is idle.
pub(crate) const IDLE: Duration = Duration::from_secs(5 * 60);

/// What is done with a process after an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdleAction {
    /// It goes on.
    Keep,
    /// Nobody needed it for a while: it is stopped.
    Stop,
    /// It has ended by itself: it is forgotten.
    Forget,
    /// It has ended with an error: it is forgotten, and the next session is told.
    Report,
}

/// The fate of a process at `now`: `ended` says whether it has ended, and whether all was fine; `active` when it last
/// printed something, was asked for or was talked to.
pub(crate) fn fate(ended: Option<bool>, active: Instant, now: Instant) -> IdleAction {
    match ended {
        Some(true) => IdleAction::Forget,
        Some(false) => IdleAction::Report,
        None if now.saturating_duration_since(active) > IDLE => IdleAction::Stop,
        None => IdleAction::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays_and_what_is_not_goes() {
        let then = Instant::now();
        let at = |seconds| then + Duration::from_secs(seconds);
        assert_eq!(fate(None, then, at(0)), IdleAction::Keep);
        assert_eq!(fate(None, then, at(300)), IdleAction::Keep);
        assert_eq!(fate(None, then, at(301)), IdleAction::Stop);
        assert_eq!(fate(None, at(299), at(301)), IdleAction::Keep, "a request keeps a server");
        assert_eq!(fate(Some(false), then, at(1)), IdleAction::Report);
        assert_eq!(fate(Some(true), then, at(1)), IdleAction::Forget);
    }
}
