//! The driver: ask what comes next, do it, journal it, ask again.
//!
//! Start and resume are the same thing. A new run has an empty journal and so its first step is `Prepare`; a killed one
//! has a longer journal and its next step is whatever was not done yet.

use crate::error::DriveError;
use crate::integrity::WatchedRunFiles;
use crate::run_writer::RunWriter;
use crate::step::recheck::baseline_lacks_programs;
use ralph_loop_domain::decide::{Step, decide};
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::outcome::{EndReason, RunResult};
use ralph_loop_task::spec::RunSpec;

pub use crate::driver_parts::{Attached, Driver, DriverParts};

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It was performed and journalled; another one may follow.
    More,
    /// There is none: the run is over, or a person is needed.
    Rest,
}

impl Driver {
    /// A new run: freezes the spec and opens the journal.
    pub fn create(spec: RunSpec, parts: DriverParts) -> Result<Self, DriveError> {
        Self::drive(RunWriter::create(spec, &parts.writer_options())?, parts)
    }

    /// A run of an earlier process: replays its journal and goes on.
    pub fn resume(parts: DriverParts) -> Result<Self, DriveError> {
        Self::drive(RunWriter::open(&parts.writer_options())?, parts)
    }

    /// Drives a run that this process has a hold on, and that has its place.
    pub fn drive(writer: RunWriter, parts: DriverParts) -> Result<Self, DriveError> {
        Self::drive_or_release(writer, parts).map_err(|refused| refused.0)
    }

    /// The same, and gives back everything that it was handed where the run cannot be taken up: for whoever tries again.
    pub(crate) fn drive_or_release(
        writer: RunWriter,
        parts: DriverParts,
    ) -> Result<Self, Box<(DriveError, DriverParts)>> {
        let (events, first, healed) = (writer.events, writer.first, writer.healed_bytes);
        let mut driver = Self::assemble(writer.state, writer.journal, writer.lease, parts);
        match driver.take_up(&events, first, healed) {
            Ok(()) => Ok(driver),
            Err(error) => Err(Box::new((error, driver.into_parts()))),
        }
    }

    /// Brings what is in memory and on the disk to where the journal says that the run is.
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

    /// Runs to the end, or to where a person is needed. An error leaves the journal as it is: `resume` goes on from it.
    pub fn run(mut self) -> RunResult {
        let driven = self.step_to_the_end();
        self.finish(driven)
    }

    /// Step after step, until there is none, or one fails.
    fn step_to_the_end(&mut self) -> Result<(), DriveError> {
        while self.step()? == Progress::More {}
        Ok(())
    }

    /// Asks what comes next, does it and journals it. A session, a check or a wait is one step and takes its time; the
    /// cancel flag and the inbox end it early. Between two steps the driver may move to another thread, or be dropped:
    /// `resume` goes on from there.
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
        if matches!(step, Step::Work { .. }) && self.ctx.tell_own_time()? {
            step = decide(&self.ctx.state);
        }
        if matches!(step, Step::Work { .. } | Step::Wait { .. }) && self.ctx.cancel.rests_soon() {
            self.ctx.record(EventBody::Suspended { by: "the worker, between two iterations".into() })?;
            return Ok(Progress::Rest);
        }
        if self.suspends(&step)? {
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
                self.tell_missing_programs()?;
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
                    EndReason::Cancelled => self.hand_commits()?,
                    _ => self.hand_back(None)?,
                }
                self.ctx.record(EventBody::Finished { reason, summary })?;
                self.ctx.boundary("finish.after");
            }
            Step::AwaitPerson | Step::Done => return Ok(Progress::Rest),
        }
        Ok(Progress::More)
    }

    /// Somebody ends this process: what is left to do is left to the next one.
    fn suspends(&mut self, step: &Step) -> Result<bool, DriveError> {
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

    /// Lets go of the run after its last step: dismisses its sandboxes, waits until the journal is on the disk, and says
    /// how it went. `driven` is what the last step came to.
    pub fn finish(mut self, driven: Result<(), DriveError>) -> RunResult {
        self.close(driven)
    }

    /// Like [`Self::run`], and gives back everything that it was handed: for whoever drives the same run again. With what the
    /// run has changed, as a patch.
    pub fn run_and_release(mut self) -> (RunResult, String, DriverParts) {
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

/// Whether a step comes again with each iteration, so that what the engine itself takes for it adds up.
fn is_of_iteration(step: &Step) -> bool {
    matches!(step, Step::Work { .. } | Step::Checkpoint | Step::Verify { .. } | Step::Judge)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_driver_and_its_errors_may_move_to_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<super::Driver>();
        is_send::<super::DriverParts>();
        is_send::<super::DriveError>();
    }
}
