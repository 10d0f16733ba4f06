//! Churn: the same lines are edited in every iteration, and the same failure stays. A large change that fails for a
//! while reaches new files; this doesn't.

use super::{Trace, failure, threshold, trace};
use crate::stuck::lines::patch;
use crate::stuck::lines::patch::PatchSketch;
use ralph_loop_task::config::StuckConfig;

/// Share of the changed lines in the files changed every time.
const SAME_FILES: f64 = 0.5;
/// Share of the removed lines that the run itself had added shortly before.
const UNDONE: f64 = 0.3;

/// `tries` are the iterations since the last progress; `traces` the whole window.
pub(super) fn churn(tries: &[Trace], traces: &[Trace], config: &StuckConfig) -> Option<String> {
    if failure::comes_and_goes(traces) {
        return None;
    }
    let short = threshold(config);
    // Code that only grows may still succeed: it gets one more iteration.
    for (span, needs_undoing) in [(short, true), (short + 1, false)] {
        let Some(start) = tries.len().checked_sub(span) else { continue };
        let recent = &tries[start..];
        let Some(newest) = recent.last() else { continue };
        let files = trace::common_files(recent);
        let same = recent.iter().all(|t| t.changed && t.same_failure(newest))
            && recent.iter().all(|t| t.share_in(&files) >= SAME_FILES);
        if same && (!needs_undoing || undoes(recent)) {
            let first = files.first()?;
            return Some(format!(
                "`{first}` was edited in each of the last {span} iterations, and the failure stayed"
            ));
        }
    }
    None
}

fn undoes(recent: &[Trace]) -> bool {
    let patches: Vec<&PatchSketch> = recent.iter().filter_map(|t| t.evidence.patch.as_ref()).collect();
    let Some((newest, before)) = patches.split_last() else { return false };
    let (share, removed) = patch::undoes(newest, before.iter().copied());
    removed > 0 && share >= UNDONE
}

#[cfg(test)]
mod tests {
    use super::super::tests::{in_files, sketched, trace};
    use super::*;

    fn run(count: u32, file: impl Fn(u32) -> String, undo: bool) -> Vec<Trace> {
        (1..=count)
            .map(|n| {
                let t = in_files(trace(n, &format!("t{n}"), Some("f"), 20), &[(&file(n), 20)]);
                let removed = if undo { vec![n - 1] } else { vec![] };
                sketched(t, 20, &[n], &removed)
            })
            .collect()
    }

    #[test]
    fn the_same_file_and_failure_count_and_new_files_do_not() {
        let config = StuckConfig::default();
        let same = |_| "a.rs".to_owned();
        let of = |traces: &[Trace]| churn(traces, traces, &config).is_some();
        assert!(of(&run(3, same, true)), "it rewrites its own lines");
        assert!(!of(&run(3, same, false)));
        assert!(of(&run(4, same, false)));
        assert!(!of(&run(8, |n| format!("f{n}.rs"), true)), "a large change goes from file to file");
    }

    #[test]
    fn flaky_failure_is_not_churn() {
        let config = StuckConfig::default();
        let mut traces = run(6, |_| "a.rs".to_owned(), true);
        traces[1].failure = None;
        assert!(churn(&traces, &traces, &config).is_none());
    }
}
