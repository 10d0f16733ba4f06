//! Sums what a session's calls used.

use ralph_loop_domain::model::ModelReply;
use ralph_loop_protocol::money::{CostBasis, Tokens, Usage, Usd};
use ralph_loop_task::config::{PriceConfig, Profile};

pub use ralph_loop_domain::model::Pricing;

#[derive(Debug, Clone, Default)]
pub(crate) struct SpendCounter {
    tokens: Option<Tokens>,
    cost: Option<Usd>,
    saved: Option<Usd>,
    basis: CostBasis,
    model: Option<String>,
    calls: u32,
}

impl SpendCounter {
    pub(crate) fn add(&mut self, profile: &Profile, reply: &ModelReply, pricing: &Pricing) {
        self.calls += 1;
        self.model = Some(reply.model.clone().unwrap_or_else(|| profile.litellm_model.clone()));
        if let Some(tokens) = reply.tokens {
            *self.tokens.get_or_insert_default() += tokens;
        }
        let estimate = reply.tokens.and_then(|tokens| match &profile.prices {
            Some(prices) => Some(from_profile(prices, &tokens)),
            None => pricing(&profile.litellm_model, &tokens)
                .or_else(|| reply.model.as_deref().and_then(|model| pricing(model, &tokens))),
        });
        if let Some((_, saved)) = estimate {
            *self.saved.get_or_insert_default() += saved;
        }
        let (cost, basis) = match (reply.cost, estimate) {
            // The cap counts the larger one if they differ.
            (Some(cost), Some((estimate, _))) if estimate > cost => (Some(estimate), CostBasis::Estimated),
            (Some(cost), _) => (Some(cost), CostBasis::Reported),
            (None, Some((cost, _))) => (Some(cost), CostBasis::Estimated),
            (None, None) => (None, CostBasis::Unknown),
        };
        if let Some(cost) = cost {
            *self.cost.get_or_insert_default() += cost;
        }
        self.basis = self.basis.max(basis);
    }

    /// The known cost so far.
    pub(crate) fn cost(&self) -> Usd {
        self.cost.unwrap_or_default()
    }

    pub(crate) fn tokens(&self) -> Tokens {
        self.tokens.unwrap_or_default()
    }

    pub(crate) fn usage(&self) -> Usage {
        if self.calls == 0 {
            return Usage::unknown();
        }
        Usage {
            tokens: self.tokens,
            cost: self.cost,
            basis: self.basis,
            saved: self.saved,
            model: self.model.clone(),
        }
    }
}

/// Cost and savings at a profile's prices.
fn from_profile(prices: &PriceConfig, tokens: &Tokens) -> (Usd, Usd) {
    let dollars = |tokens: u64, per_million: f64| tokens as f64 * per_million / 1e6;
    let read = prices.cache_read.unwrap_or(prices.input);
    let write = prices.cache_write.unwrap_or(prices.input);
    let cost = dollars(tokens.input, prices.input)
        + dollars(tokens.output, prices.output)
        + dollars(tokens.cached, read)
        + dollars(tokens.cache_write, write);
    let saved =
        dollars(tokens.cached, prices.input - read) - dollars(tokens.cache_write, write - prices.input);
    (Usd::from_dollars(cost), Usd::from_dollars(saved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_domain::model::StopReason;
    use std::sync::Arc;

    fn reply(input: u64, cost: Option<f64>) -> ModelReply {
        ModelReply {
            parts: Vec::new(),
            stop: StopReason::EndTurn,
            tokens: (input > 0).then(|| Tokens { input, output: 10, ..Tokens::default() }),
            cost: cost.map(Usd::from_dollars),
            model: None,
            tries: 1,
        }
    }

    fn pricing() -> Pricing {
        Arc::new(|model, tokens| {
            (model == "a/b").then(|| (Usd::from_dollars(tokens.input as f64), Usd::from_dollars(0.5)))
        })
    }

    #[test]
    fn sum_has_the_basis_of_its_least_certain_part() {
        let (known, unknown) = (Profile::of_model("p", "a/b"), Profile::of_model("q", "x/y"));
        let mut spend = SpendCounter::default();
        assert_eq!(spend.usage(), Usage::unknown());
        spend.add(&known, &reply(1, Some(2.0)), &pricing());
        assert_eq!((spend.usage().basis, spend.cost()), (CostBasis::Reported, Usd::from_dollars(2.0)));
        spend.add(&known, &reply(3, None), &pricing());
        assert_eq!((spend.usage().basis, spend.cost()), (CostBasis::Estimated, Usd::from_dollars(5.0)));
        spend.add(&unknown, &reply(4, None), &pricing());
        let usage = spend.usage();
        assert_eq!((usage.basis, usage.cost), (CostBasis::Unknown, Some(Usd::from_dollars(5.0))));
        assert_eq!(usage.tokens.unwrap().input, 8);
        assert_eq!(usage.saved, Some(Usd::from_dollars(1.0)));
        assert_eq!(usage.model.as_deref(), Some("x/y"));
    }

    #[test]
    fn where_report_and_price_list_differ_the_larger_one_counts() {
        let known = Profile::of_model("p", "a/b");
        let mut spend = SpendCounter::default();
        spend.add(&known, &reply(5, Some(2.0)), &pricing());
        assert_eq!((spend.usage().basis, spend.cost()), (CostBasis::Estimated, Usd::from_dollars(5.0)));
        spend.add(&known, &reply(5, Some(7.0)), &pricing());
        assert_eq!(spend.cost(), Usd::from_dollars(12.0));
    }

    #[test]
    fn a_profiles_own_prices_win() {
        let prices = PriceConfig { input: 2.0, output: 10.0, cache_read: Some(0.2), cache_write: Some(2.5) };
        let tokens = Tokens { input: 1_000_000, output: 100_000, cached: 1_000_000, cache_write: 1_000_000 };
        let (cost, saved) = from_profile(&prices, &tokens);
        assert_eq!(cost, Usd::from_dollars(2.0 + 1.0 + 0.2 + 2.5));
        assert_eq!(saved, Usd::from_dollars(1.8 - 0.5));
        let mut spend = SpendCounter::default();
        let profile = Profile { prices: Some(prices), ..Profile::of_model("p", "a/b") };
        spend.add(&profile, &reply(1_000_000, None), &pricing());
        assert_eq!(spend.cost(), Usd::from_dollars(2.0001));
    }
}
