//! The face of this crate: one value through which every caller starts, continues, opens and lists runs.

use crate::consent::Asked;
use crate::environment::Environment;
use crate::error::AppError;
use crate::facts::RunReading;
use crate::list::{self, ListEntry};
use crate::report::{Notice, Reporter};
use crate::request::{NotifyRequest, RunRequest};
use crate::resume::{self, ResumeOutcome};
use crate::run::{self, ForkRequest, Plan, placement};
use crate::trust::store::TrustStore;
use crate::{agent, find, spawn, wiring};
use ralph_loop_core::handle::RunHandle;
use ralph_loop_core::replay::{self, Replay};
use ralph_loop_core::{CancelFlag, Completion, Driver, LoopAgent};
use ralph_loop_journal::registry::Registration;
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::config::Isolation;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Starts, continues, opens and lists runs, in the surroundings that it was given.
#[derive(Debug, Clone)]
pub struct App {
    env: Environment,
}

/// A run that somebody looks at and may steer; nothing of it is changed by that.
#[derive(Debug)]
pub struct OpenRun {
    /// Where it is.
    pub entry: Registration,
    /// The way to its journal and its inbox.
    pub handle: RunHandle,
}

/// Who reads a run that gets nowhere.
#[derive(Debug, Clone, Copy)]
pub enum Doctor<'a> {
    /// The model of the run's settings.
    Configured,
    /// This model profile.
    Profile(&'a str),
    /// No model: rules only.
    Rules,
}

impl App {
    /// In these surroundings.
    pub fn new(env: Environment) -> Self {
        Self { env }
    }

    /// The surroundings.
    pub fn environment(&self) -> &Environment {
        &self.env
    }

    /// The request as it is run: where it is about another repo than the folder's (one that its task names, or of a clone), in a
    /// checkout of that.
    pub fn settle(&self, request: &RunRequest) -> Result<RunRequest, AppError> {
        run::settle(&self.env, request)
    }

    /// What must be allowed before [`Self::settle`] may connect to another repo that a task names; nothing where none is named, or
    /// by the user alone.
    pub fn asked_for_source(&self, request: &RunRequest) -> Result<Option<Asked>, AppError> {
        run::asked_for_source(&self.env, request)
    }

    /// Where it is kept what was allowed to the repo of a request, and to the one that its task names. Nothing is connected to.
    pub fn trust_stores(&self, request: &RunRequest) -> Result<Vec<TrustStore>, AppError> {
        run::trust_stores(&self.env, request)
    }

    /// Settles everything about a run that can be settled before anything is made, and refuses what cannot work.
    pub fn prepare(&self, request: &RunRequest, report: &dyn Reporter) -> Result<Plan, AppError> {
        run::prepare(&self.env, request, report)
    }

    /// Makes a run of a fleet one of this machine. The surroundings hold it.
    pub fn adopt(
        &self,
        run: &RunId,
        kept: &resume::adopt::Kept,
        report: &dyn Reporter,
    ) -> Result<(), AppError> {
        resume::adopt::adopt(&self.env, run, kept, report)
    }

    /// Everything that a run would ask for which only the user can allow.
    pub fn asked(&self, request: &RunRequest) -> Result<Asked, AppError> {
        run::asked(&self.env, request)
    }

    /// Makes what a plan needs. Where an unfinished run of the same task lies, that one goes on.
    pub fn start(
        &self,
        plan: Plan,
        cancel: Arc<CancelFlag>,
        report: &dyn Reporter,
    ) -> Result<ResumeOutcome, AppError> {
        let Some(run) = plan.goes_on() else {
            return Ok(ResumeOutcome::Ready(Box::new(run::start(plan, cancel, report)?)));
        };
        report.notice(&Notice::GoingOn { run });
        let entry = find::run(plan.environment(), plan.top(), Some(run.as_str()))?;
        let request = plan.request();
        resume::resume_run(
            plan.environment(),
            &entry,
            &request.notify,
            &request.overrides.budgets(),
            cancel,
            report,
        )
    }

    /// A run of this request that is awaited like any future, with every backend: made when it is first awaited, resumed when it
    /// is awaited again. `conditions` must hold beside the checks of the request. Whoever is not `ralph` itself names the binary
    /// with [`Environment::with_program`], or calls `ralph_loop_sandbox::init` first in its `main`.
    pub fn agent(&self, request: &RunRequest, conditions: Vec<Completion>) -> LoopAgent {
        agent::agent(&self.env, request, conditions)
    }

    /// Settles a run that branches off from another: with the files of one of its iterations, on a branch of its own.
    pub fn fork(
        &self,
        folder: &Path,
        name: Option<&str>,
        wanted: &ForkRequest,
        report: &dyn Reporter,
    ) -> Result<Plan, AppError> {
        run::fork(&self.env, &find::run(&self.env, folder, name)?, wanted, report)
    }

    /// Replays a run from its record: what today's engine would decide and write into its prompts, held against what it did.
    pub fn replay(&self, folder: &Path, name: Option<&str>) -> Result<Replay, AppError> {
        Ok(replay::replay(&find::run(&self.env, folder, name)?.run_dir())?)
    }

    /// Starts a run in a detached process of the `ralph` binary, which outlives this one, and returns its id once it has
    /// journalled its start; what that process refused is the error. Whoever is not `ralph` itself names the binary with
    /// [`Environment::with_program`].
    pub fn spawn(&self, request: &RunRequest) -> Result<RunId, AppError> {
        spawn::spawn(&self.env, request)
    }

    /// Goes on with a run that nobody drives, in a detached process of the `ralph` binary, and returns once it is driven; what
    /// that process refused is the error. One that a budget ended goes on where `budgets` leave room.
    pub fn spawn_resume(&self, entry: &Registration, budgets: &BudgetChange) -> Result<(), AppError> {
        spawn::resume(&self.env, entry, budgets)
    }

    /// Lets a doctor read a run that nobody drives, in a detached process of the `ralph` binary. What it finds stands in the
    /// record of the run.
    pub fn spawn_diagnose(&self, entry: &Registration) -> Result<(), AppError> {
        spawn::diagnose(&self.env, entry)
    }

    /// Goes on with a run: a living one is told so, a dead one is continued from its journal, and so is one that a budget
    /// ended, where `budgets` leave room.
    pub fn resume(
        &self,
        folder: &Path,
        name: Option<&str>,
        notify: &[NotifyRequest],
        budgets: &BudgetChange,
        cancel: Arc<CancelFlag>,
        report: &dyn Reporter,
    ) -> Result<ResumeOutcome, AppError> {
        let entry = find::run(&self.env, folder, name)?;
        resume::resume_run(&self.env, &entry, notify, budgets, cancel, report)
    }

    /// Brings a run of another machine here, from the state that it pushed to a remote.
    pub fn fetch_run(
        &self,
        folder: &Path,
        run: &str,
        remote: &str,
        isolation: Option<Isolation>,
        report: &dyn Reporter,
    ) -> Result<(), AppError> {
        resume::fetch_run(&self.env, remote, run, isolation, folder, report)
    }

    /// The run that `name` means; without a name the one that is running in this folder, else its latest.
    pub fn open(&self, folder: &Path, name: Option<&str>) -> Result<OpenRun, AppError> {
        let entry = find::run(&self.env, folder, name)?;
        let handle = self.handle(&entry);
        Ok(OpenRun { entry, handle })
    }

    /// A handle on a run.
    pub fn handle(&self, entry: &Registration) -> RunHandle {
        find::handle(&self.env, entry)
    }

    /// Ends a run that nobody drives and nobody can drive: its record is all that it takes.
    pub fn end(&self, entry: &Registration, reason: EndReason) -> Result<(), AppError> {
        resume::end(&self.env, entry, reason)
    }

    /// What is known of a run at this moment.
    pub fn facts(&self, folder: &Path, name: Option<&str>) -> Result<RunReading, AppError> {
        RunReading::load(&self.env, find::run(&self.env, folder, name)?)
    }

    /// The runs of a folder, or of every folder, oldest first.
    pub fn list(&self, folder: &Path, everywhere: bool) -> Result<Vec<ListEntry>, AppError> {
        placement::sweep(&self.env.state_home()?);
        list::runs(&self.env, folder, everywhere)
    }

    /// A journal that was edited while nobody drove its run: the sealed copy counts again. Returns where the edited one was
    /// put, where there was one.
    pub fn accept_sealed(&self, entry: &Registration) -> Result<Option<PathBuf>, AppError> {
        Ok(resume::accept_sealed(&wiring::places_of(&self.env.state_home()?, entry))?)
    }

    /// Lets a doctor read a run that nobody drives, under its lock, so that what it costs is in its journal.
    pub fn diagnose(
        &self,
        entry: &Registration,
        doctor: Doctor<'_>,
        cancel: Arc<CancelFlag>,
        report: &dyn Reporter,
    ) -> Result<(), AppError> {
        let taken = resume::take(&self.env, entry, report)?;
        let spec = &taken.spec;
        let mut parts =
            wiring::parts(&taken.env, &taken.home, spec, taken.repo, &taken.lock, cancel, report)?;
        let profile = match doctor {
            Doctor::Configured => None,
            Doctor::Rules => {
                parts.helpers.asker = None;
                None
            }
            Doctor::Profile(name) if spec.settings.models.get(name).is_none() => {
                let known: Vec<&str> = spec.settings.models.profiles.keys().map(String::as_str).collect();
                return Err(AppError::usage(format!("model profile `{name}` doesn't exist in this run"))
                    .hint(format!("it knows: {}", known.join(", "))));
            }
            Doctor::Profile(name) => Some(name),
        };
        Driver::resume(parts)?.consult_doctor(profile)?;
        Ok(())
    }
}
