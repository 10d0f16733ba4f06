//! Builds a run's row from its record.

use super::{Indexed, Spend};
use crate::row::RunRow;
use ralph_loop_app::Environment;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::start::asked_by;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::id::RunId;

/// Ids of all registered runs, without opening any.
pub fn entries(home: &StateHome) -> Vec<RunId> {
    let Ok(found) = std::fs::read_dir(home.registrations()) else { return Vec::new() };
    let id = |name: std::ffi::OsString| RunId::parse(name.to_str()?.strip_suffix(".json")?).ok();
    let mut ids: Vec<RunId> = found.flatten().filter_map(|entry| id(entry.file_name())).collect();
    ids.sort();
    ids
}

/// Reads a run from its record.
pub fn read_run(env: &Environment, entry: &Registration) -> (Indexed, Option<Box<RunSnapshot>>) {
    let gone = if !entry.origin.is_dir() {
        Some(entry.origin.as_path().to_owned())
    } else {
        (!entry.run_dir().spec().is_file()).then(|| entry.run_dir().path().to_owned())
    };
    if let Some(gone) = gone {
        let problem = format!("`{}` is gone", gone.display());
        return (Indexed { row: RunRow::unreadable(entry, "gone", problem), spend: Some(Vec::new()) }, None);
    }
    match RunSnapshot::load(env, entry.clone()) {
        Ok(reading) => {
            let row = RunRow::of(&reading, asked_by::read(&entry.run_dir()));
            let spend = Some(Spend::of(&reading));
            (Indexed { row, spend }, Some(Box::new(reading)))
        }
        Err(error) => {
            let row = RunRow::unreadable(entry, "unreadable", error.message);
            (Indexed { row, spend: Some(Vec::new()) }, None)
        }
    }
}
