//! The registry: every run of any folder, so that it can be found from anywhere. An entry names folders; what is true
//! of the run stands in its journal.

use crate::artifacts::write_atomic;
use crate::error::JournalError;
use crate::layout::{RalphDir, RunDir, StateHome};
use jiff::Timestamp;
use ralph_domain::id::RunId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One run's entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The run.
    pub run_id: RunId,
    /// Short name of its task.
    pub title: String,
    /// The user's folder it was started from.
    pub origin: PathBuf,
    /// The folder of the agent's tree, with `.ralph/` in it.
    pub workspace: PathBuf,
    /// When it was made.
    pub created_at: Timestamp,
    /// Folder of the spare links of its journal, where its record lies in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<PathBuf>,
    /// Its record; left out where that lies in the `.ralph/` of the workspace (an older layout, or a copied folder).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

impl Registration {
    /// The `.ralph/` folder of the run.
    pub fn ralph_dir(&self) -> RalphDir {
        RalphDir::of(&self.workspace)
    }
    /// The run's record.
    pub fn run_dir(&self) -> RunDir {
        match &self.record {
            Some(record) => RunDir::at(record),
            None => self.ralph_dir().run(&self.run_id),
        }
    }
    /// Where git keeps what it remembers of the run beside the user's repo; `None` for the repo's own folder for that.
    pub fn git_folder(&self) -> Option<PathBuf> {
        self.record.as_ref().map(|record| RunDir::at(record).git())
    }
    /// Whether the record is still there.
    pub fn exists(&self) -> bool {
        self.run_dir().spec().is_file() || self.spare.as_ref().is_some_and(|s| s.join("spec.json").is_file())
    }
}

/// Writes a run's entry.
pub fn register(home: &StateHome, entry: &Registration) -> Result<(), JournalError> {
    let text = serde_json::to_vec_pretty(entry).unwrap_or_default();
    write_atomic(&home.registration(&entry.run_id), &text)
}

/// One run's entry.
pub fn find(home: &StateHome, run: &RunId) -> Option<Registration> {
    serde_json::from_slice(&std::fs::read(home.registration(run)).ok()?).ok()
}

/// All entries, oldest first.
pub fn all(home: &StateHome) -> Vec<Registration> {
    let Ok(entries) = std::fs::read_dir(home.registrations()) else { return Vec::new() };
    let mut found: Vec<Registration> = entries
        .flatten()
        // Beside each entry lies the record of its run.
        .filter(|e| e.path().extension().is_some_and(|ending| ending == "json"))
        .filter_map(|e| serde_json::from_slice(&std::fs::read(e.path()).ok()?).ok())
        .collect();
    found.sort_by(|a, b| a.run_id.cmp(&b.run_id));
    found
}
