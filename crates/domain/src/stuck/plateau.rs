//! Plateau: test counts don't improve for a long time, however much changes; or without counts, the same failure
//! stays for a long time, however many files are new.

use super::{Trace, failure, threshold};
use ralph_loop_task::config::StuckConfig;

/// How much longer than other patterns a plateau must last: good work fails for a while.
const EXTRA_ITERATIONS: usize = 3;
/// How much longer while the work still reaches new files: a large change fails until its last part.
const EXTRA_WITH_NEW_FILES: usize = 7;

/// How much longer the same failure must stay without counts.
const EXTRA_UNCOUNTED: usize = 5;

pub(super) fn plateau(tries: &[Trace], traces: &[Trace], config: &StuckConfig) -> Option<String> {
    if failure::comes_and_goes(traces) {
        return None;
    }
    if let Some(words) = uncounted(tries, threshold(config) + EXTRA_UNCOUNTED) {
        return Some(words);
    }
    let short = threshold(config) + EXTRA_ITERATIONS;
    let long = threshold(config) + EXTRA_WITH_NEW_FILES;
    let lasts = |span: usize| {
        let recent = tries.get(tries.len().checked_sub(span)?..)?;
        is_flat(recent).then_some((span, recent))
    };
    let (span, recent) = lasts(long).or_else(|| lasts(short).filter(|(_, recent)| stays(recent)))?;
    let newest = recent.last()?.tests?;
    Some(format!(
        "for {span} iterations {} of {} tests fail, and none was fixed",
        newest.failed,
        newest.executed()
    ))
}

/// The same failure over `span` iterations that all changed something, without test counts.
fn uncounted(tries: &[Trace], span: usize) -> Option<String> {
    let recent = tries.get(tries.len().checked_sub(span)?..)?;
    let newest = recent.last()?;
    let same = recent.iter().all(|t| t.tests.is_none() && t.changed && t.same_failure(newest));
    same.then(|| format!("for {span} iterations the same failure stayed, whatever was changed"))
}

/// The same tests fail from the first to the last.
fn is_flat(recent: &[Trace]) -> bool {
    let (Some(first), Some(last)) = (recent.first(), recent.last()) else { return false };
    let Some(newest) = last.tests else { return false };
    recent.iter().all(|t| t.tests.is_some_and(|c| c.failed > 0 && c.passed >= newest.passed))
        && first.evidence.failing == last.evidence.failing
}

/// The newest changes are in files that were changed before.
fn stays(recent: &[Trace]) -> bool {
    let Some((newest, before)) = recent.split_last() else { return false };
    newest.work_files().all(|path| before.iter().any(|t| t.work_files().any(|p| p == path)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{in_files, tested, trace};
    use super::*;

    #[test]
    fn six_iterations_without_a_better_count() {
        let config = StuckConfig::default();
        let run = |count: u32, failed: &dyn Fn(u32) -> u64| -> Vec<Trace> {
            (1..=count).map(|n| tested(trace(n, &format!("t{n}"), Some("f"), 9), 7, failed(n))).collect()
        };
        let of = |traces: &[Trace]| plateau(traces, traces, &config).is_some();
        assert!(!of(&run(5, &|_| 2)));
        assert!(of(&run(6, &|_| 2)));
        let spreading: Vec<Trace> = run(10, &|_| 2)
            .into_iter()
            .map(|t| {
                let file = format!("f{}.rs", t.iteration);
                in_files(t, &[(&file, 40)])
            })
            .collect();
        assert!(!of(&spreading[..9]), "it goes from file to file");
        assert!(of(&spreading), "but not for ever");
        assert!(!of(&run(6, &|n| u64::from(n != 4))), "it was green in between");
    }
}
