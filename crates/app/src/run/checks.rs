//! The state of a driven run's checks, and the agent's question.

use super::RunReport;
use ralph_loop_domain::view::{CheckView, ViewContext, view};
use ralph_loop_journal::folder::snapshot;

impl RunReport {
    /// Every check with its last result and final verdict; empty if the record can't be read.
    pub fn checks(&self) -> Vec<CheckView> {
        let state = snapshot::load(&self.home.record(&self.spec.run_id));
        state.map(|state| view(&state, &ViewContext::default()).checks).unwrap_or_default()
    }

    /// The agent's last question, if its last session changed nothing and ended with one.
    pub fn last_question(&self) -> Option<(String, String)> {
        let state = snapshot::load(&self.home.record(&self.spec.run_id)).ok()?;
        let last = state.iterations.history.back().filter(|last| last.files == 0)?;
        let said = last.message.trim();
        let whole = said.strip_suffix(['?', '？'])?;
        let from = whole.rfind(['.', '!', '?', '\n']).map_or(0, |at| at + 1);
        let question = ralph_loop_protocol::display::text::one_line(said.get(from..)?.trim(), 300);
        Some((last.agent.to_string(), question))
    }
}
