//! What marks the record of a run that workers of a fleet drive, and says on other machines that one of them does.

use crate::error::AppError;
use ralph_loop_journal::artifacts;
use ralph_loop_journal::layout::RunDir;
use ralph_loop_journal::lock::LockHolder;

/// Marks the record of a run that workers drive.
const MARK: &str = "fleet";
/// Says, in a copy of such a record, who drives the run elsewhere.
const ELSEWHERE: &str = "driven-elsewhere.json";
/// Bytes of that.
const ELSEWHERE_MAX: u64 = 64 * 1024;

/// Whether workers drive this run.
pub fn is_of_fleet(record: &RunDir) -> bool {
    record.path().join(MARK).is_file()
}

/// Marks a record as that of a run which workers drive.
pub fn mark(record: &RunDir) -> Result<(), AppError> {
    record.create()?;
    Ok(artifacts::write_atomic(&record.path().join(MARK), b"workers drive this run\n")?)
}

/// Who drives a run on another machine, as the copy of its record here says.
pub fn driver_elsewhere(record: &RunDir) -> Option<LockHolder> {
    let text = ralph_loop_safe_fs::read_plain(record.path().join(ELSEWHERE), ELSEWHERE_MAX).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Notes that in a copy of a record. Processes of other machines have no number here.
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
