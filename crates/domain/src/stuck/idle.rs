//! Idle: no file changes at all, or for longer only notes, layout, generated files and single lines. Planning and
//! formatting are legitimate, so they get more time than silence.

use super::{Trace, threshold};
use ralph_loop_task::config::StuckConfig;

/// How much longer than silence a run may write only notes.
const GRACE: usize = 2;

pub(super) fn idle(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let silent = traces.iter().rev().take_while(|t| !t.changed).count();
    if silent >= threshold(config) {
        return Some(format!("{silent} iterations in a row changed no file"));
    }
    let inert = (0..traces.len()).rev().take_while(|at| is_inert(traces, *at, config)).count();
    (inert >= threshold(config) + GRACE)
        .then(|| format!("{inert} iterations in a row changed nothing of substance in the code"))
}

/// Whether a trace changed nothing of substance. Layout in a file for the first time counts as change: a formatter
/// goes from file to file.
fn is_inert(traces: &[Trace], at: usize, config: &StuckConfig) -> bool {
    let trace = &traces[at];
    if !trace.changed {
        return true;
    }
    let small = trace.lines < config.min_lines;
    let known = |path: &str| {
        traces[..at].iter().any(|t| (small || !t.has_substance()) && t.files.iter().any(|(p, _)| p == path))
    };
    (small || !trace.has_substance()) && trace.work_files().all(known)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{in_files, sketched, trace};
    use super::*;

    #[test]
    fn silence_counts_at_the_third_time_and_notes_at_the_fifth() {
        let config = StuckConfig::default();
        let silent: Vec<Trace> = (1..=3).map(|n| trace(n, "t", None, 0)).collect();
        assert!(idle(&silent[..2], &config).is_none());
        assert!(idle(&silent, &config).is_some());
        let notes: Vec<Trace> =
            (1..=5).map(|n| in_files(trace(n, &format!("t{n}"), None, 20), &[("PLAN.md", 20)])).collect();
        assert!(idle(&notes[..4], &config).is_none());
        assert!(idle(&notes, &config).is_some());
    }

    #[test]
    fn a_formatter_that_goes_from_file_to_file_is_not_idle() {
        let config = StuckConfig::default();
        let pass = |same: bool| -> Vec<Trace> {
            (1..=8)
                .map(|n| {
                    let file = if same { "a.rs".to_owned() } else { format!("f{n}.rs") };
                    sketched(in_files(trace(n, &format!("t{n}"), None, 30), &[(&file, 30)]), 0, &[], &[])
                })
                .collect()
        };
        assert!(idle(&pass(false), &config).is_none());
        assert!(idle(&pass(true), &config).is_some());
    }
}
