//! What sessions remember, in the `.ralph/` of a folder where one run follows another. Guardrails are the repo's and live on, and
//! so does what a person wrote into `notes.md`. Errors and progress belong to a run: each starts with none, and takes its own up
//! again when it goes on after another one.

use super::{handed_state, has_ended, latest_of, remove_agent_copy};
use crate::environment::Environment;
use crate::error::AppError;
use crate::state_files;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_journal::artifacts::write_atomic;
use ralph_loop_journal::layout::{RalphDir, StateHome};
use ralph_loop_journal::registry::{self, Registration};
use ralph_loop_journal::snapshot;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use std::path::Path;

/// A larger file is none that a person reads.
const FILE_MAX: u64 = 8 * 1024 * 1024;
/// A snapshot of a run is not larger.
const STATE_MAX: u64 = 64 * 1024 * 1024;
/// What belongs to one run.
const OF_RUN: [&str; 2] = ["progress.md", "errors.log"];

/// The memory of a run that begins.
pub(crate) fn begin(env: &Environment, home: &StateHome, spec: &RunSpec) -> Result<(), AppError> {
    let dir = RalphDir::of(spec.home());
    let last = latest_of(home, spec.home(), Some(&spec.run_id));
    if let Some(last) = &last {
        // Its process may have been killed before it could do so. One that a larger budget lets go on keeps it.
        if let Ok(last) = snapshot::read_spec(&last.run_dir())
            && handed_state(home, &last).is_some_and(|state| has_ended(&state))
        {
            remove_agent_copy(env.vars(), home, &last);
        }
    }
    let owner = owner(home, &dir).or(last);
    put_away(&dir, owner.as_ref(), |entry| env.redactor(&entry.origin));
    bring_from_repo(spec, &dir)?;
    state_files::write_missing(&dir)?;
    Ok(())
}

/// The memory of a run that goes on: its own again, where another run has worked in the folder meanwhile.
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

/// The run whose progress and errors lie in a folder: the last one that was driven there.
fn owner(home: &StateHome, dir: &RalphDir) -> Option<Registration> {
    let state: serde_json::Value = serde_json::from_slice(&dir.read("state.json", STATE_MAX)?).ok()?;
    let run = RunId::parse(state["state"]["spec"]["run_id"].as_str()?).ok()?;
    // An agent can write that file, too: only a run of this folder has anything here.
    registry::find(home, &run).filter(|entry| RalphDir::of(&entry.workspace).path() == dir.path())
}

/// Puts what belongs to one run to its record, and where people look for it. Without a known run it is set aside.
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
    // What the engine itself wrote there is whole.
    if name == "errors.log" && place.is_file() {
        return true;
    }
    // An agent wrote it: no secret of the user's comes into the record.
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

/// A worktree or clone of the user's repo begins with the repo's guardrails and with what people wrote into its notes.
fn bring_from_repo(spec: &RunSpec, dir: &RalphDir) -> Result<(), AppError> {
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
