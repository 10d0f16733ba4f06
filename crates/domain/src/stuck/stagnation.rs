//! Stagnation: iterations that change nothing, or next to nothing.

use super::Trace;

/// Fewer changed lines than this are "next to nothing".
const LINES_MIN: u64 = 3;

pub(super) fn stagnant(traces: &[Trace], threshold: usize) -> Option<String> {
    if traces.len() < threshold {
        return None;
    }
    let still = traces.iter().rev().take_while(|t| !t.changed || t.lines < LINES_MIN).count();
    (still >= threshold).then(|| format!("{still} iterations in a row changed fewer than {LINES_MIN} lines"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    #[test]
    fn three_still_iterations_count_and_one_change_resets() {
        let still = |n| trace(n, "t", None, 0);
        assert!(stagnant(&[still(1), still(2)], 3).is_none());
        assert!(stagnant(&[still(1), still(2), still(3)], 3).is_some());
        assert!(stagnant(&[still(1), still(2), trace(3, "u", None, 9), still(4)], 3).is_none());
    }
}
