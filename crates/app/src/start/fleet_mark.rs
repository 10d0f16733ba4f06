//! Marks a fleet run's record and, on other machines, names the worker that drives it.

use crate::error::AppError;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::lock::LockHolder;

const MARK: &str = "fleet";
/// In a copy of the record: who drives the run elsewhere.
const ELSEWHERE: &str = "driven-elsewhere.json";
/// Size limit for that file.
const ELSEWHERE_MAX: u64 = 64 * 1024;

pub fn is_of_fleet(record: &RunDir) -> bool {
    record.path().join(MARK).is_file()
}

pub fn mark(record: &RunDir) -> Result<(), AppError> {
    record.create()?;
    Ok(artifacts::write_atomic(&record.path().join(MARK), b"workers drive this run\n")?)
}

/// Who drives the run on another machine, according to its copied record.
pub fn driver_elsewhere(record: &RunDir) -> Option<LockHolder> {
    let text = ralph_loop_safe_fs::read_plain(record.path().join(ELSEWHERE), ELSEWHERE_MAX).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Records that driver. Process ids of other machines are meaningless here and left out.
pub fn note_driver(record: &RunDir, driver: Option<&LockHolder>) -> Result<(), AppError> {
    let path = record.path().join(ELSEWHERE);
    match driver {
        Some(driver) => Ok(artifacts::write_atomic(&path, &serde_json::to_vec(driver).unwrap_or_default())?),
        None => {
            let _ = std::fs::remove_file(path);
            Ok(())
        }
    }
}
