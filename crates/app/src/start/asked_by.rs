//! Who requested a run other than from a terminal on this machine, as a file in its record.

use crate::error::AppError;
use crate::trust::repo_file;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::RunDir;

const FILE: &str = "asked-by";
const NAME_MAX: usize = 200;

pub fn keep(record: &RunDir, name: Option<&str>) -> Result<(), AppError> {
    match name {
        Some(name) => Ok(artifacts::write_atomic(&record.path().join(FILE), name.as_bytes())?),
        None => Ok(()),
    }
}

pub fn read(record: &RunDir) -> Option<String> {
    let bytes = repo_file::read_record(&record.path().join(FILE)).ok()?;
    let name = ralph_loop_protocol::display::text::one_line(&String::from_utf8_lossy(&bytes), NAME_MAX);
    (!name.is_empty()).then_some(name)
}
