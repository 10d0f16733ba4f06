//! Publishing after the end: the run opens again, only to push its result or to open a pull request with it.

use super::{LockedRun, refuse_of_fleet, take};
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::report::Reporter;
use crate::run::StartedRun;
use crate::start::handover;
use crate::wiring;
use ralph_loop_core::{CancelToken, Run};
use ralph_loop_domain::state::RunState;
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_protocol::control::{Control, PublishChange};
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::dialect::Publish;
use ralph_loop_task::spec::RunSpec;
use std::sync::Arc;

/// Where a result should go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublishRequest {
    /// Only push the branch; otherwise a pull request is opened, too.
    pub push_only: bool,
    /// The branch on the remote, instead of the run's own.
    pub branch: Option<String>,
    /// The branch that the pull request goes to.
    pub base: Option<String>,
    /// The title of the pull request.
    pub title: Option<String>,
    /// The text of the pull request; the evidence follows it.
    pub body: Option<String>,
    /// Keep the pull request a draft.
    pub draft: bool,
}

/// A run that has a result, ready to hand it over.
pub(crate) fn publish_run(
    env: &Environment,
    entry: &Registration,
    request: &PublishRequest,
    cancel: Arc<CancelToken>,
    report: &dyn Reporter,
) -> Result<StartedRun, AppError> {
    find::registered(&env.state_home()?, entry)?;
    refuse_of_fleet(env, entry)?;
    let run = &entry.run_id;
    if find::handle(env, entry).is_driven() {
        return Err(AppError::usage(format!("run {run} is active, so it has no result yet"))
            .hint(format!("`ralph stop {run}` ends it after its session")));
    }
    let LockedRun { env, home, mut spec, repo, places, mut lock } = take(env, entry, report)?;
    let state = snapshot::load(&places.dir)?;
    refuse(&state)?;
    settle(&env, &mut spec, &repo, &state, request, report)?;
    let change = PublishChange {
        pr: !request.push_only,
        branch: spec.settings.handover.branch.clone().unwrap_or_default(),
        base: request.base.clone(),
        title: request.title.clone(),
        body: request.body.clone(),
        draft: request.draft.then_some(true),
    };
    ralph_loop_journal::inbox::send(&places.dir, &env.actor(), Control::Publish(change))?;
    wiring::register(&home, &spec)?;
    let run = Run::resume(wiring::parts(&env, &home, &spec, repo, &lock, cancel, report)?)?;
    lock.record_driver(run.lease())?;
    let dotenv = crate::run::watch_dotenv(env.vars(), &home, &spec);
    Ok(StartedRun { run, lock, vars: env.vars().clone(), home, dotenv })
}

/// Refuses a run without a result.
pub(crate) fn refuse(state: &RunState) -> Result<(), AppError> {
    let run = &state.spec.run_id;
    let refused = |what: String, next: String| Err(AppError::usage(what).hint(next));
    match &state.result.finished {
        None => refused(
            format!("run {run} hasn't ended, so it has no result yet"),
            format!("`ralph resume {run}` continues it; `ralph stop {run}` ends it"),
        ),
        Some(_) if state.work.commit.is_none() => {
            refused(format!("run {run} changed no files"), format!("`ralph show {run}` shows what it did"))
        }
        Some(end) if end.reason == EndReason::Cancelled => refused(
            format!("run {run} was canceled, so its result isn't published"),
            format!("`ralph apply {run}` puts its files into your checkout"),
        ),
        Some(_) => Ok(()),
    }
}

/// Decides the code host and the branch there, before anything is journaled.
fn settle(
    env: &Environment,
    spec: &mut RunSpec,
    repo: &Repo,
    state: &RunState,
    request: &PublishRequest,
    report: &dyn Reporter,
) -> Result<(), AppError> {
    let settings = &mut spec.settings.handover;
    settings.publish = if request.push_only { Publish::Push } else { Publish::Pr };
    settings.pr.base = request.base.clone().or(settings.pr.base.take());
    let url = handover::url_of(env, spec, repo);
    let task = spec.task.clone();
    // Its branch is where the work started; that of a worktree is the run's own.
    let origin = Repo::discover(env.vars(), &spec.origin)?;
    handover::resolve(env, &mut spec.settings, &task, url.as_deref(), &origin, true, report)?;
    let pushed = state.handover.pushed.as_ref().and(spec.settings.handover.branch.as_deref());
    match (&request.branch, pushed) {
        // What this run has pushed is updated, not pushed a second time under another name.
        (wanted, Some(pushed)) if wanted.as_deref().is_none_or(|wanted| wanted == pushed) => Ok(()),
        (wanted, _) => {
            let own = spec.branch.clone();
            spec.branch = wanted.clone().or(spec.branch.take());
            let named = handover::name_branch(env, spec, repo, None, report);
            spec.branch = own;
            named
        }
    }
}
