//! Checks that agents must not see.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::step::checks::clean_checkout::SetupEnd;
use crate::step::checks::verify::{CheckOptions, CheckOutcome, CheckTarget, run_check};
use ralph_loop_protocol::id::TreeId;
use ralph_loop_task::config::VerifierConfig;
use std::path::Path;

impl Driver {
    /// Runs a hidden check in a clean checkout, where sessions find nothing of it.
    pub(in crate::step) fn verify_hidden(
        &mut self,
        verifier: &VerifierConfig,
        tree: &TreeId,
        logs: &Path,
    ) -> Result<CheckOutcome, DriveError> {
        let state = &self.ctx.state;
        let Some(baseline) = &state.baseline else { return Ok(CheckOutcome::Stopped) };
        let commit = state.work.commit.clone().unwrap_or_else(|| baseline.head.clone());
        let checked =
            self.workspace.unreferenced_commit(tree, &commit, self.ctx.clock.now())?.unwrap_or(commit);
        self.in_clean_folder(|driver, folder| {
            driver.workspace.checkout_clean(&checked, folder)?;
            let checkout = driver.open_checkout(folder)?;
            match driver.run_setup(&checkout, logs)? {
                SetupEnd::Ready | SetupEnd::Failed { .. } => {}
                SetupEnd::Stopped => return Ok(CheckOutcome::Stopped),
            }
            let log = logs.join(format!("check-{}.log", verifier.name));
            let how = CheckOptions { env: &checkout.env, watch: false };
            run_check(
                &mut driver.ctx,
                verifier,
                &CheckTarget { sandbox: &*checkout.sandbox, tree, log: &log, how },
            )
        })
    }
}
