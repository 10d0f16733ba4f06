//! Empty: sessions end without an answer, refuse, or fail, and change nothing.

use super::{Ending, Trace, threshold};
use ralph_loop_task::config::StuckConfig;

pub(super) fn empty(traces: &[Trace], config: &StuckConfig) -> Option<String> {
    let fruitless =
        |t: &&Trace| !t.changed && matches!(t.ending, Ending::Empty | Ending::Refused | Ending::Failed);
    let run: Vec<Ending> = traces.iter().rev().take_while(fruitless).map(|t| t.ending).collect();
    if run.len() < threshold(config) {
        return None;
    }
    let word = match run.as_slice() {
        all if all.iter().all(|e| *e == Ending::Refused) => "refused",
        all if all.iter().all(|e| *e == Ending::Failed) => "failed",
        _ => "ended without an answer",
    };
    Some(format!("{} sessions in a row {word} and changed nothing", run.len()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    #[test]
    fn three_sessions_without_an_answer() {
        let config = StuckConfig::default();
        let with = |n, ending| Trace { ending, ..trace(n, "t", None, 0) };
        let run = [with(1, Ending::Empty), with(2, Ending::Refused), with(3, Ending::Empty)];
        assert!(empty(&run[..2], &config).is_none());
        assert!(empty(&run, &config).is_some());
        let stopped = [with(1, Ending::Stopped), with(2, Ending::Stopped), with(3, Ending::Stopped)];
        assert!(empty(&stopped, &config).is_none(), "a person ended them");
    }
}
