//! Session memory in the `.ralph/` of a folder with consecutive runs. Guardrails, the user's `notes.md` and the logs
//! belong to the repo and persist. Progress belongs to a run: a new run starts empty, a resumed run gets its own
//! back.

use super::{handed_state, has_ended, latest_run_in, remove_agent_copy};
use crate::environment::Environment;
use crate::error::AppError;
use crate::start::state_files;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_journal::folder::artifacts::write_atomic;
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use std::path::Path;

/// Larger than any file a user reads.
const FILE_MAX: u64 = 8 * 1024 * 1024;
const STATE_MAX: u64 = 64 * 1024 * 1024;
/// Files that belong to one run.
const OF_RUN: [&str; 1] = ["progress.md"];

/// Prepares the memory of a new run.
pub(crate) fn begin(env: &Environment, home: &StateHome, spec: &RunSpec) -> Result<(), AppError> {
    let dir = RalphDir::of(spec.home());
    let last = latest_run_in(home, spec.home(), Some(&spec.run_id));
    if let Some(last) = &last {
        // The last run's process may have been killed before it did this. A run that a larger budget can
        // continue keeps its memory.
        if let Ok(last) = snapshot::read_spec(&last.run_dir())
            && handed_state(home, &last).is_some_and(|state| has_ended(&state))
        {
            remove_agent_copy(env.vars(), home, &last);
        }
    }
    let owner = owner(home, &dir).or(last);
    put_away(&dir, owner.as_ref(), |entry| env.redactor(&entry.origin));
    copy_from_repo(spec, &dir)?;
    state_files::write_missing(&dir)?;
    Ok(())
}

/// Restores the memory of a resumed run, if another run worked in the folder since.
pub(crate) fn go_on(env: &Environment, home: &StateHome, spec: &RunSpec) {
    let dir = RalphDir::of(spec.home());
    let Some(other) = owner(home, &dir).filter(|owner| owner.run_id != spec.run_id) else { return };
    put_away(&dir, Some(&other), |entry| env.redactor(&entry.origin));
    let record = home.record(&spec.run_id);
    for name in OF_RUN {
        if let Ok(text) = std::fs::read(record.path().join(name)) {
            let _ = dir.write(name, &text);
        }
    }
}

/// The run that owns the progress in a folder: the one driven there last.
fn owner(home: &StateHome, dir: &RalphDir) -> Option<Registration> {
    let state: serde_json::Value = serde_json::from_slice(&dir.read("state.json", STATE_MAX)?).ok()?;
    let run = RunId::parse(state["state"]["spec"]["run_id"].as_str()?).ok()?;
    // Agents can write that file, so only runs of this folder count.
    registry::find(home, &run).filter(|entry| RalphDir::of(&entry.workspace).path() == dir.path())
}

/// Moves a run's files into its record. Without a known owner they are set aside.
fn put_away(dir: &RalphDir, owner: Option<&Registration>, redactor: impl Fn(&Registration) -> Redactor) {
    for name in OF_RUN {
        let Some(text) = dir.read(name, FILE_MAX) else { continue };
        let kept = match owner {
            Some(owner) => keep(dir, owner, name, &text, &redactor(owner)),
            None => dir.write(&format!("{name}.1"), &text).is_ok(),
        };
        if kept {
            let _ = dir.remove(name);
        }
    }
}

fn keep(dir: &RalphDir, owner: &Registration, name: &str, text: &[u8], redactor: &Redactor) -> bool {
    let record = owner.run_dir();
    let place = record.path().join(name);
    // An agent wrote it, so redact before recording.
    let text = redactor.bytes(text);
    if write_atomic(&place, &text).is_err() {
        return false;
    }
    let shown = dir.run(&owner.run_id);
    let is_copy = std::fs::symlink_metadata(shown.path()).is_ok_and(|meta| meta.is_dir());
    if is_copy && shown.path() != record.path() {
        let _ = dir.write(&format!("runs/{}/{name}", owner.run_id), &text);
    }
    true
}

/// A worktree or clone starts with the repo's guardrails and the user's notes.
fn copy_from_repo(spec: &RunSpec, dir: &RalphDir) -> Result<(), AppError> {
    let same = match &spec.place {
        WorkspaceKind::InPlace => false,
        WorkspaceKind::Worktree => true,
        WorkspaceKind::Clone { from, .. } => Path::new(from) == spec.origin,
    };
    let repo = RalphDir::of(&spec.origin);
    if !same || repo == *dir {
        return Ok(());
    }
    for name in ["guardrails.md", "notes.md"] {
        if let Some(text) = repo.read(name, FILE_MAX)
            && dir.read(name, 1).is_none()
        {
            dir.write(name, &text)?;
        }
    }
    Ok(())
}
