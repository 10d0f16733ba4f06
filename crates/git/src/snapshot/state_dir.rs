//! `commit_state`: the `.ralph/` folder as part of the work commits.
//!
//! It is never part of the tree that checks judge: the engine keeps writing to it, and a growing journal must not
//! look like work.

use crate::error::{Error, Result};
use crate::objects::writer::Objects;
use crate::snapshot::entry::TreeEntry;
use crate::snapshot::work_tree::WorkChanges;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

pub(crate) const PREFIX: &[u8] = b".ralph/";
/// Larger files (floods of output) stay out of the repo.
const FILE_MAX: u64 = 4 * 1024 * 1024;
/// Files that only matter to the driving process and its watchers, and git's.
const PASSING: &[&str] =
    &["lock", "active.json", "live.jsonl", "live.1.jsonl", "events.idx", "git", "copy-git", "grown"];

struct StateEntry {
    path: Vec<u8>,
    mode: u32,
    body: Vec<u8>,
}

/// Adds the present state folder to the work. The run's `record` is elsewhere, with a link here: this run's record is
/// added, and nothing of other runs.
pub(crate) fn with_state(
    work: &WorkChanges,
    top: &Path,
    record: Option<&Path>,
    objects: &Objects,
) -> Result<WorkChanges> {
    let mut entries: Vec<TreeEntry> =
        work.entries.iter().filter(|e| !e.path.starts_with(PREFIX)).cloned().collect();
    let mut changed = work.changed.clone();
    let mut found = Vec::new();
    collect(&top.join(".ralph"), b".ralph", &mut found)?;
    if let Some((record, name)) = record.and_then(|record| Some((record, record.file_name()?))) {
        let shown = [b".ralph/runs/", name.as_bytes()].concat();
        collect(record, &shown, &mut found)?;
    }
    let blobs = objects.blobs(found.iter().map(|file| file.body.as_slice()))?;
    let entry = |(file, oid): (StateEntry, _)| TreeEntry { path: file.path, mode: file.mode, oid };
    let found: Vec<TreeEntry> = found.into_iter().zip(blobs).map(entry).collect();
    changed.extend(found.iter().map(|e| e.path.clone()));
    entries.extend(found);
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(WorkChanges { entries, changed, dirty_touched: work.dirty_touched.clone() })
}

fn collect(folder: &Path, name: &[u8], found: &mut Vec<StateEntry>) -> Result<()> {
    let Ok(listing) = fs::read_dir(folder) else { return Ok(()) };
    for item in listing.flatten() {
        let path = item.path();
        let file_name = item.file_name();
        if PASSING.iter().any(|p| file_name == *p) || file_name.as_bytes().ends_with(b".tmp") {
            continue;
        }
        let inside = [name, b"/", file_name.as_bytes()].concat();
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        let (mode, body) = if meta.is_dir() {
            collect(&path, &inside, found)?;
            continue;
        } else if meta.is_symlink() {
            if name == b".ralph/runs" {
                continue;
            }
            let target = fs::read_link(&path).map_err(|e| Error::file("read", &path, e))?;
            (0o120_000, target.as_os_str().as_bytes().to_vec())
        } else if meta.is_file() && meta.len() <= FILE_MAX {
            let mode = if meta.permissions().mode() & 0o100 == 0 { 0o100_644 } else { 0o100_755 };
            // A file that disappears in between doesn't count.
            let Ok(body) = fs::read(&path) else { continue };
            (mode, body)
        } else {
            continue;
        };
        found.push(StateEntry { path: inside, mode, body });
    }
    Ok(())
}
