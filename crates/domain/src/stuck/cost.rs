//! Cost burn: iterations that cost money and change no file.

use super::{Trace, threshold};
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::StuckConfig;

pub(super) fn cost_burn(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let run = traces.iter().rev().take_while(|t| !t.changed);
    let (count, cost) = run.fold((0, Usd::ZERO), |(n, all), t| (n + 1, all + t.cost.unwrap_or_default()));
    let limit = config.cost_without_change_usd;
    (count + 1 >= threshold(config) && cost > Usd::ZERO && cost >= limit)
        .then(|| format!("{count} iterations in a row cost {cost} and changed no file"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    #[test]
    fn money_without_change_counts_from_the_limit_on() {
        let config = StuckConfig::default();
        let with = |n, dollars, lines| Trace {
            cost: Some(Usd::from_dollars(dollars)),
            ..trace(n, "t", None, lines)
        };
        assert!(cost_burn(&[with(1, 9.0, 0)], &config).is_none());
        assert!(cost_burn(&[with(1, 1.2, 0), with(2, 0.9, 0)], &config).is_some());
        assert!(cost_burn(&[with(1, 0.2, 0), with(2, 0.3, 0)], &config).is_none());
        assert!(cost_burn(&[with(1, 5.0, 9), with(2, 5.0, 9)], &config).is_none());
    }
}
