//! Stagnation: iterations that change nothing, or nearly nothing.

use super::{Trace, threshold};
use ralph_loop_task::config::StuckConfig;

pub(super) fn stagnant(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let least = config.min_lines;
    let still = traces.iter().rev().take_while(|t| !t.changed || t.lines < least).count();
    (still >= threshold(config))
        .then(|| format!("{still} iterations in a row changed fewer than {least} lines"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    #[test]
    fn three_still_iterations_count_and_one_change_resets() {
        let config = StuckConfig::default();
        let still = |n| trace(n, "t", None, 0);
        assert!(stagnant(&[still(1), still(2)], &config).is_none());
        assert!(stagnant(&[still(1), still(2), still(3)], &config).is_some());
        assert!(stagnant(&[still(1), still(2), trace(3, "u", None, 9), still(4)], &config).is_none());
    }
}
