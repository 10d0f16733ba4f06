//! Hollow: only blanks and comments change, in the same files, again and again.

use super::{Trace, threshold, trace};
use ralph_loop_task::config::StuckConfig;

pub(super) fn hollow(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let newest = traces.last()?;
    // While a check fails there is something to do; without one, comments may be the task, and get one turn more.
    let failing = newest.failure.is_some();
    let span = threshold(config) + usize::from(!failing);
    let recent = traces.get(traces.len().checked_sub(span)?..)?;
    let empty = recent.iter().all(|t| t.changed && !t.has_substance() && t.work_files().next().is_some());
    let same_failure = !failing || recent.iter().all(|t| t.failure.is_some());
    let files = trace::common_files(recent);
    let first = files.first()?;
    (empty && same_failure)
        .then(|| format!("the last {span} changes were only blanks and comments, in `{first}` each time"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{in_files, sketched, trace};
    use super::*;

    fn run(count: u32, failure: Option<&str>, same_file: bool, substance: u64) -> Vec<Trace> {
        (1..=count)
            .map(|n| {
                let file = if same_file { "a.rs".to_owned() } else { format!("{n}.rs") };
                let base = in_files(trace(n, &format!("t{n}"), failure, 8), &[(&file, 8)]);
                sketched(base, substance, &[], &[])
            })
            .collect()
    }

    #[test]
    fn comments_in_the_same_file_count_and_a_pass_over_the_files_does_not() {
        let config = StuckConfig::default();
        assert!(hollow(&run(3, Some("f"), true, 0), &config).is_some());
        assert!(hollow(&run(3, None, true, 0), &config).is_none());
        assert!(hollow(&run(4, None, true, 0), &config).is_some());
        assert!(hollow(&run(4, Some("f"), false, 0), &config).is_none());
        assert!(hollow(&run(4, Some("f"), true, 2), &config).is_none());
    }
}
