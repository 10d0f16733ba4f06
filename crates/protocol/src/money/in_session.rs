//! Running values of a session: time, and its cost by the price list. Both are added to the totals when it ends.

use crate::display::view::RunView;
use crate::money::{Cost, CostBasis, Usd};
use crate::status::Status;
use jiff::Timestamp;

/// A session's latest cost estimate by the price list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionCost {
    /// When that was.
    pub at: Timestamp,
    /// The sum.
    pub sum: Usd,
}

impl RunView {
    /// When the active session began, if any.
    fn session_began(&self) -> Option<Timestamp> {
        let works = self.driven && self.status == Status::Working;
        self.current.as_ref().filter(|_| works).map(|current| current.started_at)
    }

    /// Seconds at work up to `now`, including the active session.
    pub fn worked_until(&self, now: Timestamp) -> f64 {
        let session = self.session_began().map_or(0.0, |began| now.duration_since(began).as_secs_f64());
        self.working_seconds + session.max(0.0)
    }

    /// The run's cost with the estimate of the active session.
    pub fn cost_with(&self, session: Option<SessionCost>) -> Cost {
        let spent = self.spent.cost;
        let now = session.zip(self.session_began()).filter(|(session, began)| session.at >= *began);
        let Some((session, _)) = now else { return spent };
        // Before the first session has ended nothing else was spent.
        let known = if self.spent.sessions == 0 { Cost::default() } else { spent };
        [known, Cost::new(session.sum, CostBasis::Estimated)].into_iter().sum()
    }
}
