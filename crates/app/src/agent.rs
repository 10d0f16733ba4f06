//! Runs as futures for library users, with every backend.

use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::report::{Notice, Reporter, SilentReporter};
use crate::request::RunRequest;
use crate::resume::{self, ResumeOutcome};
use crate::run::{self, StartedRun};
use ralph_loop_core::loop_agent::{Driven, Hooks, LoopAgent, RunSource};
use ralph_loop_core::{CancelToken, Completion, RunHooks};
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_journal::inbox;
use ralph_loop_protocol::control::{BudgetChange, Control};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::outcome::{ErrorCode, RunError, RunResult};
use std::sync::Arc;

/// The agent for a request. `conditions` must hold in addition to its checks; async closures are allowed.
pub(crate) fn agent(env: &Environment, request: &RunRequest, conditions: Vec<Completion>) -> LoopAgent {
    let mut request = request.clone();
    request.overrides.checks.extend(conditions.iter().map(|one| one.verifier().clone()));
    LoopAgent::over(AppSource { env: env.clone(), request, run: None, ready: None, last: None }, conditions)
}

struct AppSource {
    env: Environment,
    request: RunRequest,
    run: Option<RunId>,
    ready: Option<Box<StartedRun>>,
    /// How the last drive ended.
    last: Option<Driven>,
}

impl RunSource for AppSource {
    fn begin(&mut self, hooks: Hooks) -> Result<RunDir, RunError> {
        let Hooks { observers, on_stuck, cancel, custom_checks } = hooks;
        if let Some(record) = self.over() {
            return Ok(record);
        }
        let mut ready = self.ready(cancel).map_err(|error| error.to_run_error())?;
        ready.run.attach(RunHooks { observers, on_stuck, custom_checks });
        self.run = Some(ready.spec().run_id.clone());
        let record = RunDir::at(&ready.record());
        self.ready = Some(ready);
        Ok(record)
    }

    fn drive(&mut self) -> Driven {
        let Some(ready) = self.ready.take() else {
            let refused = || Driven { result: RunResult::refused(not_ready()), diff: String::new() };
            return self.last.clone().unwrap_or_else(refused);
        };
        let (finished, diff) = ready.run_with_diff();
        let result = finished.result.clone();
        finished.tidy_up();
        let driven = Driven { result, diff };
        self.last = Some(driven.clone());
        driven
    }
}

impl AppSource {
    fn ready(&self, cancel: Arc<CancelToken>) -> Result<Box<StartedRun>, AppError> {
        let report = &SilentReporter;
        let begun = match &self.run {
            None => {
                let plan = run::prepare(&self.env, &self.request, report)?;
                match plan.resumes().cloned() {
                    None => return run::start(plan, cancel, report).map(Box::new),
                    Some(run) => {
                        report.notice(&Notice::GoingOn { run: &run });
                        self.resumed(&run, cancel)?
                    }
                }
            }
            Some(run) => self.resumed(run, cancel)?,
        };
        match begun {
            ResumeOutcome::Ready(ready) => Ok(ready),
            ResumeOutcome::Told { run, .. } => {
                Err(AppError::environment(format!("another process drives run {run}")).hint(
                    "watch it with `App::open`, or cancel it there first; `Unfinished::StartAnew` starts another one",
                ))
            }
            ResumeOutcome::Ended { run } | ResumeOutcome::CaughtUp { run, .. } => {
                Err(AppError::usage(format!("run {run} is over")).hint("a new agent starts another one"))
            }
        }
    }

    fn over(&self) -> Option<RunDir> {
        self.last.as_ref()?;
        let entry = find::run(&self.env, &self.request.folder, Some(self.run.as_ref()?.as_str())).ok()?;
        let record = entry.run_dir();
        let end = snapshot::load(&record).ok()?.result.finished.clone()?;
        let may_continue = end.reason.is_budget() && !waiting_limits(&record).is_empty();
        (!may_continue).then_some(record)
    }

    fn resumed(&self, run: &RunId, cancel: Arc<CancelToken>) -> Result<ResumeOutcome, AppError> {
        let entry = find::run(&self.env, &self.request.folder, Some(run.as_str()))?;
        let (notify, budgets) = (&self.request.notify, waiting_limits(&entry.run_dir()));
        resume::resume_run(&self.env, &entry, notify, &budgets, cancel, &SilentReporter)
    }
}

/// Limits sent to the run that it hasn't read yet.
fn waiting_limits(record: &RunDir) -> BudgetChange {
    let read = snapshot::load(record).map_or(0, |state| state.people.inbox);
    let letters = inbox::read(record, read).unwrap_or_default();
    let changes = letters.into_iter().filter_map(|(letter, _)| match letter.ok()?.control {
        Control::Budget(change) => Some(change),
        _ => None,
    });
    changes.fold(BudgetChange::default(), |sum, change| BudgetChange {
        max_iterations: change.max_iterations.or(sum.max_iterations),
        max_seconds: change.max_seconds.or(sum.max_seconds),
        max_cost: change.max_cost.or(sum.max_cost),
        max_tokens: change.max_tokens.or(sum.max_tokens),
    })
}

fn not_ready() -> RunError {
    RunError {
        code: ErrorCode::InvalidInput,
        message: "the run was not made ready".into(),
        hint: None,
        recoverable: false,
        iteration: None,
    }
}
