//! The stuck rules without a run.

use crate::help::StuckContext;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::stuck::{self, Signals, Trace};
use ralph_loop_protocol::stuck::StuckDetails;
use ralph_loop_task::config::StuckConfig;

/// Default score at which a run counts as stuck.
const GUTTER_SCORE: f64 = 0.7;

/// Judges from what iterations left (trees, failures, tests, numbers; never text) whether a run is stuck.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StuckDetector {
    /// Settings of the rules.
    pub config: StuckConfig,
    /// Score at which a run counts as stuck.
    pub gutter_score: f64,
}

impl Default for StuckDetector {
    fn default() -> Self {
        Self { config: StuckConfig::default(), gutter_score: GUTTER_SCORE }
    }
}

impl StuckDetector {
    /// A detector with these settings.
    pub fn new(config: StuckConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// The newest iteration's signals against the earlier ones; oldest first.
    pub fn signals(&self, traces: &[Trace]) -> Signals {
        if self.config.disabled {
            Signals::default()
        } else {
            stuck::score(traces, &self.config, self.gutter_score)
        }
    }

    /// Whether the last iterations are stuck.
    pub fn is_stuck(&self, state: &RunState) -> bool {
        self.signals(&traces(state)).loop_score >= self.gutter_score
    }

    /// Why it is stuck; `None` if there is no sign of it.
    pub fn context(&self, state: &RunState) -> Option<StuckContext> {
        let signals = self.signals(&traces(state));
        let kinds = signals.kinds();
        (!kinds.is_empty()).then(|| {
            StuckContext::of(state, kinds, signals.loop_score, &signals.evidence, &StuckDetails::default())
        })
    }
}

fn traces(state: &RunState) -> Vec<Trace> {
    state.stuck.traces.iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_no_sign() {
        assert_eq!(StuckDetector::default().signals(&[]).loop_score, 0.0);
        let off = StuckDetector::new(StuckConfig { disabled: true, ..StuckConfig::default() });
        assert_eq!(off.signals(&[]), Signals::default());
    }
}
