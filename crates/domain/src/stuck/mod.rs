//! Stuck detection: small rules over evidence (trees, exit codes, normalised output), never over wording. Each rule is
//! one file; their weights add up to the `loop_score`.

pub mod failure;
mod stagnation;
mod thrash;

use crate::event::FileChange;
use crate::id::{Digest, TreeId};
use serde::{Deserialize, Serialize};

/// How many iterations are remembered.
pub const WINDOW: usize = 8;
/// How many changed files of an iteration are remembered.
pub const FILES_MAX: usize = 50;

/// What the rules need to know of one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Its number.
    pub iteration: u32,
    /// The tree it left.
    pub tree: TreeId,
    /// Signature of the failure it showed, if any.
    pub failure: Option<Digest>,
    /// Lines added plus removed, and files changed.
    pub lines: u64,
    /// Whether any file changed.
    pub changed: bool,
    /// Path and content id of changed files (bounded).
    pub files: Vec<(String, String)>,
}

impl Trace {
    /// The part of a file list that the rules look at.
    pub fn files_of(changes: &[FileChange]) -> Vec<(String, String)> {
        changes
            .iter()
            .take(FILES_MAX)
            .map(|f| (f.path.clone(), f.blob.clone().unwrap_or_else(|| "-".into())))
            .collect()
    }
}

/// The signals of one iteration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Signals {
    /// The same failure three times within five iterations: 0.5.
    pub repeated_failure: f64,
    /// No or nearly no change for three iterations: 0.3.
    pub stagnation: f64,
    /// A file that flips between two contents: 0.2.
    pub thrash: f64,
    /// Their sum.
    pub loop_score: f64,
    /// What was seen, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// Scores the newest of `traces` (oldest first) against those before it.
pub fn score(traces: &[Trace], threshold: u32) -> Signals {
    let threshold = threshold.max(2) as usize;
    let mut evidence = Vec::new();
    let mut weigh = |weight: f64, seen: Option<String>| match seen {
        Some(words) => {
            evidence.push(words);
            weight
        }
        None => 0.0,
    };
    let repeated_failure = weigh(0.5, failure::repeated(traces, threshold));
    let stagnation = weigh(0.3, stagnation::stagnant(traces, threshold));
    let thrash = weigh(0.2, thrash::flips(traces));
    // Rounded, because 0.5 + 0.2 must reach a threshold of 0.7.
    let loop_score = ((repeated_failure + stagnation + thrash) * 1000.0).round() / 1000.0;
    Signals { repeated_failure, stagnation, thrash, loop_score, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn trace(iteration: u32, tree: &str, failure: Option<&str>, lines: u64) -> Trace {
        Trace {
            iteration,
            tree: tree.into(),
            failure: failure.map(|f| Digest::of(f.as_bytes())),
            lines,
            changed: lines > 0,
            files: Vec::new(),
        }
    }

    #[test]
    fn a_silent_agent_with_the_same_failure_is_in_the_gutter_at_the_third_time() {
        let mut traces = Vec::new();
        let mut scores = Vec::new();
        for n in 1..=4 {
            traces.push(trace(n, "t", Some("tests fail"), 0));
            scores.push(score(&traces, 3).loop_score);
        }
        assert_eq!(scores, [0.0, 0.0, 0.8, 0.8]);
    }

    #[test]
    fn steady_work_scores_nothing() {
        let traces: Vec<Trace> =
            (1..=8).map(|n| trace(n, &format!("t{n}"), Some(&format!("failure {n}")), 20)).collect();
        assert_eq!(score(&traces, 3).loop_score, 0.0);
    }

    #[test]
    fn failure_and_thrash_together_reach_the_default_threshold() {
        let traces: Vec<Trace> = (1..=5u32)
            .map(|n| Trace {
                files: vec![("a.rs".into(), if n % 2 == 0 { "x".into() } else { "y".into() })],
                ..trace(n, if n % 2 == 0 { "x" } else { "y" }, Some("same"), 40)
            })
            .collect();
        let signals = score(&traces, 3);
        assert!(signals.loop_score >= 0.7, "{signals:?}");
        assert_eq!(signals.evidence.len(), 2);
    }
}
