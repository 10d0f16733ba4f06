//! The result of a library run.

use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::outcome::{EndReason, RunError, RunResult};
use std::ops::Deref;
use std::path::Path;

/// A run's result with the diff and the agent's summary. Derefs to [`RunResult`]: `result.success`,
/// `result.iterations`, `result.cost`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopResult {
    /// The result as the journal and the command line report it.
    pub run: RunResult,
    /// All changes as a patch, cut at 16 MB.
    pub diff: String,
    /// The last session's own summary; a claim, not evidence.
    pub agent_summary: Option<String>,
}

impl LoopResult {
    /// A run that never started.
    pub fn refused(error: RunError) -> Self {
        Self { run: RunResult::refused(error), diff: String::new(), agent_summary: None }
    }

    /// Adds what the record knows.
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

    /// The iteration that [`LoopAgent::resume_from`](super::LoopAgent::resume_from) would resume from.
    pub fn resume_from(&self) -> Option<u32> {
        let named = self.run.error.as_ref().and_then(|error| error.iteration);
        self.recoverable().then(|| named.unwrap_or(self.run.iterations + 1))
    }

    /// Whether resuming may help: after fixing the environment, raising a limit or an answer by the user; or
    /// if the run was only suspended.
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
