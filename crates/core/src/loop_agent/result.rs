//! How a run of the library ended.

use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::outcome::{EndReason, RunError, RunResult};
use std::ops::Deref;
use std::path::Path;

/// How a run ended: the [`RunResult`] that every face knows, with the diff and the agent's own words. Its fields are read
/// directly: `result.success`, `result.iterations`, `result.cost`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopResult {
    /// The result as the journal and the command line tell it.
    pub run: RunResult,
    /// Everything that the run has changed, as a patch; at most 16 MB, cut at its end.
    pub diff: String,
    /// What the agent of the last session said that it did; a claim.
    pub agent_summary: Option<String>,
}

impl LoopResult {
    /// A run that never began.
    pub fn refused(error: RunError) -> Self {
        Self { run: RunResult::refused(error), diff: String::new(), agent_summary: None }
    }

    /// The same of a run that exists: with what its record knows of it.
    pub(super) fn of_record(mut self, state: &RunState, record: &Path) -> Self {
        let totals = &state.spending.totals;
        self.run.run_id = Some(state.spec.run_id.clone());
        self.run.run_dir = Some(record.to_owned());
        self.run.workspace = Some(state.spec.home().to_owned());
        self.run.iterations = state.iterations.count;
        (self.run.cost, self.run.tokens) = (totals.cost, totals.tokens);
        self.run.elapsed_seconds = state.elapsed().as_secs_f64();
        self.run.work_ref = ralph_loop_domain::view::work_ref(state);
        self
    }

    /// The iteration from which [`LoopAgent::resume_from`](super::LoopAgent::resume_from) goes on, where it can.
    pub fn resume_from(&self) -> Option<u32> {
        let named = self.run.error.as_ref().and_then(|error| error.iteration);
        self.recoverable().then(|| named.unwrap_or(self.run.iterations + 1))
    }

    /// Whether going on may help: the environment is mended, the budget larger, a person has answered; or the run was only
    /// suspended, because nobody awaited it any more.
    pub fn recoverable(&self) -> bool {
        self.run.reason == EndReason::Suspended
            || self.run.error.as_ref().is_some_and(|error| error.recoverable)
    }
}

impl Deref for LoopResult {
    type Target = RunResult;
    fn deref(&self) -> &RunResult {
        &self.run
    }
}
