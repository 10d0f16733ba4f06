//! Finds a run by id, prefix or suffix, or the latest of a folder.

pub use crate::trust::repo_file::top;

use crate::environment::Environment;
use crate::error::AppError;
use crate::start::locks;
use ralph_loop_core::handle::RunHandle;
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::id::RunId;
use std::path::Path;

/// Names the winner, in the record of a run that lost a race.
const LOST: &str = "lost-race.txt";
/// Entries examined to find the latest run.
const LATEST: usize = 256;
/// Ids listed if several match.
const NAMED: usize = 5;

/// All runs started from a folder or working in it.
pub fn runs_of(home: &StateHome, folder: &Path) -> Vec<Registration> {
    let mut found = registry::of_folder(home, folder);
    // Runs of a copied or restored folder that the registry doesn't know.
    let dir = RalphDir::of(folder);
    for id in dir.runs() {
        if found.iter().any(|r| r.run_id == id) {
            continue;
        }
        if let Some(entry) = registry::find(home, &id) {
            // The folder was moved; its record wasn't.
            found.push(entry);
            continue;
        }
        if let Ok(spec) = ralph_loop_journal::folder::snapshot::read_spec(&dir.run(&id)) {
            found.push(Registration {
                run_id: id,
                title: spec.task.title,
                origin: folder.to_owned(),
                workspace: folder.to_owned(),
                created_at: spec.created_at,
                record: None,
            });
        }
    }
    found.sort_by(|a, b| a.run_id.cmp(&b.run_id));
    found
}

/// The run that this process drives, started in this folder.
pub(crate) fn driven_by(home: &StateHome, folder: &Path, pid: u32) -> Option<Registration> {
    let of_folder = registry::of_folder(home, &top(folder)).into_iter().rev();
    // A cloned run may have been started in another folder.
    of_folder.chain(registry::latest_first(home).take(LATEST)).find(|entry| is_driven_by(entry, pid))
}

/// Whether this process drives a run.
pub(crate) fn is_driven_by(entry: &Registration, pid: u32) -> bool {
    ralph_loop_journal::lock::holder(&entry.run_dir().lock())
        .is_some_and(|holder| holder.pid == pid && holder.run_id == entry.run_id)
}

/// The run that `name` identifies; without a name the run active in this folder, else its latest.
pub fn run(env: &Environment, folder: &Path, name: Option<&str>) -> Result<Registration, AppError> {
    let home = env.state_home()?;
    let top = top(folder);
    let here = runs_of(&home, &top);
    let Some(name) = name else {
        let driven = locks::holder(&home, &top).map(|h| h.run_id);
        // After a race, the latest run is the winner.
        let latest = || here.iter().rev().find(|entry| !has_lost(entry)).or_else(|| here.last());
        let chosen = driven.and_then(|id| here.iter().find(|r| r.run_id == id)).or_else(latest);
        return chosen.cloned().ok_or_else(|| {
            AppError::usage(format!("no run in `{}`", top.display()))
                .hint("`ralph run` starts one; `ralph list --all` shows those of other folders")
        });
    };
    if RunId::parse(name).is_err() {
        return Err(AppError::usage(format!("`{name}` is not a run id")).hint("`ralph list` shows the ids"));
    }
    let is_near = |run: &RunId| run.as_str().starts_with(name) || run.as_str().ends_with(name);
    let near_ones = registry::ids(&home).into_iter().filter(is_near);
    let mut near: Vec<Registration> = near_ones.filter_map(|run| registry::find(&home, &run)).collect();
    near.extend(here.into_iter().filter(|r| is_near(&r.run_id)));
    near.sort_by(|a, b| a.run_id.cmp(&b.run_id));
    near.dedup_by(|a, b| a.run_id == b.run_id);
    let exact = near.iter().find(|r| r.run_id.as_str() == name);
    match (exact, near.as_slice()) {
        (Some(run), _) => Ok(run.clone()),
        (None, [run]) => Ok(run.clone()),
        (None, []) => {
            Err(AppError::usage(format!("run `{name}` doesn't exist"))
                .hint("`ralph list --all` shows every run"))
        }
        (None, many) => {
            let ids: Vec<&str> = many.iter().map(|r| r.run_id.as_str()).collect();
            Err(AppError::usage(format!("`{name}` could be any of {}", some_of(&ids)))
                .hint("give more of the id; `ralph list` shows the runs of this folder"))
        }
    }
}

/// The latest ids, and how many more there are.
fn some_of(ids: &[&str]) -> String {
    let named: Vec<&str> = ids.iter().rev().take(NAMED).copied().collect();
    match ids.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Records which run won the race.
pub(crate) fn note_lost(entry: &Registration, winner: &str) {
    // If this fails, only the choice of the latest run changes.
    let _ =
        ralph_loop_journal::folder::artifacts::write(&entry.run_dir().path().join(LOST), winner.as_bytes());
}

fn has_lost(entry: &Registration) -> bool {
    entry.run_dir().path().join(LOST).is_file()
}

pub fn handle(env: &Environment, registration: &Registration) -> RunHandle {
    RunHandle::new(registration.run_dir(), env.actor())
}

/// Rejects a run that this machine didn't register and seal: anyone can write a repo's `.ralph/runs`, so
/// those are read-only.
pub(crate) fn registered(home: &StateHome, entry: &Registration) -> Result<(), AppError> {
    let run = &entry.run_id;
    if registry::find(home, run).is_some_and(|known| known.record.is_some()) {
        return Ok(());
    }
    Err(AppError::usage(format!(
        "the record of run {run} isn't on this machine; `.ralph/runs` has a read-only copy"
    ))
    .hint(format!(
        "fetch a pushed run with `ralph resume --from REMOTE {run}`, or start another one with `ralph run --new`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_ids_the_latest_are_named_and_the_others_counted() {
        assert_eq!(some_of(&["a", "b"]), "b, a");
        assert_eq!(some_of(&["a", "b", "c", "d", "e", "f", "g"]), "g, f, e, d, c and 2 more");
    }
}
