//! Cycles: the run returns to an earlier state repeatedly, with a period of two to four iterations. Trees show it
//! best; if notes make every tree new, the work files show it; and if even those are new, two alternating failures
//! do, or tests that are disabled and enabled again.

use super::{Trace, thrash, trace};
use crate::stuck::lines::paths;
use std::collections::BTreeMap;

const PERIODS: std::ops::RangeInclusive<usize> = 2..=4;

pub(super) fn cycle(traces: &[Trace]) -> Option<String> {
    trees(traces).or_else(|| files(traces)).or_else(|| failures(traces)).or_else(|| tests(traces))
}

/// The period with which the last `again` entries repeat those one period before.
fn period<T: PartialEq>(seen: &[T], again: usize) -> Option<usize> {
    PERIODS.into_iter().find(|period| {
        let Some(start) = seen.len().checked_sub(period + again) else { return false };
        let recent = &seen[start..];
        let repeats = (*period..recent.len()).all(|at| recent[at] == recent[at - period]);
        // Standing still isn't a cycle, and a period of four may be one of two.
        repeats && recent[..*period].windows(2).any(|pair| pair[0] != pair[1])
    })
}

fn trees(traces: &[Trace]) -> Option<String> {
    let seen: Vec<&str> = traces.iter().filter(|t| t.changed).map(|t| t.tree.as_str()).collect();
    let newest = traces.last()?;
    let period = newest.changed.then(|| period(&seen, 2))??;
    Some(format!("the files come back to the same state every {period} iterations"))
}

/// Every changed work file repeats, whatever new notes there are.
fn files(traces: &[Trace]) -> Option<String> {
    let newest = traces.last()?;
    let mut contents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for trace in traces {
        for (path, blob) in trace.files.iter().filter(|(path, _)| paths::is_work(path)) {
            contents.entry(path).or_default().push(blob);
        }
    }
    let mut work = newest.work_files().peekable();
    let first = *work.peek()?;
    let flipping = thrash::flipping(traces);
    let circles = |path: &str| {
        flipping.contains(&path) || contents.get(path).is_some_and(|seen| period(seen, 2).is_some())
    };
    work.all(circles).then(|| format!("`{first}` and all else that changes come back to old contents"))
}

/// Fixing one thing breaks the other, and back: the same failures alternate in the same files.
fn failures(traces: &[Trace]) -> Option<String> {
    let newest = traces.last()?;
    newest.failure.as_ref()?;
    let seen: Vec<_> = traces.iter().map(|t| &t.failure).collect();
    let period = period(&seen, 3)?;
    let recent = &traces[traces.len() - period - 3..];
    let all_fail = recent.iter().all(|t| t.failure.is_some());
    (all_fail && !trace::common_files(recent).is_empty())
        .then(|| format!("{period} failures take turns: fixing one brings back the other"))
}

/// Tests are disabled and enabled again.
fn tests(traces: &[Trace]) -> Option<String> {
    let seen: Vec<_> = traces.iter().filter_map(|t| t.tests).collect();
    let [.., a, b, c, d] = seen.as_slice() else { return None };
    let turns = a == c && b == d && a.executed() != b.executed();
    // A build that sometimes breaks runs no tests; only tests that pass both times were disabled.
    let both_ran = a.executed().min(b.executed()) > 0;
    let recent = &traces[traces.len().checked_sub(4)?..];
    (turns && both_ran && !trace::common_files(recent).is_empty()).then(|| {
        format!("tests are switched off and on again: {} and {} run in turns", a.executed(), b.executed())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{in_files, tested, trace};
    use super::*;

    fn run(trees: &str) -> Vec<Trace> {
        trees.chars().zip(1..).map(|(c, n)| trace(n, &c.to_string(), None, 9)).collect()
    }

    #[test]
    fn periods_of_two_to_four_are_seen_early_and_longer_ones_or_reverts_are_not() {
        for (trees, want) in [
            ("aba", false),
            ("abab", true),
            ("xabcab", true),
            ("abca", false),
            ("abcdab", true),
            ("abcdeab", false),
            ("aaaa", false),
            ("abcdefgh", false),
        ] {
            assert_eq!(cycle(&run(trees)).is_some(), want, "{trees}");
        }
    }

    #[test]
    fn notes_do_not_hide_a_circle_of_the_code() {
        let traces: Vec<Trace> = (1..=4u32)
            .map(|n| {
                let blob = if n % 2 == 0 { "x" } else { "y" };
                let mut t = in_files(trace(n, &format!("t{n}"), None, 9), &[("a.rs", 5), ("PLAN.md", 4)]);
                t.files[0].1 = blob.into();
                t.files[1].1 = format!("note {n}");
                t
            })
            .collect();
        assert!(cycle(&traces).is_some());
        let mut other = traces;
        other[3] = in_files(trace(4, "t4", None, 9), &[("a.rs", 5), ("new.rs", 40)]);
        other[3].files[0].1 = "x".into();
        assert!(cycle(&other).is_none(), "new work in addition");
    }

    #[test]
    fn failures_that_take_turns_and_tests_that_come_and_go() {
        let turns = |kinds: &str| -> Vec<Trace> {
            kinds
                .chars()
                .zip(1..)
                .map(|(c, n)| in_files(trace(n, &format!("t{n}"), Some(&c.to_string()), 9), &[("a.rs", 9)]))
                .collect()
        };
        assert!(cycle(&turns("fgfgf")).is_some());
        assert!(cycle(&turns("fghij")).is_none());
        let skipping: Vec<Trace> = (1..=4u32)
            .map(|n| {
                let t = in_files(trace(n, &format!("t{n}"), None, 9), &[("a_test.go", 9)]);
                if n % 2 == 0 { tested(t, 10, 0) } else { tested(t, 10, 2) }
            })
            .collect();
        assert!(cycle(&skipping).is_some());
    }
}
