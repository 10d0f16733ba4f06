//! Lists the runs of one folder or of all folders.

use crate::environment::Environment;
use crate::error::AppError;
use crate::read::facts::RunSnapshot;
use crate::read::{find, seen};
use jiff::Timestamp;
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::money::Cost;
use ralph_loop_protocol::status::Status;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize)]
pub struct ListEntry {
    pub run_id: String,
    pub title: String,
    /// Status word; `gone` if the folder is missing, `unreadable` if the journal is.
    pub status: String,
    pub driven: bool,
    /// The current or last iteration.
    pub iteration: Option<u32>,
    /// Iteration limit.
    pub max_iterations: Option<u32>,
    #[serde(flatten)]
    pub cost: Cost,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When its journal last grew.
    pub last_event_at: Option<Timestamp>,
    /// When something last happened, including output.
    pub active_at: Option<Timestamp>,
    pub folder: PathBuf,
    pub workspace: PathBuf,
    /// The problem, if there is one.
    pub problem: Option<String>,
    /// Unfinished and stopped.
    #[serde(skip)]
    pub orphaned: bool,
    /// Done, with work that was neither committed nor published.
    #[serde(skip)]
    pub untaken: bool,
}

/// The runs of `folder`, or of every folder, oldest first.
pub fn runs(env: &Environment, folder: &Path, everywhere: bool) -> Result<Vec<ListEntry>, AppError> {
    let home = env.state_home()?;
    let mut found = find::runs_of(&home, &find::top(folder));
    if everywhere {
        let here = std::mem::take(&mut found);
        found = registry::all(&home);
        found.extend(here);
        found.sort_by(|a, b| a.run_id.cmp(&b.run_id));
        found.dedup_by(|a, b| a.run_id == b.run_id);
    }
    Ok(found.into_iter().map(|registration| list_entry(env, registration)).collect())
}

pub fn list_entry(env: &Environment, registration: Registration) -> ListEntry {
    let entry = ListEntry {
        run_id: registration.run_id.to_string(),
        title: registration.title.clone(),
        status: "gone".into(),
        driven: false,
        iteration: None,
        max_iterations: None,
        cost: Cost::UNKNOWN,
        created_at: registration.created_at,
        last_event_at: None,
        active_at: None,
        folder: registration.origin.clone(),
        workspace: registration.workspace.clone(),
        problem: None,
        orphaned: false,
        untaken: false,
    };
    if !registration.origin.is_dir() {
        let problem = format!("`{}` is gone", registration.origin.display());
        return ListEntry { problem: Some(problem), ..entry };
    }
    if !registration.run_dir().spec().is_file() {
        let problem = format!("`{}` is gone", registration.run_dir().path().display());
        return ListEntry { problem: Some(problem), ..entry };
    }
    match RunSnapshot::load(env, registration) {
        Err(error) => ListEntry { status: "unreadable".into(), problem: Some(error.message), ..entry },
        Ok(facts) => ListEntry {
            untaken: facts.status() == Status::Done
                && facts.state.work.commit.is_some()
                && facts.state.handover.pushed.is_none()
                && !seen::is_taken(&facts.entry),
            title: facts.state.spec.task.title.clone(),
            status: facts.status().to_string(),
            driven: facts.driver.is_some(),
            iteration: Some(facts.iteration()),
            max_iterations: Some(facts.state.spec.settings.budgets.max_iterations),
            cost: facts.state.cost(),
            last_event_at: Some(facts.last_event),
            active_at: Some(facts.last_activity()),
            orphaned: facts.is_orphaned(),
            ..entry
        },
    }
}
