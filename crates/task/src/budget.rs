//! Budgets: the hard limits of a run, their use, and when to warn.

use jiff::Timestamp;
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::money::Usd;
pub use ralph_loop_protocol::money::budget::BudgetKind;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A warning is given from this share of a budget on.
pub const WARN_AT: f64 = 0.8;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budgets {
    /// Most iterations.
    pub max_iterations: u32,
    /// Most working time; waits don't count.
    pub max_wall_time: Duration,
    /// Most money.
    pub max_cost: Usd,
    /// Most tokens, if bounded.
    pub max_tokens: Option<u64>,
    /// How often in a row the run may be stuck before it ends.
    pub max_consecutive_gutter: u32,
    /// Most time spent waiting for rate limits.
    pub max_limit_wait: Duration,
    /// When the run must end.
    pub deadline: Option<Timestamp>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            max_iterations: 30,
            max_wall_time: Duration::from_secs(120 * 60),
            max_cost: Usd::from_dollars(10.0),
            max_tokens: None,
            max_consecutive_gutter: 3,
            max_limit_wait: Duration::from_secs(24 * 3600),
            deadline: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    pub iterations: u32,
    pub time: Duration,
    pub cost: Usd,
    pub tokens: u64,
}

impl Budgets {
    /// How much of each limited budget is used; 1.0 is all of it.
    pub fn shares(&self, spent: Spent) -> Vec<(BudgetKind, f64)> {
        let ratio = |used: f64, limit: f64| if limit > 0.0 { used / limit } else { 1.0 };
        let mut shares = vec![
            (BudgetKind::Iterations, ratio(f64::from(spent.iterations), f64::from(self.max_iterations))),
            (BudgetKind::Time, ratio(spent.time.as_secs_f64(), self.max_wall_time.as_secs_f64())),
            (BudgetKind::Cost, ratio(spent.cost.dollars(), self.max_cost.dollars())),
        ];
        if let Some(max) = self.max_tokens {
            shares.push((BudgetKind::Tokens, ratio(spent.tokens as f64, max as f64)));
        }
        shares
    }

    /// The budgets after a user's change. More time also lifts a deadline that has passed at `now`.
    pub fn changed(mut self, change: &BudgetChange, now: Timestamp) -> Self {
        self.max_iterations = change.max_iterations.unwrap_or(self.max_iterations);
        self.max_cost = change.max_cost.unwrap_or(self.max_cost);
        self.max_tokens = change.max_tokens.or(self.max_tokens);
        if let Some(seconds) = change.max_seconds {
            self.max_wall_time = Duration::from_secs(seconds);
            self.deadline = self.deadline.filter(|deadline| *deadline > now);
        }
        self
    }

    /// The first budget that is used up, checked before each session.
    pub fn exhausted(&self, spent: Spent) -> Option<BudgetKind> {
        // Money first: if two budgets end together, the expensive one is the reason to report. A cap of $0 stops only
        // paid work, not a run that has cost nothing.
        if spent.cost > Usd::ZERO && spent.cost >= self.max_cost {
            return Some(BudgetKind::Cost);
        }
        if self.max_tokens.is_some_and(|max| spent.tokens >= max) {
            return Some(BudgetKind::Tokens);
        }
        if spent.time >= self.max_wall_time {
            return Some(BudgetKind::Time);
        }
        (spent.iterations >= self.max_iterations).then_some(BudgetKind::Iterations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_up_exactly_at_its_limit() {
        let budgets = Budgets { max_iterations: 3, max_tokens: Some(100), ..Budgets::default() };
        let spent = |iterations, tokens| Spent { iterations, tokens, ..Spent::default() };
        assert_eq!(budgets.exhausted(spent(2, 99)), None);
        assert_eq!(budgets.exhausted(spent(3, 0)), Some(BudgetKind::Iterations));
        assert_eq!(budgets.exhausted(spent(3, 100)), Some(BudgetKind::Tokens));
    }

    #[test]
    fn a_zero_cap_lets_free_agents_work_and_stops_at_the_first_cent() {
        let budgets = Budgets { max_cost: Usd::ZERO, ..Budgets::default() };
        assert_eq!(budgets.exhausted(Spent::default()), None);
        let spent = Spent { cost: Usd::from_dollars(0.000_001), ..Spent::default() };
        assert_eq!(budgets.exhausted(spent), Some(BudgetKind::Cost));
    }
}
