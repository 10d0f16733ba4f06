//! Previews the first prompt of a run that hasn't started.

use super::{Plan, planned};
use crate::error::AppError;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::prompt::{self, PromptFiles};
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::layout::{RalphDir, RunDir};

impl Plan {
    /// The first session's prompt, redacted, without the agent's own additions. Creates nothing.
    pub fn first_prompt(&self) -> Result<String, AppError> {
        let now = SystemClock::default().now();
        let mut spec = planned(self, ralph_loop_core::run_id::new(now), now)?;
        // The workspace doesn't exist yet; it would start from the user's tree.
        spec.workspace.clone_from(&self.origin.top);
        let state = RunState::new(spec);
        let kind = self.settings.agents.first().map(|agent| agent.kind).unwrap_or_default();
        let nowhere = RunDir::at(&self.home.path().join("previews"));
        let files = PromptFiles::read(&RalphDir::of(&self.origin.top), &nowhere, &state);
        let prompt = prompt::assemble(&state, &files, kind, None, "");
        Ok(prompt.redacted(&self.env.redactor(&self.origin.top)).text)
    }
}
