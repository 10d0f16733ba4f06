//! Denied: tool uses are denied and nothing is done. Permissions do not change by themselves, so twice is enough.

use super::{Trace, threshold};
use ralph_loop_task::config::StuckConfig;

pub(super) fn denied(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let run = traces.iter().rev().take_while(|t| t.denials > 0 && !t.has_substance());
    let (count, denials) = run.fold((0, 0), |(n, all), t| (n + 1, all + t.denials));
    (count + 1 >= threshold(config))
        .then(|| format!("{denials} tool uses were denied in {count} iterations that did nothing"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    #[test]
    fn twice_is_enough_but_only_without_work() {
        let config = StuckConfig::default();
        let with = |n, denials, lines| Trace { denials, ..trace(n, "t", None, lines) };
        assert!(denied(&[with(1, 2, 0)], &config).is_none());
        assert!(denied(&[with(1, 2, 0), with(2, 1, 0)], &config).is_some());
        assert!(denied(&[with(1, 2, 9), with(2, 1, 9), with(3, 1, 9)], &config).is_none());
        assert!(denied(&[], &config).is_none());
    }
}
