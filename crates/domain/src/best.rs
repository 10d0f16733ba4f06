//! The best number of a run that is to improve one.

use crate::state::RunState;
use ralph_loop_protocol::display::view::BestNumber;

/// The best number so far, if the run should improve one.
pub fn best(state: &RunState) -> Option<BestNumber> {
    let best = state.work.best.as_ref()?;
    let verifier = state.spec.settings.verifiers.iter().find(|verifier| verifier.name == best.label);
    let thousandths = |value: i64| value as f64 / 1000.0;
    Some(BestNumber {
        name: best.label.clone(),
        value: thousandths(best.value),
        noise: (best.noise > 0).then(|| thousandths(best.noise)),
        target: verifier.and_then(|verifier| verifier.metric.as_ref()?.target),
        rises: best.rises,
        iteration: best.iteration,
    })
}
