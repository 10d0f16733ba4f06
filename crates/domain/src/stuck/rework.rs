//! Rework: the run takes out again what it has just put in, iteration after iteration, and nothing gets better.

use super::{Trace, threshold};
use crate::config::StuckConfig;

/// Share of the removed lines that the run itself had added shortly before.
const UNDONE: f64 = 0.5;
/// Fewer removed lines than this say nothing.
const LINES_MIN: usize = 3;

pub(super) fn rework(tries: &[Trace], config: &StuckConfig) -> Option<String> {
    let span = threshold(config);
    let undoing = (1..tries.len())
        .rev()
        .take_while(|at| {
            let Some(patch) = &tries[*at].evidence.patch else { return false };
            let (share, removed) =
                patch.undoes(tries[..*at].iter().filter_map(|t| t.evidence.patch.as_ref()));
            removed >= LINES_MIN && share >= UNDONE
        })
        .count();
    (undoing >= span)
        .then(|| format!("{undoing} iterations in a row took out again what the run had just put in"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{sketched, trace};
    use super::*;

    #[test]
    fn taking_out_what_was_just_put_in_counts_at_the_third_time() {
        let config = StuckConfig::default();
        let run = |count: u32, own: bool| -> Vec<Trace> {
            (1..=count)
                .map(|n| {
                    let added: Vec<u32> = (0..4).map(|k| n * 10 + k).collect();
                    let base = if own { (n - 1) * 10 } else { 5000 + n * 10 };
                    let removed: Vec<u32> = (0..4).map(|k| base + k).collect();
                    sketched(trace(n, &format!("t{n}"), None, 8), 8, &added, &removed)
                })
                .collect()
        };
        assert!(rework(&run(3, true), &config).is_none());
        assert!(rework(&run(4, true), &config).is_some());
        assert!(rework(&run(8, false), &config).is_none(), "old lines go: that is a rewrite, not a circle");
    }
}
