//! Recheck: repeats checks on the existing work after the user fixed the environment, before paying for
//! another session.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::step::checks::baseline_checks::BaselineEnd;
use crate::step::checks::clean_checkout::make_dir;
use crate::step::checks::environment::fault_of;
use crate::step::checks::verify::{CheckOptions, CheckOutcome, CheckRuns, CheckTarget};
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::outcome::HumanReason;

/// Whether the baseline checks failed because of the environment, and no session ran since.
pub(crate) fn baseline_lacks_programs(state: &RunState) -> bool {
    let missing = state.baseline_checks.as_ref().is_some_and(|checks| {
        checks.setup_failed.is_some()
            || checks.results.iter().any(|result| matches!(result.exit_code, Some(126 | 127)))
    });
    let asked = state.people.needs_human.as_ref().is_some_and(|need| need.reason == HumanReason::Setup);
    (missing || asked) && state.spending.totals.sessions == 0 && state.iterations.current.is_none()
}

impl Driver {
    /// Repeats checks on the existing work and asks the user again if the environment still lacks something.
    pub(crate) fn recheck(&mut self, checks: &[String]) -> Result<(), DriveError> {
        let tree = self.workspace.tree()?;
        let logs = self.ctx.run.path().join("recheck");
        make_dir(&logs)?;
        let iteration = self.ctx.state.iterations.count;
        let mut runs = CheckRuns::default();
        self.ctx.notice("the checks are run again before another session".to_owned())?;
        for name in checks {
            let known = self.ctx.state.spec.settings.verifiers.iter().find(|v| v.name == *name).cloned();
            let Some(verifier) = known else { continue };
            let log = logs.join(format!("check-{name}.log"));
            let how = CheckOptions::default();
            let place = CheckTarget { sandbox: &*self.sandbox, tree: &tree, log: &log, how };
            match runs.run(&mut self.ctx, &verifier, &place)? {
                CheckOutcome::Result(result, ..) => {
                    self.ctx.record(EventBody::CheckFinished { iteration, result: *result })?;
                }
                CheckOutcome::Stopped => return Ok(()),
            }
        }
        let before = self.ctx.state.stuck.environment.as_ref().map(|(fault, _)| fault.clone());
        let now = fault_of(&self.ctx.state, self.ctx.run.path());
        if let Some(fault) = now.filter(|fault| before.as_ref() == Some(fault)) {
            let message = format!("the checks still lack what they need: {fault}");
            self.ctx.record(EventBody::NeedsHuman { reason: HumanReason::Setup, message })?;
        }
        self.ctx.flush()?;
        Ok(())
    }

    /// Repeats the baseline checks, because what they lacked may be installed now.
    pub(crate) fn recheck_baseline(&mut self) -> Result<(), DriveError> {
        let Some(baseline) = self.ctx.state.baseline.clone() else { return Ok(()) };
        let surroundings = self.sealed_surroundings();
        if let BaselineEnd::Known(checks) = self.check_baseline(&baseline)? {
            self.ctx.record(EventBody::Prepared { baseline, surroundings, checks })?;
            self.ctx.flush()?;
            self.report_missing_programs()?;
            self.report_start_faults()?;
        }
        Ok(())
    }
}
