//! Progress: something that can be counted is better than ever in sight. Whatever came before does not count any more.

use super::Trace;

/// What got better in `trace` than in all of `previous`, in words. `None` without anything to compare it with.
pub fn is_progress(trace: &Trace, previous: &[Trace]) -> Option<String> {
    if previous.is_empty() {
        return None;
    }
    let met = previous.iter().map(|t| t.evidence.met).max().unwrap_or(0);
    if trace.evidence.met > met {
        return Some(format!("{} criteria are met, {met} before", trace.evidence.met));
    }
    if let Some(now) = trace.tests {
        let before: Vec<_> = previous.iter().filter_map(|t| t.tests).collect();
        let passed = before.iter().map(|t| t.passed).max();
        if let Some(passed) = passed.filter(|p| now.passed > *p) {
            return Some(format!("{} tests pass, {passed} before", now.passed));
        }
        let failed = before.iter().map(|t| t.failed).min();
        // Fewer failures by running fewer tests is no progress.
        let as_many = before.iter().all(|t| now.executed() >= t.executed() || t.failed == 0);
        if let Some(failed) = failed.filter(|f| now.failed < *f && as_many) {
            return Some(format!("{} tests fail, {failed} before", now.failed));
        }
    }
    let problems = previous.iter().filter_map(|t| t.evidence.problems).min();
    if let (Some(now), Some(before)) = (trace.evidence.problems, problems)
        && now < before
    {
        return Some(format!("{now} problems are left, {before} before"));
    }
    let gap = previous.iter().filter_map(|t| t.evidence.gap).min();
    // Measured numbers tremble; a hundredth is no step.
    if let (Some(now), Some(before)) = (trace.evidence.gap, gap)
        && now < before - before / 50
    {
        return Some("a measured number is nearer to its limit than before".into());
    }
    let counted = trace.tests.is_some() && previous.iter().any(|t| t.tests.is_some());
    if !counted && trace.changed && trace.failure.is_none() && previous.iter().all(|t| t.failure.is_some()) {
        return Some("the checks pass for the first time".into());
    }
    None
}

/// The place of the latest trace that shows progress, with its words.
pub(super) fn latest(traces: &[Trace]) -> Option<(usize, String)> {
    (1..traces.len()).rev().find_map(|at| Some((at, is_progress(&traces[at], &traces[..at])?)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{tested, trace};
    use super::*;

    #[test]
    fn more_passing_fewer_failing_or_more_met_is_progress() {
        let base = [tested(trace(1, "a", Some("f"), 9), 5, 3)];
        let better =
            |passed, failed| is_progress(&tested(trace(2, "b", Some("f"), 9), passed, failed), &base);
        assert!(better(6, 3).is_some());
        assert!(better(5, 3).is_none());
        assert!(better(4, 4).is_none());
        assert!(better(6, 2).is_some());
        assert!(better(5, 0).is_none(), "three tests were skipped, none was fixed");
        let mut met = trace(2, "b", Some("f"), 9);
        met.evidence.met = 1;
        assert_eq!(is_progress(&met, &base).unwrap(), "1 criteria are met, 0 before");
        assert!(is_progress(&met, &[]).is_none());
    }

    #[test]
    fn coming_back_to_an_old_best_is_none() {
        let history = [tested(trace(1, "a", None, 9), 9, 0), tested(trace(2, "b", Some("f"), 9), 2, 7)];
        assert!(is_progress(&tested(trace(3, "c", None, 9), 9, 0), &history).is_none());
        assert!(is_progress(&tested(trace(3, "c", None, 9), 10, 0), &history).is_some());
    }

    #[test]
    fn fewer_problems_of_a_linter_are_progress() {
        let with = |n, count| {
            let mut t = trace(n, &format!("t{n}"), Some("lint"), 9);
            t.evidence.problems = Some(count);
            t
        };
        assert!(is_progress(&with(2, 11), &[with(1, 12)]).is_some());
        assert!(is_progress(&with(2, 12), &[with(1, 12)]).is_none());
    }
}
