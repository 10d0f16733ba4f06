//! Continues a fleet run that another machine drove. Journal and spec are sealed under this process's hold
//! and thus trusted; files and commits come from a store.

use super::elsewhere::{copy_for_agent, is_of_this_machine, refuse_odd_folder};
pub use crate::start::fleet_mark::{driver_elsewhere, is_of_fleet, mark, note_driver};

use crate::environment::Environment;
use crate::error::AppError;
use crate::report::{Notice, Reporter};
use crate::start::handover;
use crate::trust::record_trust;
use crate::wiring;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::resume::relocate;
use ralph_loop_domain::state::RunState;
use ralph_loop_git::{GitWorkspace, Repo, checkout};
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::{RunDir, StateHome};
use ralph_loop_journal::journal::RunPaths;
use ralph_loop_journal::live::follow::Follower;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::{MachineId, RunId, Seq};
use ralph_loop_safe_fs::SafeDir;
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use std::path::Path;
use std::sync::Arc;

/// A run's contents in the store.
#[derive(Debug, Default)]
pub struct Kept {
    /// Files of its record, by path.
    pub record: Vec<(String, Vec<u8>)>,
    /// Files of its `.ralph/`.
    pub ralph: Vec<(String, Vec<u8>)>,
    /// Its commits as a git bundle.
    pub bundle: Option<Vec<u8>>,
}

/// Whether this machine drove the run last and still has its workspace.
pub fn is_here(env: &Environment, run: &RunId) -> Result<bool, AppError> {
    let home = env.state_home()?;
    let places = wiring::places(env, &home, run);
    let here = ralph_loop_journal::folder::machine::id(&home)?;
    let known =
        ralph_loop_journal::folder::registry::find(&home, run).is_some() && places.dir.spec().is_file();
    if !known {
        return Ok(false);
    }
    fetch_spec(&places)?;
    let Ok(state) = relocate::read(&places) else { return Ok(false) };
    let tree = !state.spec.hands_back() || state.spec.workspace.is_dir();
    Ok(last_machine(&places)? == Some(here) && tree && state.spec.home().is_dir())
}

/// The machine of the last driver.
fn last_machine(places: &RunPaths) -> Result<Option<MachineId>, AppError> {
    let events = Follower::new(&places.dir.events(), Seq(0)).poll()?;
    Ok(events.into_iter().rev().find_map(|event| match event.body {
        EventBody::DriverStarted { lease, .. } => lease.machine,
        _ => None,
    }))
}

/// Fetches the sealed spec.
fn fetch_spec(places: &RunPaths) -> Result<bool, AppError> {
    let Some(elsewhere) = &places.elsewhere else { return Ok(false) };
    let sealed =
        elsewhere.spec().map_err(|e| AppError::environment(format!("can't read the sealed spec: {e}")))?;
    let Some(text) = sealed else { return Ok(false) };
    places.dir.create()?;
    artifacts::write_durable(&places.dir.spec(), &text)?;
    Ok(true)
}

/// Fetches the sealed journal and returns the state; `None` if the run hasn't started.
pub fn sealed_state(env: &Environment, run: &RunId) -> Result<Option<RunState>, AppError> {
    let home = env.state_home()?;
    let places = wiring::places(env, &home, run);
    let Some(elsewhere) = &places.elsewhere else { return Ok(None) };
    let head = elsewhere.seal().head();
    let head = head.map_err(|e| AppError::environment(format!("can't read the seal of run {run}: {e}")))?;
    if head.unwrap_or(0) == 0 || !fetch_spec(&places)? {
        return Ok(None);
    }
    Ok(Some(relocate::read(&places)?))
}

/// Removes older leftovers of a run on this machine; seal and store are newer.
pub fn forget(env: &Environment, run: &RunId) -> Result<(), AppError> {
    let home = env.state_home()?;
    for path in [home.record(run).path().to_owned(), home.workspace(run), home.agent_copy(run)] {
        ralph_loop_safe_fs::remove_tree(&path)
            .map_err(|e| AppError::environment(format!("cannot remove `{}`: {e}", path.display())))?;
    }
    Ok(())
}

/// Makes the run local: clone, commits, record, and a journal entry.
pub(crate) fn adopt(
    env: &Environment,
    run: &RunId,
    kept: &Kept,
    report: &dyn Reporter,
) -> Result<(), AppError> {
    let home = env.state_home()?;
    forget(env, run)?;
    let Some(state) = sealed_state(env, run)? else {
        return Err(AppError::usage(format!("run {run} hasn't started: there is nothing to fetch")));
    };
    if state.spec.run_id != *run {
        return Err(AppError::environment(format!(
            "the seal of run {run} belongs to run {}",
            state.spec.run_id
        )));
    }
    let places = wiring::places(env, &home, run);
    let repo = clone(env, &home, &state.spec, kept)?;
    fetch_files(&places.dir, &repo, run, kept)?;
    keep_inbox(&places.dir, state.people.inbox)?;
    mark(&places.dir)?;
    if record_trust::read(&home, run).is_none() {
        record_trust::write(&home, run, &[])?;
    }
    let spec = settle(env, &home, &places, &repo, &state)?;
    refuse_odd_folder(&repo.top)?;
    wiring::register(&home, &spec)?;
    report.notice(&Notice::Brought { run, folder: spec.home(), iterations: state.iterations.count });
    Ok(())
}

/// The run's repo with its commits.
fn clone(env: &Environment, home: &StateHome, spec: &RunSpec, kept: &Kept) -> Result<Repo, AppError> {
    let run = &spec.run_id;
    let WorkspaceKind::Clone { from, .. } = &spec.place else {
        return Err(AppError::environment(format!(
            "run {run} works in a folder of the machine that began it"
        ))
        .hint("continue it on that machine"));
    };
    let path = home.workspace(run);
    let branch = spec.branch.clone().unwrap_or_else(|| format!("ralph/{run}"));
    let source = handover::clone_source(env, from, &path);
    let repo = checkout::clone(env.vars(), &source, &path, &branch)?;
    repo.exclude_ralph_dir()?;
    if let Some(bundle) = &kept.bundle {
        let file = home.record(run).path().join("work.bundle");
        artifacts::write_atomic(&file, bundle)?;
        let specs = [format!("+refs/ralph/{run}/*:refs/ralph-fetched/{run}/*")];
        ralph_loop_git::fetch(&repo, &ralph_loop_git::path_remote(&file), &specs)?;
        let _ = std::fs::remove_file(&file);
    }
    Ok(repo)
}

/// Writes the stored files without following links: they come from another machine.
fn fetch_files(record: &RunDir, repo: &Repo, run: &RunId, kept: &Kept) -> Result<(), AppError> {
    refuse_odd_folder(&repo.top)?;
    let failed = |name: &str, e: std::io::Error| {
        AppError::environment(format!("can't write the file `{name}` of run {run}: {e}"))
            .hint("free some space on this machine; another worker can continue the run")
    };
    let open = |path: &Path| SafeDir::open(path).map_err(|e| failed(".", e));
    let dir = open(&repo.top)?.create_folder(".ralph").map_err(|e| failed(".ralph", e))?;
    let record = open(record.path())?;
    // The submitter allowed these permissions, so they apply on any machine.
    let comes = |name: &str| name == record_trust::FILE || !is_of_this_machine(name);
    for (name, bytes) in kept.record.iter().filter(|(name, _)| comes(name)) {
        record.write(name, bytes).map_err(|e| failed(name, e))?;
    }
    for (name, bytes) in &kept.ralph {
        dir.write(name, bytes).map_err(|e| failed(name, e))?;
    }
    Ok(())
}

/// Controls count once journaled. The journal says how far the inbox was read; new controls are appended
/// after that.
fn keep_inbox(record: &RunDir, read: u64) -> Result<(), AppError> {
    let read = usize::try_from(read).unwrap_or(usize::MAX);
    Ok(artifacts::write_atomic(&record.inbox(), &vec![b'\n'; read])?)
}

/// Updates the spec's paths, takes a baseline in this clone and adds a journal entry.
fn settle(
    env: &Environment,
    home: &StateHome,
    places: &RunPaths,
    repo: &Repo,
    state: &RunState,
) -> Result<RunSpec, AppError> {
    let run = &state.spec.run_id;
    let Some(baseline) = &state.baseline else {
        return Err(AppError::environment(format!("run {run} was never prepared where it started")));
    };
    let mut spec = state.spec.clone();
    (spec.workspace, spec.origin, spec.handed_to) = (repo.top.clone(), repo.top.clone(), None);
    let options = wiring::workspace_options(home, &spec, repo);
    let mut workspace = GitWorkspace::new(repo.clone(), run.clone(), options)?;
    let baseline = workspace.relocate(baseline, state.work.commit.as_ref(), &relocate::protected(&spec))?;
    copy_for_agent(env, home, repo, &baseline, &mut spec)?;
    let redactor = Arc::new(env.redactor(&spec.origin));
    relocate::move_here(
        places,
        redactor,
        state,
        (&spec, baseline),
        "another worker",
        &SystemClock::default(),
    )?;
    Ok(spec)
}
