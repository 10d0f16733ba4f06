//! Who asked for a run by another way than a terminal of this machine: a file in its record.

use crate::error::AppError;
use crate::repo_file;
use ralph_loop_journal::artifacts;
use ralph_loop_journal::layout::RunDir;

/// The file's name in the record.
const FILE: &str = "asked-by";
/// Bytes of a name.
const NAME_MAX: usize = 200;

/// Keeps the name, where there is one.
pub(crate) fn keep(record: &RunDir, name: Option<&str>) -> Result<(), AppError> {
    match name {
        Some(name) => Ok(artifacts::write_atomic(&record.path().join(FILE), name.as_bytes())?),
        None => Ok(()),
    }
}

/// The name that was kept.
pub fn read(record: &RunDir) -> Option<String> {
    let bytes = repo_file::read_record(&record.path().join(FILE)).ok()?;
    let name = ralph_loop_protocol::text::one_line(&String::from_utf8_lossy(&bytes), NAME_MAX);
    (!name.is_empty()).then_some(name)
}
