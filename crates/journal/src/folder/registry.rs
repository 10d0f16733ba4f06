//! The registry: every run of any folder, so that it can be found from anywhere. An entry names folders; facts about
//! the run are in its journal.

use crate::error::JournalError;
use crate::folder::artifacts::write_atomic;
use crate::folder::layout::{RalphDir, RunDir, StateHome};
use jiff::Timestamp;
use ralph_loop_protocol::id::RunId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub run_id: RunId,
    pub title: String,
    pub origin: PathBuf,
    /// The folder of the agent's tree, with `.ralph/` in it.
    pub workspace: PathBuf,
    pub created_at: Timestamp,
    /// Its record; left out for a copied folder, whose `.ralph/` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

impl Registration {
    /// The `.ralph/` folder of the run.
    pub fn ralph_dir(&self) -> RalphDir {
        RalphDir::of(&self.workspace)
    }
    pub fn run_dir(&self) -> RunDir {
        match &self.record {
            Some(record) => RunDir::at(record),
            None => self.ralph_dir().run(&self.run_id),
        }
    }
    /// Git's records of the run for the user's repo; `None` for the repo's own folder for that.
    pub fn git_folder(&self) -> Option<PathBuf> {
        self.record.as_ref().map(|record| RunDir::at(record).git())
    }
    pub fn exists(&self) -> bool {
        self.run_dir().spec().is_file()
    }
}

pub fn register(home: &StateHome, entry: &Registration) -> Result<(), JournalError> {
    // First: a listed id without an entry is skipped, but an unlisted entry would be missed.
    for folder in folders_of(entry) {
        list(home, folder, std::slice::from_ref(&entry.run_id))?;
    }
    let text = serde_json::to_vec_pretty(entry).unwrap_or_default();
    write_atomic(&home.registration(&entry.run_id), &text)
}

pub fn find(home: &StateHome, run: &RunId) -> Option<Registration> {
    serde_json::from_slice(&std::fs::read(home.registration(run)).ok()?).ok()
}

/// All entries, oldest first.
pub fn all(home: &StateHome) -> Vec<Registration> {
    ids(home).iter().filter_map(|run| find(home, run)).collect()
}

/// All entries, latest first, each read on demand.
pub fn latest_first(home: &StateHome) -> impl Iterator<Item = Registration> {
    let home = home.clone();
    ids(&home).into_iter().rev().filter_map(move |run| find(&home, &run))
}

/// The ids of all entries, oldest first, without reading them.
pub fn ids(home: &StateHome) -> Vec<RunId> {
    let Ok(entries) = std::fs::read_dir(home.registrations()) else { return Vec::new() };
    let mut found: Vec<RunId> = entries
        .flatten()
        // The record of each run is next to its entry.
        .filter_map(|entry| RunId::parse(entry.file_name().to_str()?.strip_suffix(".json")?).ok())
        .collect();
    found.sort();
    found
}

/// The entries of runs that work in a folder or were started from it, oldest first. The cost depends on these runs,
/// not on all runs.
pub fn of_folder(home: &StateHome, folder: &Path) -> Vec<Registration> {
    let listed: BTreeSet<RunId> = listed(home, folder).into_iter().collect();
    let entries = listed.iter().filter_map(|run| find(home, run));
    entries.filter(|entry| entry.origin == folder || entry.workspace == folder).collect()
}

fn folders_of(entry: &Registration) -> BTreeSet<&Path> {
    [entry.origin.as_path(), entry.workspace.as_path()].into()
}

fn listed(home: &StateHome, folder: &Path) -> Vec<RunId> {
    let text = std::fs::read_to_string(home.folder_runs(folder)).unwrap_or_default();
    text.lines().filter_map(|line| RunId::parse(line).ok()).collect()
}

/// Adds ids to the list of a folder.
fn list(home: &StateHome, folder: &Path, runs: &[RunId]) -> Result<(), JournalError> {
    let path = home.folder_runs(folder);
    // The empty line keeps a torn line from damaging the next one.
    let lines: String = runs.iter().map(|run| format!("\n{run}\n")).collect();
    let add = || {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
        file.write_all(lines.as_bytes())
    };
    add().map_err(|e| JournalError::file("append to", &path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(home: &StateHome, id: &str, origin: &str, workspace: &str) -> Registration {
        let run_id = RunId::parse(id).unwrap();
        Registration {
            record: Some(home.record(&run_id).path().to_owned()),
            run_id,
            title: "task".into(),
            origin: origin.into(),
            workspace: workspace.into(),
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn ids_of(home: &StateHome, folder: &str) -> Vec<String> {
        of_folder(home, Path::new(folder)).iter().map(|entry| entry.run_id.to_string()).collect()
    }

    #[test]
    fn folder_lists_runs_in_it_and_runs_started_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = StateHome::at(folder.path());
        register(&home, &entry(&home, "20260101-000002-bbbb", "/a", "/copy")).unwrap();
        register(&home, &entry(&home, "20260101-000001-aaaa", "/a", "/a")).unwrap();
        register(&home, &entry(&home, "20260101-000003-cccc", "/b", "/b")).unwrap();
        assert_eq!(ids_of(&home, "/a"), ["20260101-000001-aaaa", "20260101-000002-bbbb"]);
        assert_eq!(ids_of(&home, "/copy"), ["20260101-000002-bbbb"]);
        assert_eq!(ids_of(&home, "/c"), Vec::<String>::new());
        let latest: Vec<RunId> = latest_first(&home).map(|entry| entry.run_id).collect();
        assert_eq!(latest, ids(&home).into_iter().rev().collect::<Vec<_>>());

        // Registered again at another path, and one whose entry is gone.
        register(&home, &entry(&home, "20260101-000001-aaaa", "/moved", "/moved")).unwrap();
        std::fs::remove_file(home.registration(&RunId::parse("20260101-000003-cccc").unwrap())).unwrap();
        assert_eq!(ids_of(&home, "/a"), ["20260101-000002-bbbb"]);
        assert_eq!(ids_of(&home, "/moved"), ["20260101-000001-aaaa"]);
        assert_eq!(ids_of(&home, "/b"), Vec::<String>::new());
    }

    #[test]
    fn runs_are_found_after_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let home = StateHome::at(folder.path());
        register(&home, &entry(&home, "20260101-000001-aaaa", "/a", "/a")).unwrap();
        std::fs::write(home.folder_runs(Path::new("/a")), "\n20260101-000001-aaaa\n\n2026010").unwrap();
        register(&home, &entry(&home, "20260101-000002-bbbb", "/a", "/a")).unwrap();
        assert_eq!(ids_of(&home, "/a"), ["20260101-000001-aaaa", "20260101-000002-bbbb"]);
    }
}
