//! Which processes end after an iteration.

use std::time::{Duration, Instant};

/// A process without output and connections for this long is idle.
pub(crate) const IDLE: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdleAction {
    Keep,
    /// It was unused for a while: stop it.
    Stop,
    /// It has ended: forget it.
    Forget,
    /// It has ended with an error: forget it, and report it to the next session.
    Report,
}

/// What to do with a process at `now`: `ended` says whether it has ended, and whether successfully; `active` when it
/// last had output, a query or a connection.
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
    fn used_processes_stay_and_idle_ones_end() {
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
