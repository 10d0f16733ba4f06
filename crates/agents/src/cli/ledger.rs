//! CLIs that continue an earlier session accumulate: claude's cost and codex's tokens are totals of the session. One
//! CLI run's usage is the difference to the previous total.

use ralph_loop_protocol::money::{Tokens, Usage, Usd};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

const SESSIONS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    heard: Mutex<VecDeque<(String, Total)>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Total {
    tokens: Tokens,
    cost: Usd,
}

impl Ledger {
    /// The session that ended last, if it can be continued.
    pub(crate) fn last(&self) -> Option<String> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).back().map(|(id, _)| id.clone())
    }

    /// The usage since the last total of `session`; all of it for a new one.
    ///
    /// A smaller total than before means that the CLI started over, so it counts as is. After a restart of the engine
    /// the first total counts completely: too much, never too little.
    pub(crate) fn since(&self, session: &str, usage: Usage) -> Usage {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let place = heard.iter().position(|(id, _)| id == session);
        let before = place.and_then(|at| heard.remove(at)).map(|(_, total)| total).unwrap_or_default();
        let now =
            Total { tokens: usage.tokens.unwrap_or(before.tokens), cost: usage.cost.unwrap_or(before.cost) };
        let tokens = less(now.tokens, before.tokens);
        let cost = (now.cost >= before.cost).then(|| now.cost.saturating_sub(before.cost));
        heard.push_back((session.to_owned(), now));
        if heard.len() > SESSIONS_MAX {
            heard.pop_front();
        }
        Usage {
            saved: None,
            tokens: usage.tokens.map(|whole| tokens.unwrap_or(whole)),
            cost: usage.cost.map(|whole| cost.unwrap_or(whole)),
            ..usage
        }
    }
}

fn less(now: Tokens, before: Tokens) -> Option<Tokens> {
    Some(Tokens {
        input: now.input.checked_sub(before.input)?,
        output: now.output.checked_sub(before.output)?,
        cached: now.cached.checked_sub(before.cached)?,
        cache_write: now.cache_write.checked_sub(before.cache_write)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_protocol::money::CostBasis;

    fn total(input: u64, dollars: f64) -> Usage {
        Usage {
            tokens: Some(Tokens { input, output: 1, ..Tokens::default() }),
            cost: Some(Usd::from_dollars(dollars)),
            basis: CostBasis::Reported,
            saved: None,
            model: None,
        }
    }

    fn numbers(usage: &Usage) -> (u64, f64) {
        (usage.tokens.unwrap().input, usage.cost.unwrap().dollars())
    }

    #[test]
    fn resumed_session_is_charged_by_difference() {
        let ledger = Ledger::default();
        assert_eq!(numbers(&ledger.since("a", total(2000, 0.005565))), (2000, 0.005565));
        assert_eq!(numbers(&ledger.since("a", total(4000, 0.01113))), (2000, 0.005565));
        assert_eq!(numbers(&ledger.since("b", total(4000, 0.5))), (4000, 0.5), "another session");
        assert_eq!(numbers(&ledger.since("a", total(100, 0.001))), (100, 0.001), "it started over");
        let silent = ledger.since("b", Usage::unknown());
        assert_eq!((silent.tokens, silent.cost), (None, None));
        assert_eq!(numbers(&ledger.since("b", total(5000, 0.75))), (1000, 0.25));
    }

    #[test]
    fn only_so_many_sessions_are_remembered() {
        let ledger = Ledger::default();
        for n in 0..1000 {
            ledger.since(&n.to_string(), total(1, 0.1));
        }
        assert_eq!(ledger.heard.lock().unwrap().len(), SESSIONS_MAX);
    }
}
