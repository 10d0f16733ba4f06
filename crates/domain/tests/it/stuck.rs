//! The stuck detector against recorded runs: every known way to be stuck, and work that only resembles it.
//!
//! A line of `stuck/runs.jsonl` is a run: its name, the iteration (from 0) in which it becomes stuck, and the trace
//! of each iteration. Ids and hashes are shortened to small ones in the same order.

use ralph_loop_domain::stuck::{Trace, WINDOW, score};
use ralph_loop_task::config::StuckConfig;
use serde::Deserialize;

#[derive(Deserialize)]
struct RecordedRun {
    name: String,
    onset: Option<usize>,
    traces: Vec<Trace>,
}

/// The iteration in which the run is stuck, or asks for what its machine lacks.
fn alarm(traces: &[Trace]) -> Option<usize> {
    let config = StuckConfig::default();
    (0..traces.len()).find(|&at| {
        let lacks = |t: &Trace| t.evidence.environment.clone();
        let lacks_it_again =
            at > 0 && lacks(&traces[at]).is_some_and(|it| lacks(&traces[at - 1]) == Some(it));
        let seen = &traces[(at + 1).saturating_sub(WINDOW)..=at];
        lacks_it_again || score(seen, &config, 0.7).loop_score >= 0.7
    })
}

#[test]
fn stuck_runs_are_noticed_soon_and_healthy_ones_left_alone() {
    let runs: Vec<RecordedRun> = include_str!("stuck/runs.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:.60}")))
        .collect();
    let (mut delays, mut missed, mut false_alarms) = (Vec::new(), Vec::new(), Vec::new());
    for run in &runs {
        match (alarm(&run.traces), run.onset) {
            (Some(at), Some(onset)) if at >= onset => delays.push(at - onset + 1),
            (Some(at), _) => false_alarms.push(format!("{} at {at}", run.name)),
            (None, Some(_)) => missed.push(&run.name),
            (None, None) => {}
        }
    }
    delays.sort_unstable();
    let share = |part: usize, of: usize| part as f64 / of as f64;
    let recall = share(delays.len(), runs.iter().filter(|run| run.onset.is_some()).count());
    let precision = share(delays.len(), delays.len() + false_alarms.len());
    println!("{} runs: recall {recall:.3}, precision {precision:.3}", runs.len());
    assert!(recall >= 0.95, "recall {recall:.3}: {missed:?}");
    assert!(precision >= 0.98, "precision {precision:.3}: {false_alarms:?}");
    assert!(delays[delays.len() / 2] <= 4, "iterations from the onset to the alarm: {delays:?}");
}
