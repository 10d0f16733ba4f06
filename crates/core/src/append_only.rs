//! Files that may only grow: guardrails and the logs for people. A copy in the record is brought up to date before each
//! session; a file that lost or changed what it had is put back afterwards, the agent's version is kept beside it.

use crate::context::Context;
use crate::error::DriveError;
use crate::file_stamp::FileStamp;
use ralph_domain::event::EventBody;
use ralph_journal::JournalError;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The files, by their names in `.ralph/`.
const NAMES: [&str; 3] = ["guardrails.md", "errors.log", "activity.log"];

/// The append-only files as they were when the session began.
#[derive(Debug, Default)]
pub(crate) struct AppendOnlyFiles {
    lengths: [Option<u64>; 3],
    stamps: [Option<FileStamp>; 3],
}

impl Context {
    fn copy_of(&self, name: &str) -> Option<PathBuf> {
        let old = self.journal.places().spare.clone();
        let folder = old.or_else(|| self.run.ralph_dir().is_none().then(|| self.run.grown()))?;
        std::fs::create_dir_all(&folder).ok()?;
        Some(folder.join(name))
    }

    /// Before a session: the copies hold what the files hold.
    pub fn copy_append_only(&self) -> AppendOnlyFiles {
        let mut grown = AppendOnlyFiles::default();
        for ((name, length), stamp) in NAMES.iter().zip(&mut grown.lengths).zip(&mut grown.stamps) {
            *stamp = FileStamp::of(&self.dir.join(name));
            let Some(copy) = self.copy_of(name) else { continue };
            // Where a copy cannot be made, the file simply is not watched.
            *length = catch_up(&self.dir.join(name), &copy).ok();
        }
        grown
    }

    /// After a session: a file that is no longer what it was, with something added, is put back.
    pub fn check_append_only(&mut self, grown: &AppendOnlyFiles) -> Result<(), DriveError> {
        for ((name, length), stamp) in NAMES.iter().zip(grown.lengths).zip(grown.stamps) {
            let (Some(length), Some(copy)) = (length, self.copy_of(name)) else { continue };
            let path = self.dir.join(name);
            // Untouched, which is the usual case: nothing to compare, however long the log has grown.
            if stamp.is_some() && FileStamp::of(&path) == stamp {
                continue;
            }
            if length == 0 || still_begins_with(&path, &copy, length) {
                continue;
            }
            let aside = self.run.path().join(format!("{name}.edited"));
            if path.is_file() {
                std::fs::rename(&path, &aside).map_err(|e| JournalError::file("set aside", &aside, e))?;
            }
            std::fs::create_dir_all(self.dir.path())
                .map_err(|e| JournalError::file("make the folder", self.dir.path(), e))?;
            std::fs::copy(&copy, &path).map_err(|e| JournalError::file("put back", &path, e))?;
            let what = format!(
                "`.ralph/{name}` may only grow; what was written over it is kept as `{}`",
                aside.display()
            );
            self.record(EventBody::Restored { what })?;
        }
        Ok(())
    }
}

/// Adds to the copy what the file has gained; makes it anew where the file is another one (rotated).
fn catch_up(path: &Path, copy: &Path) -> std::io::Result<u64> {
    let length = std::fs::metadata(path).map_or(0, |m| m.len());
    let known = std::fs::metadata(copy).map_or(0, |m| m.len());
    if length < known || (known > 0 && !still_begins_with(path, copy, known.min(256))) {
        std::fs::copy(path, copy)?;
    } else if length > known {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(known))?;
        let mut rest = Vec::new();
        file.take(length - known).read_to_end(&mut rest)?;
        OpenOptions::new().create(true).append(true).open(copy)?.write_all(&rest)?;
    }
    Ok(length)
}

fn still_begins_with(path: &Path, copy: &Path, length: u64) -> bool {
    let (Ok(file), Ok(copy)) = (File::open(path), File::open(copy)) else { return false };
    if file.metadata().map_or(0, |m| m.len()) < length {
        return false;
    }
    let (mut a, mut b) = (file.take(length), copy.take(length));
    let (mut left, mut right) = ([0u8; 8192], [0u8; 8192]);
    loop {
        match (a.read(&mut left), b.read(&mut right)) {
            (Ok(0), Ok(0)) => return true,
            (Ok(n), Ok(m)) if n == m && left[..n] == right[..m] => {}
            _ => return false,
        }
    }
}
