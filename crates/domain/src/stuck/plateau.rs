//! Plateau: the tests are counted, and for long they are no better, however much changes.

use super::{Trace, failure, threshold};
use crate::config::StuckConfig;

/// How much longer than other patterns a plateau must last: good work is red for a while.
const PATIENCE: usize = 3;

pub(super) fn plateau(tries: &[Trace], traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let span = threshold(config) + PATIENCE;
    let recent = tries.get(tries.len().checked_sub(span)?..)?;
    let newest = recent.last()?.tests?;
    let flat = recent.iter().all(|t| t.tests.is_some_and(|c| c.failed > 0 && c.passed >= newest.passed));
    let (first, last) = (recent.first()?, recent.last()?);
    let same_names = first.evidence.failing == last.evidence.failing;
    (flat && same_names && !failure::comes_and_goes(traces)).then(|| {
        format!(
            "for {span} iterations {} of {} tests fail, and none was mended",
            newest.failed,
            newest.executed()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{tested, trace};
    use super::*;

    #[test]
    fn six_iterations_without_a_better_count() {
        let config = StuckConfig::default();
        let run = |count: u32, failed: &dyn Fn(u32) -> u64| -> Vec<Trace> {
            (1..=count).map(|n| tested(trace(n, &format!("t{n}"), Some("f"), 9), 7, failed(n))).collect()
        };
        let of = |traces: &[Trace]| plateau(traces, traces, &config).is_some();
        assert!(!of(&run(5, &|_| 2)));
        assert!(of(&run(6, &|_| 2)));
        assert!(!of(&run(6, &|n| u64::from(n != 4))), "it was green in between");
    }
}
