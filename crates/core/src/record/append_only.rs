//! Restores append-only files: guardrails and the user-facing logs. A copy in the record is updated before
//! each session. A file that lost or changed content is restored afterwards; the agent's version is kept next
//! to it.

use crate::error::DriveError;
use crate::ledger::Ledger;
use crate::record::file_stamp::FileStamp;
use crate::record::guardrails::{self, GUARDRAILS};
use ralph_loop_journal::JournalError;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::event::EventBody;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Names in `.ralph/`.
const NAMES: [&str; 3] = [GUARDRAILS, "errors.log", "activity.log"];

/// Larger files aren't watched.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// The append-only files at the start of a session.
#[derive(Debug, Default)]
pub(crate) struct AppendOnlyFiles {
    lengths: [Option<u64>; 3],
    stamps: [Option<FileStamp>; 3],
}

fn copy_of(ledger: &Ledger, name: &str) -> Option<PathBuf> {
    let folder = ledger.record_dir.ralph_dir().is_none().then(|| ledger.record_dir.grown())?;
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join(name))
}

/// Updates the copies before a session.
pub(crate) fn copy_append_only(ledger: &Ledger) -> AppendOnlyFiles {
    let mut grown = AppendOnlyFiles::default();
    for ((name, length), stamp) in NAMES.iter().zip(&mut grown.lengths).zip(&mut grown.stamps) {
        *stamp = FileStamp::of(&ledger.dir.join(name));
        let Some(copy) = copy_of(ledger, name) else { continue };
        // A file that can't be copied isn't watched.
        *length = catch_up(&ledger.dir, name, &copy).ok();
    }
    grown
}

/// Restores changed files after a session, keeping what was appended.
pub(crate) fn check_append_only(ledger: &mut Ledger, grown: &AppendOnlyFiles) -> Result<(), DriveError> {
    for ((name, length), stamp) in NAMES.iter().zip(grown.lengths).zip(grown.stamps) {
        let (Some(length), Some(copy)) = (length, copy_of(ledger, name)) else { continue };
        let path = ledger.dir.join(name);
        // Untouched, the usual case: skips the comparison, however long the log is.
        if stamp.is_some() && FileStamp::of(&path) == stamp {
            continue;
        }
        if length == 0 || still_begins_with(&ledger.dir, name, &copy, length) {
            continue;
        }
        let kept = std::fs::read(&copy).map_err(|e| JournalError::file("read", &copy, e))?;
        // What the user removed stays removed.
        let left = match *name {
            GUARDRAILS => guardrails::without_removed_guardrails(ledger, &String::from_utf8_lossy(&kept)),
            _ => None,
        };
        if let Some(left) = &left
            && ledger.dir.read_text(name, FILE_MAX).starts_with(left.trim_end())
        {
            continue;
        }
        let mut what = format!("`.ralph/{name}`, which may only grow");
        if let Some(edited) = ledger.dir.read(name, FILE_MAX) {
            let aside = ledger.record_dir.path().join(format!("{name}.edited"));
            artifacts::write_atomic(&aside, &edited)?;
            what.push_str(&format!("; what was written over it is kept as `{}`", aside.display()));
        }
        ledger.dir.write(name, left.as_ref().map_or(kept.as_slice(), |left| left.as_bytes()))?;
        ledger.record(EventBody::Restored { what })?;
    }
    Ok(())
}

/// Appends a file's new content to its copy; starts over if the file was rotated.
fn catch_up(dir: &RalphDir, name: &str, copy: &Path) -> std::io::Result<u64> {
    let mut file = match dir.open_file(name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        file => file?,
    };
    let length = file.metadata()?.len().min(FILE_MAX);
    let known = std::fs::metadata(copy).map_or(0, |m| m.len());
    // Logs are long and only rotated; guardrails are short, and the user may edit them between sessions.
    let compared = if name == GUARDRAILS { known } else { known.min(256) };
    let another = length < known || (known > 0 && !still_begins_with(dir, name, copy, compared));
    let from = if another { 0 } else { known };
    if another || length > known {
        file.seek(SeekFrom::Start(from))?;
        let mut rest = Vec::new();
        file.take(length - from).read_to_end(&mut rest)?;
        let mut options = OpenOptions::new();
        options.create(true);
        if another {
            options.write(true).truncate(true)
        } else {
            options.append(true)
        };
        options.open(copy)?.write_all(&rest)?;
    }
    Ok(length)
}

fn still_begins_with(dir: &RalphDir, name: &str, copy: &Path, length: u64) -> bool {
    let (Ok(file), Ok(copy)) = (dir.open_file(name), File::open(copy)) else { return false };
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
