//! The driver: ask what comes next, do it, journal it, ask again.
//!
//! Start and resume are the same thing. A new run has an empty journal and so its first step is `Prepare`; a killed one
//! has a longer journal and its next step is whatever was not done yet.

use crate::context::{CancelFlag, Context};
use crate::error::DriveError;
use crate::help::Helpers;
use crate::hold::{Hold, Taker};
use crate::integrity::Watch;
use crate::observers::Observer;
use crate::refusals::Refusals;
use ralph_domain::decide::{Step, decide};
use ralph_domain::event::EventBody;
use ralph_domain::id::MachineId;
use ralph_domain::lease::DriverLease;
use ralph_domain::outcome::RunResult;
use ralph_domain::ports::{
    Agent, Clock, CustomCheck, Forge, GitRemote, Notifier, Sandbox, SandboxKeeper, Workspace,
};
use ralph_domain::redact::Redactor;
use ralph_domain::spec::RunSpec;
use ralph_domain::state::RunState;
use ralph_domain::vars::Vars;
use ralph_journal::journal::{Journal, Places};
use ralph_journal::layout::RalphDir;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything a driver is handed.
pub struct Parts {
    /// The `.ralph/` folder of the agent's tree: what sessions read and write.
    pub dir: RalphDir,
    /// The `.ralph/` folder of the run's own folder; another one where the agent works on a copy of the user's tree.
    pub home: RalphDir,
    /// What runs of this folder know of agents that rest.
    pub cooldowns: PathBuf,
    /// Where the journal's files are.
    pub places: Places,
    /// Where clean checkouts are made.
    pub proof_dir: PathBuf,
    /// Where commands run.
    pub sandbox: Box<dyn Sandbox>,
    /// The agent's tree.
    pub workspace: Box<dyn Workspace>,
    /// Who can work.
    pub agents: Vec<Box<dyn Agent>>,
    /// Checks that are code of the calling program, by the name of their verifier.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The variables of the run: by which its checks find programs, and what leads them into the workspace.
    pub vars: Vars,
    /// Knows the secrets.
    pub redactor: Arc<Redactor>,
    /// Who watches, each told in this order.
    pub observers: Vec<Box<dyn Observer>>,
    /// Ends the run from outside.
    pub cancel: Arc<CancelFlag>,
    /// Who may be called for help.
    pub helpers: Helpers,
    /// What a fence around the sandbox keeps from being reached.
    pub refusals: Refusals,
    /// The code host, where there is one.
    pub forge: Option<Box<dyn Forge>>,
    /// Where branches are pushed to without one.
    pub push_to: Option<GitRemote>,
    /// Who tells people of this run.
    pub notifiers: Vec<Box<dyn Notifier>>,
    /// Who looks after the sandboxes, where they have a life of their own.
    pub keeper: Option<Box<dyn SandboxKeeper>>,
    /// The machine that drives, where it has an id.
    pub machine: Option<MachineId>,
    /// The version of the program that drives, for the journal.
    pub version: Option<String>,
}

impl Parts {
    fn taker(&self) -> Taker {
        Taker {
            places: self.places.clone(),
            redactor: self.redactor.clone(),
            clock: self.clock.clone(),
            machine: self.machine.clone(),
            version: self.version.clone(),
        }
    }
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It was performed and journalled; another one may follow.
    More,
    /// There is none: the run is over, or a person is needed.
    Rest,
}

/// Drives one run: all of it with [`Driver::run`], or step by step with [`Driver::step`] and [`Driver::finish`].
pub struct Driver {
    pub(crate) ctx: Context,
    pub(crate) sandbox: Box<dyn Sandbox>,
    pub(crate) workspace: Box<dyn Workspace>,
    pub(crate) agents: Vec<Box<dyn Agent>>,
    pub(crate) helpers: Helpers,
    pub(crate) forge: Option<Box<dyn Forge>>,
    pub(crate) push_to: Option<GitRemote>,
    pub(crate) keeper: Option<Box<dyn SandboxKeeper>>,
    lease: DriverLease,
    /// The profile that the doctor uses this time, where a person named one.
    pub(crate) doctor_profile: Option<String>,
    /// The version of the task whose file is the baseline.
    pub(crate) spec_version: u32,
}

impl Driver {
    /// A new run: freezes the spec and opens the journal.
    pub fn create(spec: RunSpec, parts: Parts) -> Result<Self, DriveError> {
        Self::drive(Hold::create(spec, &parts.taker())?, parts)
    }

    /// A run of an earlier process: replays its journal and goes on.
    pub fn resume(parts: Parts) -> Result<Self, DriveError> {
        Self::drive(Hold::open(&parts.taker())?, parts)
    }

    /// Drives a run that this process has a hold on, and that has its place.
    pub fn drive(hold: Hold, parts: Parts) -> Result<Self, DriveError> {
        let (heard, first, healed) = (hold.heard, hold.first, hold.healed_bytes);
        let mut driver = Self::assemble(hold.state, hold.journal, hold.lease, parts);
        driver.ctx.show_record();
        driver.ctx.catch_up(&heard)?;
        let begins = driver.ctx.state.baseline.is_none() && driver.ctx.state.agents.cooldowns.is_empty();
        if begins {
            driver.inherit_cooldowns()?;
        }
        if healed > 0 {
            driver.ctx.notice(format!(
                "{healed} bytes that the journal had lost were taken from its sealed copy"
            ))?;
        }
        if let Some(baseline) = driver.ctx.state.baseline.clone() {
            driver.workspace.reopen(&baseline)?;
        }
        if driver.ctx.state.people.edit_pending {
            driver.ctx.new_spec_version()?;
        }
        if !first {
            driver.ctx.check_files(&Watch::default())?;
            driver.ctx.redo_controls()?;
            driver.check_evidence()?;
            driver.check_tree()?;
        }
        driver.ctx.flush()?;
        Ok(driver)
    }

    fn assemble(state: RunState, journal: Journal, lease: DriverLease, parts: Parts) -> Self {
        let mut ctx = Context::new(
            state,
            journal,
            parts.dir,
            parts.home,
            parts.clock,
            parts.redactor,
            parts.observers,
            parts.cancel,
            parts.proof_dir,
        );
        ctx.vars = parts.vars;
        ctx.cooldowns = parts.cooldowns;
        ctx.custom_checks = parts.custom_checks;
        ctx.refusals = parts.refusals;
        ctx.notifiers = parts.notifiers;
        Self {
            ctx,
            sandbox: parts.sandbox,
            workspace: parts.workspace,
            agents: parts.agents,
            helpers: parts.helpers,
            forge: parts.forge,
            push_to: parts.push_to,
            keeper: parts.keeper,
            lease,
            doctor_profile: None,
            spec_version: 1,
        }
    }

    /// This driver's hold on the run, as the journal tells it; whoever holds the lock writes it there, too.
    pub fn lease(&self) -> &DriverLease {
        &self.lease
    }

    /// What is known of the run.
    pub fn state(&self) -> &RunState {
        &self.ctx.state
    }

    /// Runs to the end, or to where a person is needed. An error leaves the journal as it is: `resume` goes on from it.
    pub fn run(mut self) -> RunResult {
        loop {
            match self.step() {
                Ok(Progress::More) => {}
                Ok(Progress::Rest) => return self.finish(Ok(())),
                Err(error) => return self.finish(Err(error)),
            }
        }
    }

    /// Asks what comes next, does it and journals it. A session, a check or a wait is one step and takes its time; the
    /// cancel flag and the inbox end it early. Between two steps the driver may move to another thread, or be dropped:
    /// `resume` goes on from there.
    pub fn step(&mut self) -> Result<Progress, DriveError> {
        self.ctx.read_inbox()?;
        self.ctx.tell_refusals()?;
        self.tell_sandboxes()?;
        self.apply_approval()?;
        self.take_edit()?;
        self.ctx.state.tick(self.ctx.clock.now());
        let step = decide(&self.ctx.state);
        if self.suspends(&step)? {
            return Ok(Progress::Rest);
        }
        match step {
            Step::Prepare => self.prepare()?,
            Step::Work { iteration, attempt, agent, model, role, skipped } => {
                self.work(iteration, attempt, &agent, model.as_deref(), role, skipped)?;
            }
            Step::Diagnose => self.diagnose()?,
            Step::Criticise => self.criticise()?,
            Step::CloseInterrupted => self.close_interrupted()?,
            Step::Void => self.void()?,
            Step::Checkpoint => self.checkpoint()?,
            Step::Verify { checks } => self.verify(&checks)?,
            Step::Judge => self.judge()?,
            Step::Wait { reason, until } => self.wait(&reason, until)?,
            Step::Mitigate { rung } => self.mitigate(rung)?,
            Step::Prove => self.prove()?,
            Step::Push => self.push()?,
            Step::Publish => self.publish()?,
            Step::LookAtChecks => self.look_at_checks()?,
            Step::LookAtReview => self.look_at_review()?,
            Step::AskPerson(need) => {
                self.ctx.record(EventBody::NeedsHuman { reason: need.reason, message: need.message })?;
            }
            Step::Finish { reason, summary } => {
                self.ctx.boundary("finish.before");
                self.hand_back(None)?;
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
        let told = driven.and_then(|()| self.tell_sandboxes());
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

#[cfg(test)]
mod tests {
    #[test]
    fn a_driver_and_its_errors_may_move_to_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<super::Driver>();
        is_send::<super::Parts>();
        is_send::<super::DriveError>();
    }
}
