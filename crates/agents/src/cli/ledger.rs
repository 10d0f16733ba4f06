//! CLIs that go on with an earlier session count on: claude's cost and codex's tokens are those of the whole session so
//! far. What one run of the CLI used is the difference to what was heard before.

use ralph_loop_protocol::money::{Tokens, Usage, Usd};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Sessions that are remembered; older ones are forgotten.
const SESSIONS_MAX: usize = 64;

/// What was last heard of each session.
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
    /// What was used since `session` was last heard of; everything where it never was.
    ///
    /// A total that is smaller than before was not counted on (the CLI started over), so it stands for itself. After a
    /// restart of the engine the first total counts whole: too much, never too little.
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
    fn a_session_that_counts_on_is_charged_by_its_differences() {
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
