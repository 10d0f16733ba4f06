//! Progress: something countable is better than before in the window. Earlier signals then no longer count.

use super::Trace;
use ralph_loop_protocol::stuck::MeasuredNumber;

/// What improved in `trace` over all of `previous`, as text. `None` without anything to compare with.
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
        // Fewer failures by running fewer tests doesn't count.
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
    // Measured numbers fluctuate; a hundredth doesn't count.
    if let (Some(now), Some(before)) = (trace.evidence.gap, gap)
        && now < before - before / 50
    {
        return Some("a measured number is nearer to its limit than before".into());
    }
    if let Some(words) = better_number(trace, previous) {
        return Some(words);
    }
    let counted = trace.tests.is_some() && previous.iter().any(|t| t.tests.is_some());
    if !counted && trace.changed && trace.failure.is_none() && previous.iter().all(|t| t.failure.is_some()) {
        return Some("the checks pass for the first time".into());
    }
    None
}

/// A number of a check that is the best in the window and moves steadily in the right direction.
pub(super) fn better_number(trace: &Trace, previous: &[Trace]) -> Option<String> {
    if !trace.changed {
        return None;
    }
    trace.evidence.numbers.iter().find_map(|now| {
        let of = |t: &Trace| {
            let same = |n: &&MeasuredNumber| n.key == now.key && n.rises == now.rises;
            t.evidence.numbers.iter().find(same).map(|n| if n.rises { n.value } else { -n.value })
        };
        // It differed in a second run on the same files.
        if std::iter::once(trace).chain(previous).any(|t| t.evidence.unsteady.contains(&now.key)) {
            return None;
        }
        let values: Vec<i64> = previous.iter().filter_map(of).chain(of(trace)).collect();
        let (newest, before) = values.split_last()?;
        let best = *before.iter().max()?;
        // Whole numbers count one by one; measured ones fluctuate, and a hundredth doesn't count.
        let whole = values.iter().all(|value| value % 1000 == 0);
        let step = if whole { 1 } else { (best.abs() / 100).max(1) };
        let step = step.max(now.noise.saturating_add(1));
        let worse = values.windows(2).filter(|pair| pair[1] < pair[0]).count();
        let moves = values.windows(2).filter(|pair| pair[1] != pair[0]).count();
        (*newest >= best + step && worse * 3 <= moves).then(|| {
            let shown = |value: i64| value.abs() as f64 / 1000.0;
            format!("`{}` is {}, {} before", now.label, shown(*newest), shown(best))
        })
    })
}

/// Whether only a number of a check improved.
pub(super) fn is_by_number(trace: &Trace, previous: &[Trace]) -> bool {
    let mut plain = trace.clone();
    plain.evidence.numbers.clear();
    is_progress(&plain, previous).is_none() && is_progress(trace, previous).is_some()
}

/// The index of the latest trace with progress, and its text.
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

    fn numbered(n: u32, tree: &str, value: i64, rises: bool) -> Trace {
        let mut t = trace(n, tree, Some("f"), 9);
        t.evidence.numbers =
            vec![MeasuredNumber { key: 7, value: value * 1000, rises, label: "left".into(), noise: 0 }];
        t
    }

    #[test]
    fn a_number_that_moves_the_right_way_is_progress_and_one_that_trembles_is_not() {
        let run = |values: &[i64], rises| -> Vec<Trace> {
            values.iter().zip(1..).map(|(v, n)| numbered(n, &format!("t{n}"), *v, rises)).collect()
        };
        let of = |values: &[i64], rises| {
            let traces = run(values, rises);
            let (newest, before) = traces.split_last().unwrap();
            is_progress(newest, before)
        };
        assert_eq!(of(&[7, 6], false).as_deref(), Some("`left` is 6, 7 before"));
        assert!(of(&[7, 6], true).is_none());
        assert!(of(&[5, 5, 5, 6], true).is_some());
        assert!(of(&[5, 9, 2, 8, 1, 10], true).is_none(), "up and down");
        let mut traces = run(&[5, 6], true);
        traces[1].evidence.unsteady = vec![7];
        assert!(is_progress(&traces[1], &traces[..1]).is_none(), "another number on the same files");
        traces[1].evidence.unsteady.clear();
        assert!(is_by_number(&traces[1], &traces[..1]));
        traces[1].changed = false;
        assert!(is_progress(&traces[1], &traces[..1]).is_none());
    }
}
