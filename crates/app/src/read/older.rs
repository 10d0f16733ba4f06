//! Runs in the old layout, with their record in the workspace's `.ralph/`. Resuming one moves its record out
//! of agents' reach; reading leaves it.

use crate::environment::Environment;
use crate::error::AppError;
use crate::wiring;
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::{RunDir, StateHome};
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::folder::{shown, snapshot};
use ralph_loop_protocol::id::RunId;
use std::fs;
use std::io;
use std::path::Path;

/// Limit for a record's files.
const FILES_MAX: usize = 500_000;
/// Parts of a run's git folder that are recreated or meaningful only there.
const PASSING: &[&str] = &["objects", "room", "events.jsonl", "spec.json", "clock"];
/// Copies of append-only files, which the record keeps separately.
const GROWN: &[&str] = &["guardrails.md", "errors.log", "activity.log"];

/// The entry of a run with a separate record; moves a record of the old layout first. The caller holds its
/// lock.
pub(crate) fn moved(
    env: &Environment,
    home: &StateHome,
    entry: &Registration,
) -> Result<Registration, AppError> {
    if entry.record.is_some() {
        return Ok(entry.clone());
    }
    registered(home, entry)?;
    let run = &entry.run_id;
    let record = home.record(run);
    if !record.spec().is_file() {
        copy_record(env, entry, &record).map_err(|e| {
            AppError::environment(format!("cannot move the record of run {run}: {e}"))
                .hint("nothing was changed; fix what the message names, then try again")
        })?;
    }
    let entry = Registration { spare: None, record: Some(record.path().to_owned()), ..entry.clone() };
    registry::register(home, &entry)?;
    shown::link(&entry.ralph_dir(), run, &record);
    Ok(entry)
}

/// Rejects a run that this machine didn't register and seal: anyone can write a repo's `.ralph/runs`, so
/// those are read-only.
pub(crate) fn registered(home: &StateHome, entry: &Registration) -> Result<(), AppError> {
    let run = &entry.run_id;
    let known = registry::find(home, run);
    if known.is_some_and(|known| known.record.is_some() || home.seal(run).is_file()) {
        return Ok(());
    }
    Err(AppError::usage(format!(
        "the record of run {run} isn't on this machine; `.ralph/runs` has a read-only copy"
    ))
    .hint(format!(
        "fetch a pushed run with `ralph resume --from REMOTE {run}`, or start another one with `ralph run --new`"
    )))
}

/// Copies a record next to its destination and renames it once complete.
fn copy_record(env: &Environment, entry: &Registration, record: &RunDir) -> io::Result<()> {
    let partial = record.path().with_file_name(format!("{}.partial", entry.run_id));
    match fs::remove_dir_all(&partial) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let new = RunDir::at(&partial);
    new.create().map_err(io::Error::other)?;
    let mut left = FILES_MAX;
    copy(entry.run_dir().path(), &partial, &["lock", "wake"], &mut left)?;
    let user = Repo::discover(env.vars(), &entry.workspace).ok();
    if let Some(folder) = user.map(|repo| repo.run_folder(&entry.run_id)) {
        let spare = RunDir::at(&folder);
        for (from, to) in [(spare.events(), new.events()), (spare.spec(), new.spec())] {
            if !to.exists() && is_file(&from) {
                fs::copy(from, to)?;
            }
        }
        copy(&folder, &new.git(), PASSING, &mut left)?;
        fs::create_dir_all(new.grown())?;
        for name in GROWN {
            let _ = fs::rename(new.git().join(name), new.grown().join(name));
        }
    }
    let spec = snapshot::read_spec(&new).map_err(io::Error::other)?;
    if spec.hands_back()
        && let Ok(agent_copy) = Repo::discover(env.vars(), &spec.workspace)
    {
        copy(&agent_copy.run_folder(&entry.run_id), &new.copy_git(), PASSING, &mut left)?;
    }
    fs::rename(&partial, record.path())
}

/// Copies regular files and folders only.
fn copy(from: &Path, to: &Path, without: &[&str], left: &mut usize) -> io::Result<()> {
    let listing = match fs::read_dir(from) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        listing => listing?,
    };
    fs::create_dir_all(to)?;
    for item in listing.flatten() {
        let name = item.file_name();
        if without.iter().any(|passing| name == *passing) {
            continue;
        }
        *left = left.checked_sub(1).ok_or(io::ErrorKind::FileTooLarge)?;
        let path = item.path();
        if item.file_type()?.is_dir() {
            copy(&path, &to.join(name), &[], left)?;
        } else if is_file(&path) {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// The git folder of a registered run, wherever its record is.
pub(crate) fn git_folders(home: &StateHome, run: &RunId) -> ralph_loop_git::agent_copy::CopyDirs {
    match registry::find(home, run) {
        Some(entry) if entry.record.is_none() => ralph_loop_git::agent_copy::CopyDirs::default(),
        _ => wiring::git_folders(home, run),
    }
}
