//! The entry point of this crate: starts, continues, opens and lists runs.

use crate::environment::Environment;
use crate::error::AppError;
use crate::read::facts::RunSnapshot;
use crate::read::find;
use crate::read::list;
use crate::read::list::ListEntry;
use crate::report::{Notice, Reporter};
use crate::request::{NotifyRequest, RunRequest};
use crate::resume::publish::PublishRequest;
use crate::resume::{self, ResumeOutcome};
use crate::run::{self, ForkRequest, Plan, StartedRun, placement};
use crate::start::spawn;
use crate::trust::consent::TrustRequest;
use crate::trust::store::TrustStore;
use crate::{agent, wiring};
use ralph_loop_core::handle::RunHandle;
use ralph_loop_core::resume::replay;
use ralph_loop_core::resume::replay::Replay;
use ralph_loop_core::{CancelToken, Completion, LoopAgent, Run, consult_doctor};
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::config::Isolation;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct App {
    env: Environment,
}

/// A run opened for reading and steering.
#[derive(Debug)]
pub struct OpenRun {
    pub entry: Registration,
    /// Access to its journal and inbox.
    pub handle: RunHandle,
}

#[derive(Debug, Clone, Copy)]
pub enum Doctor<'a> {
    Configured,
    Profile(&'a str),
    Rules,
}

impl App {
    pub fn new(env: Environment) -> Self {
        crate::agents::filters::use_sandbox(&env);
        Self { env }
    }

    pub fn environment(&self) -> &Environment {
        &self.env
    }

    /// Resolves a request about another repo (named by the task, or a clone) to a checkout of it.
    pub fn settle(&self, request: &RunRequest) -> Result<RunRequest, AppError> {
        run::settle(&self.env, request)
    }

    /// What must be allowed before [`Self::settle`] may connect to another repo; `None` if only the user
    /// named it.
    pub fn asked_for_source(&self, request: &RunRequest) -> Result<Option<TrustRequest>, AppError> {
        run::asked_for_source(&self.env, request)
    }

    /// Where the approvals for the request's repo, and for the repo its task names, are kept. Connects to
    /// nothing.
    pub fn trust_stores(&self, request: &RunRequest) -> Result<Vec<TrustStore>, AppError> {
        run::trust_stores(&self.env, request)
    }

    /// Settles and validates everything about a run before anything is created.
    pub fn prepare(&self, request: &RunRequest, report: &dyn Reporter) -> Result<Plan, AppError> {
        run::prepare(&self.env, request, report)
    }

    /// Turns a fleet run into a run on this machine. The environment must carry the hold.
    pub fn adopt(
        &self,
        run: &RunId,
        kept: &resume::adopt::Kept,
        report: &dyn Reporter,
    ) -> Result<(), AppError> {
        resume::adopt::adopt(&self.env, run, kept, report)
    }

    /// Everything the run would request that only the user can allow.
    pub fn asked(&self, request: &RunRequest) -> Result<TrustRequest, AppError> {
        run::asked(&self.env, request)
    }

    /// Creates what a plan needs, or continues an unfinished run of the same task.
    pub fn start(
        &self,
        plan: Plan,
        cancel: Arc<CancelToken>,
        report: &dyn Reporter,
    ) -> Result<ResumeOutcome, AppError> {
        let Some(run) = plan.resumes() else {
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

    /// A run as a future, with every backend: created on the first await, resumed on the next. `conditions`
    /// must hold in addition to the request's checks. A program other than `ralph` names the binary with
    /// [`Environment::with_program`], or calls `ralph_loop_sandbox::init` first in `main`.
    pub fn agent(&self, request: &RunRequest, conditions: Vec<Completion>) -> LoopAgent {
        agent::agent(&self.env, request, conditions)
    }

    /// Plans a run that starts from the files of another run's iteration, on a new branch.
    pub fn fork(
        &self,
        folder: &Path,
        name: Option<&str>,
        wanted: &ForkRequest,
        report: &dyn Reporter,
    ) -> Result<Plan, AppError> {
        run::fork(&self.env, &find::run(&self.env, folder, name)?, wanted, report)
    }

    /// Replays a run from its record and compares today's decisions and prompts with the recorded ones.
    pub fn replay(&self, folder: &Path, name: Option<&str>) -> Result<Replay, AppError> {
        Ok(replay::replay(&find::run(&self.env, folder, name)?.run_dir())?)
    }

    /// Starts a run in a detached `ralph` process and returns its id once the run has journaled its start, or
    /// the error that process reported. A program other than `ralph` names the binary with
    /// [`Environment::with_program`].
    pub fn spawn(&self, request: &RunRequest) -> Result<RunId, AppError> {
        spawn::spawn(&self.env, request)
    }

    /// Resumes a run in a detached `ralph` process and returns once it is driven, or the error that process
    /// reported. A run that exhausted a budget resumes if `budgets` leave room.
    pub fn spawn_resume(&self, entry: &Registration, budgets: &BudgetChange) -> Result<(), AppError> {
        spawn::resume(&self.env, entry, budgets)
    }

    /// Diagnoses a stopped run in a detached `ralph` process; the diagnosis is written to its record.
    pub fn spawn_diagnose(&self, entry: &Registration) -> Result<(), AppError> {
        spawn::diagnose(&self.env, entry)
    }

    /// Resumes a run: signals a live one, continues a dead one from its journal, and one that exhausted a
    /// budget if `budgets` leave room.
    pub fn resume(
        &self,
        folder: &Path,
        name: Option<&str>,
        notify: &[NotifyRequest],
        budgets: &BudgetChange,
        cancel: Arc<CancelToken>,
        report: &dyn Reporter,
    ) -> Result<ResumeOutcome, AppError> {
        let entry = find::run(&self.env, folder, name)?;
        resume::resume_run(&self.env, &entry, notify, budgets, cancel, report)
    }

    /// Opens a run that has ended again, to push its result or to open a pull request with it.
    pub fn publish(
        &self,
        folder: &Path,
        name: Option<&str>,
        request: &PublishRequest,
        cancel: Arc<CancelToken>,
        report: &dyn Reporter,
    ) -> Result<StartedRun, AppError> {
        let entry = find::run(&self.env, folder, name)?;
        resume::publish::publish_run(&self.env, &entry, request, cancel, report)
    }

    /// The same in a detached process of the `ralph` binary; returns once it has started.
    pub fn spawn_publish(&self, entry: &Registration, request: &PublishRequest) -> Result<(), AppError> {
        spawn::publish(&self.env, entry, request)
    }

    /// Fetches a run of another machine from the state it pushed to a remote.
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

    /// The run that `name` identifies; without a name the run active in this folder, else its latest.
    pub fn open(&self, folder: &Path, name: Option<&str>) -> Result<OpenRun, AppError> {
        let entry = find::run(&self.env, folder, name)?;
        let handle = self.handle(&entry);
        Ok(OpenRun { entry, handle })
    }

    pub fn handle(&self, entry: &Registration) -> RunHandle {
        find::handle(&self.env, entry)
    }

    /// Ends a run that isn't driven and can't be driven; needs only its record.
    pub fn end(&self, entry: &Registration, reason: EndReason) -> Result<(), AppError> {
        resume::end(&self.env, entry, reason)
    }

    pub fn facts(&self, folder: &Path, name: Option<&str>) -> Result<RunSnapshot, AppError> {
        RunSnapshot::load(&self.env, find::run(&self.env, folder, name)?)
    }

    pub fn list(&self, folder: &Path, everywhere: bool) -> Result<Vec<ListEntry>, AppError> {
        placement::sweep(&self.env.state_home()?);
        list::runs(&self.env, folder, everywhere)
    }

    /// Restores the sealed copy of a journal that was edited while its run was stopped. Returns where the
    /// edited one was moved.
    pub fn accept_sealed(&self, entry: &Registration) -> Result<Option<PathBuf>, AppError> {
        Ok(resume::accept_sealed(&wiring::places_of(&self.env.state_home()?, entry))?)
    }

    /// Diagnoses a stopped run under its lock, so that the cost is journaled.
    pub fn diagnose(
        &self,
        entry: &Registration,
        doctor: Doctor<'_>,
        cancel: Arc<CancelToken>,
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
        consult_doctor(Run::resume(parts)?, profile)?;
        Ok(())
    }
}
