//! Rework: the run takes out again what it has just put in, iteration after iteration, and nothing gets better.

use super::patch::{self, PatchSketch};
use super::{Trace, threshold};
use ralph_loop_task::config::StuckConfig;

/// Share of the lines that the iteration before had added. Good work fixes some of its own lines, too.
const GONE: f64 = 0.5;
/// Fewer added lines than this say nothing.
const LINES_MIN: usize = 3;

pub(super) fn rework(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let patches: Vec<_> = traces.iter().map(|t| t.evidence.patch.as_ref()).collect();
    let takes_back = |pair: &&[Option<&PatchSketch>]| match pair {
        [Some(before), Some(now)] => {
            let (share, lines) = patch::takes_back(now, before);
            lines >= LINES_MIN && share >= GONE
        }
        _ => false,
    };
    let times = patches.windows(2).rev().take_while(takes_back).count();
    (times >= threshold(config))
        .then(|| format!("{times} times in a row an iteration took out again what the one before had put in"))
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
