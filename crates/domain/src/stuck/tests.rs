//! Tests of the score, and helpers for the rules' tests.

use super::*;
use proptest::prelude::*;
use ralph_loop_protocol::id::Digest;
use ralph_loop_protocol::proof::test_counts::TestCounts;

pub(super) fn trace(iteration: u32, tree: &str, failure: Option<&str>, lines: u64) -> Trace {
    Trace {
        failure: failure.map(|f| Digest::of(f.as_bytes())),
        lines,
        changed: lines > 0,
        ..Trace::new(iteration, tree.into())
    }
}

pub(super) fn tested(mut trace: Trace, passed: u64, failed: u64) -> Trace {
    trace.tests = Some(TestCounts { passed, failed });
    trace
}

pub(super) fn in_files(mut trace: Trace, files: &[(&str, u64)]) -> Trace {
    trace.files =
        files.iter().map(|(path, _)| ((*path).to_owned(), trace.tree.as_str().to_owned())).collect();
    trace.sizes = files.iter().map(|(_, lines)| *lines).collect();
    trace
}

pub(super) fn sketched(mut trace: Trace, substance: u64, added: &[u32], removed: &[u32]) -> Trace {
    trace.evidence.patch = Some(crate::stuck::lines::patch::PatchSketch {
        substance,
        added: added.to_vec(),
        removed: removed.to_vec(),
    });
    trace
}

fn scored(traces: &[Trace]) -> Signals {
    score(traces, &StuckConfig::default(), 0.7)
}

#[test]
fn a_silent_agent_with_the_same_failure_is_in_the_gutter_at_the_third_time() {
    let mut traces = Vec::new();
    let mut scores = Vec::new();
    for n in 1..=4 {
        traces.push(trace(n, "t", Some("tests fail"), 0));
        scores.push(scored(&traces).loop_score);
    }
    assert_eq!(scores, [0.0, 0.0, 0.8, 0.8]);
    assert_eq!(scored(&traces).kinds(), [StuckKind::ErrorLoop, StuckKind::NoProgress]);
}

#[test]
fn silent_agent_with_passing_checks_is_noticed() {
    let traces: Vec<Trace> = (1..=3).map(|n| trace(n, "t", None, 0)).collect();
    assert_eq!(scored(&traces[..2]).loop_score, 0.0);
    assert!(scored(&traces).loop_score >= 0.7);
}

#[test]
fn steady_work_scores_nothing() {
    let traces: Vec<Trace> =
        (1..=8).map(|n| trace(n, &format!("t{n}"), Some(&format!("failure {n}")), 20)).collect();
    assert_eq!(scored(&traces).loop_score, 0.0);
}

#[test]
fn failure_and_thrash_together_reach_the_default_threshold() {
    let traces: Vec<Trace> = (1..=5u32)
        .map(|n| Trace {
            files: vec![("a.rs".into(), if n % 2 == 0 { "x".into() } else { "y".into() })],
            ..trace(n, if n % 2 == 0 { "x" } else { "y" }, Some("same"), 40)
        })
        .collect();
    let signals = scored(&traces);
    assert!(signals.loop_score >= 0.7, "{signals:?}");
    assert_eq!(signals.evidence.len(), signals.seen().count());
}

#[test]
fn progress_forgets_what_came_before() {
    let mut traces: Vec<Trace> = (1..=4).map(|n| tested(trace(n, "t", Some("f"), 1), 4, 3)).collect();
    assert!(scored(&traces).loop_score >= 0.7);
    traces.push(tested(trace(5, "u", Some("f"), 1), 5, 2));
    let signals = scored(&traces);
    assert_eq!((signals.loop_score, signals.progress.as_deref()), (0.0, Some("5 tests pass, 4 before")));
    traces.push(tested(trace(6, "u", Some("f"), 0), 5, 2));
    assert_eq!(scored(&traces).loop_score, 0.0);
}

#[test]
fn weights_can_be_changed_and_switched_off() {
    let traces: Vec<Trace> = (1..=3).map(|n| trace(n, "t", None, 0)).collect();
    let mut config = StuckConfig::default();
    config.weights.idle = 0.0;
    let signals = score(&traces, &config, 0.7);
    assert_eq!((signals.idle, signals.loop_score), (0.0, 0.3));
    config.weights.stagnation = 0.9;
    assert_eq!(score(&traces, &config, 0.7).loop_score, 0.9);
}

fn any_trace() -> impl Strategy<Value = Trace> {
    let parts = (0..4u32, proptest::option::of(0..3u32), 0..9u64, 0..4u64, 0..3u32);
    parts.prop_map(|(tree, failure, lines, passed, plan)| {
        let failure = failure.map(|f| f.to_string());
        let mut t = trace(1, &tree.to_string(), failure.as_deref(), lines);
        t = in_files(t, &[("a.rs", lines), ("notes.md", 1)]);
        t = tested(t, passed, 4 - passed);
        t = sketched(t, lines / 2, &[tree, tree + 1, tree + 2], &[tree + 1, plan, 7]);
        t.evidence.plan = vec![plan];
        t
    })
}

proptest! {
    #[test]
    fn the_score_is_a_share_deterministic_and_blind_beyond_the_window(
        old in proptest::collection::vec(any_trace(), 0..20),
        recent in proptest::collection::vec(any_trace(), WINDOW),
    ) {
        let alone = scored(&recent);
        prop_assert!((0.0..=1.0).contains(&alone.loop_score));
        prop_assert_eq!(alone.evidence.len(), alone.seen().count());
        let whole: Vec<Trace> = old.into_iter().chain(recent.iter().cloned()).collect();
        prop_assert_eq!(&scored(&whole), &alone);
        prop_assert_eq!(&scored(&whole), &scored(&whole));
    }

    #[test]
    fn normalising_never_fails_and_is_stable(text in "\\PC{0,300}") {
        let once = failure::normalise(&text);
        prop_assert_eq!(failure::normalise(&text), once);
    }
}
