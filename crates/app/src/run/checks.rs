//! How the checks of a run stand that this process has driven.

use super::FinishedRun;
use ralph_domain::view::{CheckView, ViewContext, view};
use ralph_journal::snapshot;

impl FinishedRun {
    /// Every check with its last result and what the final check said of it; none where the record cannot be read.
    pub fn checks(&self) -> Vec<CheckView> {
        let state = snapshot::load(&self.home.record(&self.spec.run_id));
        state.map(|state| view(&state, &ViewContext::default()).checks).unwrap_or_default()
    }
}
