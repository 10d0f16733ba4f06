//! The end of a log: what prompts, rules and readers look at.

use ralph_domain::text::tail;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The end of a log, whole where it is short.
pub(crate) fn read_tail(path: &Path, max: u64) -> String {
    let Ok(mut file) = ralph_journal::plain::read(path) else { return String::new() };
    let length = file.metadata().map_or(0, |m| m.len());
    if length > max && file.seek(SeekFrom::End(-(max as i64))).is_err() {
        return String::new();
    }
    let mut bytes = Vec::new();
    if file.take(max).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    tail(&text, max as usize).to_owned()
}
