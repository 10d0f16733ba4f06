//! Decline: fewer tests pass after every iteration. A large change breaks much at once and then fixes it; this one only
//! breaks.

use super::{Trace, threshold};
use ralph_loop_task::config::StuckConfig;

pub(super) fn decline(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let drops = threshold(config) + 1;
    let recent = traces.get(traces.len().checked_sub(drops + 1)?..)?;
    let passed: Option<Vec<u64>> = recent.iter().map(|t| t.tests.map(|c| c.passed)).collect();
    let passed = passed?;
    let (first, last) = (passed.first()?, passed.last()?);
    passed
        .windows(2)
        .all(|pair| pair[1] < pair[0])
        .then(|| format!("fewer tests pass after each of the last {drops} iterations: {first}, now {last}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{tested, trace};
    use super::*;

    #[test]
    fn four_drops_in_a_row_count_and_a_drop_with_a_rise_does_not() {
        let config = StuckConfig::default();
        let run = |passed: &[u64]| -> Vec<Trace> {
            passed
                .iter()
                .zip(1..)
                .map(|(p, n)| tested(trace(n, &format!("t{n}"), Some("f"), 9), *p, 9 - p))
                .collect()
        };
        assert!(decline(&run(&[9, 8, 7, 6]), &config).is_none());
        assert!(decline(&run(&[9, 8, 7, 6, 5]), &config).is_some());
        assert!(decline(&run(&[9, 2, 3, 2, 1]), &config).is_none());
    }
}
