//! Publish: hand the result over. Without a forge that is the branch (or the work ref) with its proof.

use crate::driver::Driver;
use crate::error::DriveError;
use ralph_domain::event::EventBody;

impl Driver {
    pub(crate) fn publish(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("publish.before");
        let state = &self.ctx.state;
        let commit = state
            .proof
            .as_ref()
            .map(|p| p.commit.clone())
            .or_else(|| state.work.clone())
            .ok_or_else(|| DriveError::Wiring("nothing to hand over".into()))?;
        let branch = self.result_branch().unwrap_or_default();
        self.ctx.record(EventBody::Published { branch, commit, pr_url: None })?;
        self.ctx.boundary("publish.after");
        Ok(())
    }

    /// The branch or ref that holds the work; `None` where nothing was recorded.
    pub(crate) fn result_branch(&self) -> Option<String> {
        let state = &self.ctx.state;
        match (&state.spec.branch, &state.work) {
            (Some(branch), _) => Some(branch.clone()),
            (None, Some(_)) => Some(format!("refs/ralph/{}/work", state.spec.run_id)),
            (None, None) => state.baseline.as_ref().and_then(|b| b.branch.clone()),
        }
    }
}
