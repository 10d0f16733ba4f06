//! Resumes an existing run: unpauses it if a process drives it, else continues from its journal.

pub mod adopt;
mod elsewhere;
pub mod publish;

use crate::config::notify;
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::report::Reporter;
use crate::request::NotifyRequest;
use crate::run::placement::{self, PlacementRequest};
use crate::run::{StartedRun, memory, needs_agent_copy};
use crate::start::{asked_by, locks};
use crate::trust::record_trust;
use crate::wiring;
pub(crate) use elsewhere::fetch_run;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::handle::ControlOutcome;
use ralph_loop_core::{CancelToken, Run, RunWriter};
use ralph_loop_domain::ports::Notifier;
use ralph_loop_domain::state::{Finished, RunState};
use ralph_loop_git::Repo;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::folder::{shown, snapshot};
use ralph_loop_journal::journal::RunPaths;
use ralph_loop_journal::lock::RunLock;
use ralph_loop_protocol::control::{BudgetChange, Control};
use ralph_loop_protocol::display::text::{count, duration};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long another process may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

pub enum ResumeOutcome {
    /// This process drives it.
    Ready(Box<StartedRun>),
    /// Another process drives it and was asked to resume.
    Told {
        run: RunId,
        /// The outcome so far.
        outcome: ControlOutcome,
        /// The process, if it is stopped by a signal and can't respond.
        stopped: Option<u32>,
    },
    /// It hadn't started and is now ended.
    Ended { run: RunId },
    /// It is over; pending notifications of that were sent now.
    CaughtUp {
        run: RunId,
        /// Number of notifications.
        told: usize,
    },
}

/// A stopped run, locked for this process.
pub(crate) struct LockedRun {
    /// The run's environment, with its repo's `.env`.
    pub env: Environment,
    /// This machine's state folder.
    pub home: StateHome,
    pub spec: RunSpec,
    /// Its repo.
    pub repo: Repo,
    /// Its files.
    pub places: RunPaths,
    /// Its lock.
    pub lock: RunLock,
}

/// Rejects a fleet run without its hold: the seal would reject a second driver only after its agent has
/// worked.
pub(crate) fn refuse_of_fleet(env: &Environment, entry: &Registration) -> Result<(), AppError> {
    if env.hold().is_some() || !adopt::is_of_fleet(&entry.run_dir()) {
        return Ok(());
    }
    Err(AppError::usage(format!("run {} belongs to a fleet: its workers drive it", entry.run_id))
        .hint(format!("steer it on the page, or `ralph worker --once {}` drives it here", entry.run_id)))
}

/// Locks a run and reads it.
pub(crate) fn take(
    env: &Environment,
    entry: &Registration,
    report: &dyn Reporter,
) -> Result<LockedRun, AppError> {
    let home = env.state_home()?;
    find::registered(&home, entry)?;
    refuse_of_fleet(env, entry)?;
    let env = surroundings(env, &home, entry)?;
    let request = PlacementRequest::of_run(&home, &entry.run_id);
    if request.is_none() {
        restore_workspace(&env, entry)?;
    }
    let lock = locks::of_folder(&home, &entry.workspace, &entry.run_id)?;
    locks::lead(&home, &entry.run_id, &lock);
    let places = wiring::places(&env, &home, &entry.run_id);
    let spec =
        snapshot::read_spec(&places.dir).or_else(|error| snapshot::sealed_spec(&places).ok_or(error))?;
    // The journaled workspace overrides the requested one.
    let state = snapshot::load(&places.dir).ok();
    let spec = state.as_ref().map_or(spec, |state| state.spec.clone());
    // Ends leftovers of an earlier process before anything starts.
    ralph_loop_sandbox::sweep(spec.run_id.as_str());
    let spec = match request.filter(|_| state.is_none_or(|state| is_unplaced(&state))) {
        Some(request) => place(&env, &home, &spec, &request, report)?,
        None => spec,
    };
    refuse_shared_git(&spec)?;
    let repo = Repo::discover(env.vars(), spec.home())?;
    Ok(LockedRun { env, home, spec, repo, places, lock })
}

/// The environment of a resumed run: its repo's `.env`, and the permissions it was allowed.
fn surroundings(env: &Environment, home: &StateHome, entry: &Registration) -> Result<Environment, AppError> {
    let env = env.for_run_of(asked_by::read(&entry.run_dir()).as_deref());
    match record_trust::read(home, &entry.run_id) {
        Some(allowed) => env.granting(allowed).with_dotenv(&entry.origin),
        // A run of an older version, from before permissions were asked for, reads its `.env` as usual.
        None => Ok(env.with_dotenv(&entry.origin)?.trusting_all()),
    }
}

/// Recreates a deleted worktree or branch from what was recorded.
fn restore_workspace(env: &Environment, entry: &Registration) -> Result<(), AppError> {
    let Registration { run_id, origin, workspace, .. } = entry;
    let gone = |what: &str, folder: &Path, hint: &str| {
        let message = format!("the {what} of run {run_id} is gone: `{}`", folder.display());
        Err(AppError::environment(message).hint(format!("{hint}; `ralph cancel {run_id}` ends the run")))
    };
    if !origin.is_dir() {
        return gone("repo", origin, "move it back to where it was");
    }
    let Ok(state) = snapshot::load(&entry.run_dir()) else { return Ok(()) };
    let spec = &state.spec;
    match (&spec.place, &spec.branch) {
        (WorkspaceKind::Worktree, Some(branch)) if !workspace.is_dir() => {
            let repo = Repo::discover(env.vars(), origin)?;
            ralph_loop_git::checkout::remake_worktree(&repo, run_id, workspace, branch)?;
            Ok(())
        }
        _ if !workspace.is_dir() => gone("folder", workspace, "restore it, or start a new run"),
        (WorkspaceKind::Worktree | WorkspaceKind::Clone { .. }, Some(branch)) => {
            let git = ralph_loop_git::Git::in_folder(env.vars(), workspace);
            // If the folder isn't a repo any more, the next step reports it.
            let _ = ralph_loop_git::checkout::restore_branch(&git, run_id, branch);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Ends a stopped run without driving it, because what that takes may be gone. Its work stays.
pub(crate) fn end(env: &Environment, entry: &Registration, reason: EndReason) -> Result<(), AppError> {
    let home = env.state_home()?;
    find::registered(&home, entry)?;
    refuse_of_fleet(env, entry)?;
    let spec = snapshot::read_spec(&entry.run_dir())?;
    let _lock = locks::of_run(&home, &spec)?;
    let summary = match reason {
        EndReason::Stopped => format!("Stopped by {}.", env.actor()),
        _ => format!("Cancelled by {}.", env.actor()),
    };
    RunWriter::open(&wiring::writer_options(env, &home, &spec)?)?.end(reason, &summary)?;
    let _ = shown::copy(&RalphDir::of(&spec.origin), &spec.run_id, &entry.run_dir());
    Ok(())
}

/// Whether a run has no workspace yet. (Older versions journaled a run after creating its workspace.)
fn is_unplaced(state: &RunState) -> bool {
    !state.placed && state.baseline.is_none()
}

/// Creates the workspace of a run that was killed before it had one.
fn place(
    env: &Environment,
    home: &StateHome,
    spec: &RunSpec,
    request: &PlacementRequest,
    report: &dyn Reporter,
) -> Result<RunSpec, AppError> {
    let mut writer = RunWriter::open(&wiring::writer_options(env, home, spec)?)?;
    placement::make(env, home, &mut writer, request, report)?;
    Ok(writer.state().spec.clone())
}

/// Ends a run without workspace if the user asked for that, instead of creating one only to remove it.
fn end_unplaced(env: &Environment, entry: &Registration) -> Result<Option<ResumeOutcome>, AppError> {
    let home = env.state_home()?;
    let cancels = |letter: &ralph_loop_journal::inbox::InboxLine| {
        letter.0.as_ref().is_ok_and(|letter| letter.control == Control::Cancel)
    };
    let letters = ralph_loop_journal::inbox::read(&entry.run_dir(), 0).unwrap_or_default();
    if PlacementRequest::of_run(&home, &entry.run_id).is_none() || !letters.iter().any(cancels) {
        return Ok(None);
    }
    let spec = snapshot::read_spec(&entry.run_dir())?;
    let _lock = locks::of_run(&home, &spec)?;
    let state = snapshot::load(&entry.run_dir())?;
    if !is_unplaced(&state) || state.result.finished.is_some() {
        return Ok(None);
    }
    RunWriter::open(&wiring::writer_options(env, &home, &spec)?)?
        .end(EndReason::Cancelled, "Cancelled before its workspace existed.")?;
    placement::undo(env, &home, &spec);
    let _ = shown::copy(&RalphDir::of(&spec.origin), &spec.run_id, &entry.run_dir());
    Ok(Some(ResumeOutcome::Ended { run: spec.run_id }))
}

pub(crate) fn resume_run(
    env: &Environment,
    entry: &Registration,
    requests: &[NotifyRequest],
    budgets: &BudgetChange,
    cancel: Arc<CancelToken>,
    report: &dyn Reporter,
) -> Result<ResumeOutcome, AppError> {
    find::registered(&env.state_home()?, entry)?;
    refuse_of_fleet(env, entry)?;
    let handle = find::handle(env, entry);
    if handle.is_driven() {
        if !budgets.is_empty() {
            handle.send(Control::Budget(*budgets))?;
        }
        let id = handle.send(Control::Resume)?;
        let driver = ralph_loop_journal::lock::holder(&entry.run_dir().lock()).map(|holder| holder.pid);
        let stopped = driver.filter(|pid| ralph_loop_journal::lock::is_stopped(*pid));
        let outcome = match stopped {
            Some(_) => ControlOutcome::NotYet,
            None => handle.wait_for_outcome(&id, ANSWER_TIMEOUT)?,
        };
        return Ok(ResumeOutcome::Told { run: entry.run_id.clone(), outcome, stopped });
    }
    if let Some(ended) = end_unplaced(env, entry)? {
        return Ok(ended);
    }
    let LockedRun { env, home, spec, repo, places, mut lock } = take(env, entry, report)?;
    let notifiers = notify::notifiers(&env, requests)?;
    if let Ok(state) = snapshot::load(&places.dir) {
        if let Some(end) = &state.result.finished {
            if ralph_loop_core::is_outstanding(&state, &notifiers) {
                return report_end(&env, spec, places, notifiers);
            }
            may_continue(&state, end, budgets)?;
        }
        if let Some(need) = state.people.needs_human.as_ref().filter(|n| n.reason.needs_approval())
            && !inbox_has_answer(&places, &state, need.reason)
        {
            return Err(AppError::needs_person(format!(
                "run {} waits for your approval: {}",
                spec.run_id, need.message
            ))
            .hint(need.answer(spec.run_id.as_str())));
        }
    }
    if spec.hands_back() && !spec.workspace.is_dir() {
        return Err(AppError::environment(format!(
            "the agent's folder of run {} is gone: `{}`",
            spec.run_id,
            spec.workspace.display()
        ))
        .hint(
            "your folder has everything that was handed back; run `ralph run --new` to continue from there",
        ));
    }
    if !budgets.is_empty() {
        ralph_loop_journal::inbox::send(&places.dir, &env.actor(), Control::Budget(*budgets))?;
    }
    ralph_loop_journal::inbox::send(&places.dir, &env.actor(), Control::Resume)?;
    wiring::register(&home, &spec)?;
    memory::go_on(&env, &home, &spec);
    let mut parts = wiring::parts(&env, &home, &spec, repo, &lock, cancel, report)?;
    parts.notifiers = notifiers;
    let run = Run::resume(parts)?;
    lock.record_driver(run.lease())?;
    let dotenv = crate::run::watch_dotenv(env.vars(), &home, &spec);
    Ok(ResumeOutcome::Ready(Box::new(StartedRun { run, lock, vars: env.vars().clone(), home, dotenv })))
}

/// Rejects a sandboxed run of an older version, whose agent works in the clone or worktree itself: its git
/// folder can't be trusted.
fn refuse_shared_git(spec: &RunSpec) -> Result<(), AppError> {
    if spec.hands_back() || spec.place == WorkspaceKind::InPlace || !needs_agent_copy(&spec.settings) {
        return Ok(());
    }
    Err(AppError::environment(format!(
        "run {} was started by an older version, whose sandbox let the agent write the git folder in `{}`",
        spec.run_id,
        spec.workspace.display()
    ))
    .hint("inspect its work with `git` in your own sandbox, then run `ralph run --new`"))
}

/// Whether an ended run can continue: only if a budget ended it and the new one leaves room.
fn may_continue(state: &RunState, end: &Finished, budgets: &BudgetChange) -> Result<(), AppError> {
    let id = &state.spec.run_id;
    let over = AppError::usage(format!("run {id} is over: {}", end.summary));
    let Some(option) = end.reason.budget_option() else {
        return Err(over.hint("`ralph run` starts another one"));
    };
    if budgets.is_empty() {
        return Err(over.hint(format!(
            "run `ralph resume {id} {option}` to continue with a larger budget, or `ralph run` to start another run"
        )));
    }
    let spent = state.spent();
    match state.spec.settings.budgets.changed(budgets, state.now).exhausted(spent) {
        None => Ok(()),
        Some(kind) => Err(AppError::usage(format!(
            "run {id} has used up that budget for {} already: {}, {}, {} and {} tokens",
            kind.as_str(),
            count(spent.iterations as usize, "iteration"),
            duration(spent.time),
            spent.cost,
            spent.tokens
        ))
        .hint(format!("give more than that: `ralph resume {id} {option}`"))),
    }
}

/// Sends the notifications of a run whose process died right after ending it.
fn report_end(
    env: &Environment,
    spec: RunSpec,
    places: RunPaths,
    notifiers: Vec<Box<dyn Notifier>>,
) -> Result<ResumeOutcome, AppError> {
    let run = spec.run_id.clone();
    let dirs = (RalphDir::of(&spec.workspace), RalphDir::of(spec.home()));
    let redactor = Arc::new(env.redactor(&spec.origin));
    let clock = Arc::new(SystemClock::default());
    let told = ralph_loop_core::catch_up(places, dirs, spec, redactor, clock, notifiers)?;
    Ok(ResumeOutcome::CaughtUp { run, told })
}

/// Whether the inbox holds an answer to the run's question: an approval, a stop, or another control that
/// counts.
fn inbox_has_answer(places: &RunPaths, state: &RunState, reason: HumanReason) -> bool {
    let letters = ralph_loop_journal::inbox::read(&places.dir, state.people.inbox).unwrap_or_default();
    let answers = |control: &Control| match control {
        Control::Approve | Control::Cancel | Control::Stop => true,
        Control::Nudge { .. } | Control::Note { .. } | Control::Guardrail { .. } | Control::Edit { .. } => {
            reason.can_be_rejected()
        }
        _ => false,
    };
    state.people.tests_rejected
        || letters.iter().any(|(letter, _)| letter.as_ref().is_ok_and(|l| answers(&l.control)))
}

/// Restores the sealed copy of a journal that was edited while the run was stopped.
pub(crate) fn accept_sealed(places: &RunPaths) -> Result<Option<std::path::PathBuf>, JournalError> {
    let redactor = std::sync::Arc::new(ralph_loop_domain::redact::Redactor::default());
    match ralph_loop_journal::journal::Journal::open(places.clone(), redactor, &mut |_| {}) {
        Err(JournalError::Tampered { .. }) => {
            ralph_loop_journal::journal::repair::restore_from_seal(places).map(Some)
        }
        _ => Ok(None),
    }
}
