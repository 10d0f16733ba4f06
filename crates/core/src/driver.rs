//! The driver: asks for the next step, performs it, journals it, and repeats.
//!
//! Starting and resuming are the same. A new run has an empty journal, so its first step is `Prepare`; a
//! killed run's next step is whatever it hadn't done.

use crate::error::DriveError;
use crate::resume::integrity::WatchedRunFiles;
use crate::resume::run_writer::RunWriter;
use crate::step::checks::recheck::baseline_lacks_programs;
use ralph_loop_domain::decide::{Step, decide};
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::outcome::{EndReason, RunResult};
use ralph_loop_task::spec::RunSpec;

pub use crate::driver_parts::{Driver, RunHooks, RunPorts};

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Performed and journaled; more may follow.
    More,
    /// The run is over, or needs the user.
    Rest,
}

impl Driver {
    /// Creates a run: freezes the spec and opens the journal.
    pub fn create(spec: RunSpec, parts: RunPorts) -> Result<Self, DriveError> {
        Self::drive(RunWriter::create(spec, &parts.writer_options())?, parts)
    }

    /// Continues a run from the journal of an earlier process.
    pub fn resume(parts: RunPorts) -> Result<Self, DriveError> {
        Self::drive(RunWriter::open(&parts.writer_options())?, parts)
    }

    /// Drives a run that this process holds and that has a workspace.
    pub fn drive(writer: RunWriter, parts: RunPorts) -> Result<Self, DriveError> {
        Self::try_new(writer, parts).map_err(|refused| refused.0)
    }

    /// Like [`Self::drive`], but returns the parts on failure, so that the caller can retry.
    pub(crate) fn try_new(writer: RunWriter, parts: RunPorts) -> Result<Self, Box<(DriveError, RunPorts)>> {
        let (events, first, healed) = (writer.events, writer.first, writer.healed_bytes);
        let mut driver = Self::assemble(writer.state, writer.journal, writer.lease, parts);
        match driver.take_up(&events, first, healed) {
            Ok(()) => Ok(driver),
            Err(error) => Err(Box::new((error, driver.into_parts()))),
        }
    }

    /// Brings memory and disk to the journaled state.
    fn take_up(&mut self, events: &[Event], first: bool, healed: u64) -> Result<(), DriveError> {
        self.ctx.show_record();
        self.ctx.catch_up(events)?;
        let begins = self.ctx.state.baseline.is_none() && self.ctx.state.agents.cooldowns.is_empty();
        if begins {
            self.inherit_cooldowns()?;
        }
        if healed > 0 {
            self.ctx.notice(format!(
                "{healed} bytes that the journal had lost were taken from its sealed copy"
            ))?;
        }
        if let Some(baseline) = self.ctx.state.baseline.clone() {
            self.workspace.reopen(&baseline)?;
        }
        if self.ctx.state.people.edit_pending {
            self.ctx.new_spec_version()?;
        }
        if !first {
            self.ctx.check_files(&WatchedRunFiles::default())?;
            self.ctx.redo_controls()?;
            self.check_evidence()?;
            self.check_tree()?;
            self.baseline_due = baseline_lacks_programs(&self.ctx.state);
        }
        self.ctx.flush()
    }

    /// Drives the run until it ends or needs the user. After an error, `resume` continues from the journal.
    pub fn run(mut self) -> RunResult {
        let driven = self.step_to_the_end();
        self.finish(driven)
    }

    /// Performs steps until there are none left, or one fails.
    fn step_to_the_end(&mut self) -> Result<(), DriveError> {
        while self.step()? == Progress::More {}
        Ok(())
    }

    /// Performs and journals one step. A session, a check or a wait is one step; the cancel flag and the
    /// inbox end it early. Between steps the driver can move to another thread or be dropped.
    pub fn step(&mut self) -> Result<Progress, DriveError> {
        self.ctx.read_inbox()?;
        self.ctx.record_refusals()?;
        self.record_sandbox_events()?;
        self.apply_approval()?;
        self.approve_tests()?;
        self.take_edit()?;
        self.ctx.state.tick(self.ctx.clock.now());
        self.ctx.begin_step();
        let mut step = decide(&self.ctx.state);
        if matches!(step, Step::Work { .. }) && self.ctx.check_overhead()? {
            step = decide(&self.ctx.state);
        }
        if matches!(step, Step::Work { .. } | Step::Wait { .. }) && self.ctx.cancel.is_idle_requested() {
            self.ctx.record(EventBody::Suspended { by: "the worker, between two iterations".into() })?;
            return Ok(Progress::Rest);
        }
        if self.is_suspended(&step)? {
            return Ok(Progress::Rest);
        }
        if matches!(step, Step::Work { .. }) && std::mem::take(&mut self.baseline_due) {
            self.recheck_baseline()?;
            return Ok(Progress::More);
        }
        tracing::debug!(?step, seq = self.ctx.state.seq.0, "next");
        let counts = is_of_iteration(&step);
        let progress = self.perform(step)?;
        if counts {
            self.ctx.end_step();
        }
        Ok(progress)
    }

    fn perform(&mut self, step: Step) -> Result<Progress, DriveError> {
        match step {
            Step::Prepare => {
                self.prepare()?;
                self.report_missing_programs()?;
                self.report_start_faults()?;
            }
            Step::Work { iteration, attempt, agent, model, role, skipped } => {
                self.work(iteration, attempt, &agent, model.as_deref(), role, skipped)?;
            }
            Step::Diagnose => self.diagnose()?,
            Step::Criticise => self.criticise()?,
            Step::CloseInterrupted => self.close_interrupted()?,
            Step::Void => self.void()?,
            Step::Checkpoint => self.checkpoint()?,
            Step::Verify { checks } => self.verify(&checks)?,
            Step::Recheck { checks } => self.recheck(&checks)?,
            Step::Judge => self.judge()?,
            Step::Wait { reason, until } => self.wait(&reason, until)?,
            Step::Mitigate { rung } => self.mitigate(rung)?,
            Step::Prove => {
                self.prove()?;
                self.notice_refused_work()?;
            }
            Step::Push => self.push()?,
            Step::Publish => self.publish()?,
            Step::LookAtChecks => {
                self.read_checks()?;
                self.notice_refused_work()?;
            }
            Step::LookAtReview => {
                self.read_review()?;
                self.notice_refused_work()?;
            }
            Step::UpdatePr => self.update_pr()?,
            Step::AskPerson(need) => {
                self.ctx.record(EventBody::NeedsHuman { reason: need.reason, message: need.message })?;
            }
            Step::Finish { reason, summary } => {
                self.ctx.boundary("finish.before");
                match reason {
                    EndReason::Cancelled => self.push_refs_to_user_repo()?,
                    _ => self.hand_back(None)?,
                }
                self.ctx.record(EventBody::Finished { reason, summary })?;
                self.ctx.boundary("finish.after");
            }
            Step::AwaitPerson | Step::Done => return Ok(Progress::Rest),
        }
        Ok(Progress::More)
    }

    /// Suspends the run if requested.
    fn is_suspended(&mut self, step: &Step) -> Result<bool, DriveError> {
        let Some(by) = self.ctx.suspend_by.clone() else { return Ok(false) };
        let ends_anyway = matches!(step, Step::Done | Step::AwaitPerson | Step::Finish { .. });
        if ends_anyway || self.ctx.state.people.cancel_by.is_some() {
            return Ok(false);
        }
        if self.ctx.observer.ends_for_good() {
            self.ctx.cancel_instead(&by)?;
            return Ok(false);
        }
        self.ctx.record(EventBody::Suspended { by })?;
        Ok(true)
    }

    /// Ends driving: dismisses sandboxes, syncs the journal, returns the result. `driven` is the last step's
    /// outcome.
    pub fn finish(mut self, driven: Result<(), DriveError>) -> RunResult {
        self.close(driven)
    }

    /// Like [`Self::run`], but also returns the run's patch, and the parts for driving it again.
    pub fn run_to_end(mut self) -> (RunResult, String, RunPorts) {
        let driven = self.step_to_the_end();
        let result = self.close(driven);
        let diff = self.whole_diff();
        (result, diff, self.into_parts())
    }

    fn close(&mut self, driven: Result<(), DriveError>) -> RunResult {
        let told = driven.and_then(|()| self.record_sandbox_events());
        self.dismiss_sandboxes();
        let flushed = self.ctx.settle();
        self.clear_marker();
        self.ctx.show_end();
        match told.and(flushed) {
            Ok(()) => self.result(None),
            Err(error) => {
                let run_error = error.to_run_error(Some(self.ctx.state.iterations.count + 1));
                self.result(Some(run_error))
            }
        }
    }
}

/// Whether a step recurs every iteration, so that the engine's time adds up.
fn is_of_iteration(step: &Step) -> bool {
    matches!(step, Step::Work { .. } | Step::Checkpoint | Step::Verify { .. } | Step::Judge)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_driver_and_its_errors_may_move_to_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<super::Driver>();
        is_send::<super::RunPorts>();
        is_send::<super::DriveError>();
    }
}
