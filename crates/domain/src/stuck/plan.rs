//! Same plan: the final messages of several iterations are alike, and so are their results. Words alone never count:
//! good work may be reported with the same sentence every time, and a loop with new ones.

use super::{Trace, threshold, trace};
use crate::stuck::lines::patch;
use ralph_loop_task::config::StuckConfig;
use std::collections::BTreeSet;

const SHINGLES: usize = 24;

/// The word groups of a message, hashed; all numbers are equal.
pub fn shingles(message: &str) -> Vec<u32> {
    let words: Vec<String> = message
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(400)
        .map(
            |word| {
                if word.bytes().any(|b| b.is_ascii_digit()) { "#".to_owned() } else { word.to_lowercase() }
            },
        )
        .collect();
    let size = words.len().clamp(1, 3);
    let all: BTreeSet<u32> = words.windows(size).map(|group| patch::hash(&group.join(" "))).collect();
    all.into_iter().take(SHINGLES).collect()
}

/// Share of word groups that two messages have in common.
pub fn similarity(a: &[u32], b: &[u32]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let (a, b): (BTreeSet<u32>, BTreeSet<u32>) = (a.iter().copied().collect(), b.iter().copied().collect());
    a.intersection(&b).count() as f64 / a.union(&b).count() as f64
}

pub(super) fn same_plan(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let span = threshold(config);
    let recent = traces.get(traces.len().checked_sub(span)?..)?;
    let newest = recent.last()?;
    let alike =
        recent.iter().all(|t| similarity(&t.evidence.plan, &newest.evidence.plan) >= config.plan_similarity);
    if !alike {
        return None;
    }
    let nothing = recent.iter().all(|t| !t.has_substance());
    let same_places = !trace::common_files(recent).is_empty();
    let same_failure = recent.iter().all(|t| t.same_failure(newest));
    (nothing || (same_failure && same_places))
        .then(|| format!("the last {span} sessions had the same plan and the same result"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{in_files, trace};
    use super::*;

    fn saying(mut trace: Trace, words: &str) -> Trace {
        trace.evidence.plan = shingles(words);
        trace
    }

    #[test]
    fn numbers_and_case_do_not_make_another_plan() {
        let (a, b) = (shingles("Fixed the parser in 3 places."), shingles("fixed the parser in 14 places"));
        assert_eq!(similarity(&a, &b), 1.0);
        assert!(similarity(&a, &shingles("Rewrote the cache and its tests")) < 0.1);
        assert_eq!(similarity(&[], &[]), 0.0);
    }

    #[test]
    fn the_same_words_count_only_with_the_same_result() {
        let config = StuckConfig::default();
        let words = "I will adjust the retry handler and run the tests";
        let run = |same: bool| -> Vec<Trace> {
            (1..=3)
                .map(|n| {
                    let failure = if same { "f".to_owned() } else { format!("f{n}") };
                    saying(in_files(trace(n, &format!("t{n}"), Some(&failure), 9), &[("a.rs", 9)]), words)
                })
                .collect()
        };
        assert!(same_plan(&run(true), &config).is_some());
        assert!(same_plan(&run(false), &config).is_none());
        let still: Vec<Trace> = (1..=3).map(|n| saying(trace(n, "t", None, 0), words)).collect();
        assert!(same_plan(&still, &config).is_some());
    }
}
