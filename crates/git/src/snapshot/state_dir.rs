//! `commit_state`: the `.ralph/` folder as part of the work commits.
//!
//! It is never part of the tree that checks judge: the engine writes to it all the time, and a journal that grows must
//! not look like work.

use crate::error::{Error, Result};
use crate::objects::writer::ObjectStore;
use crate::snapshot::entry::TreeEntry;
use crate::snapshot::work_tree::WorkChanges;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The folder's name, as paths in a tree begin.
pub(crate) const PREFIX: &[u8] = b".ralph/";
/// Larger files (floods of output) stay out of the repo.
const FILE_MAX: u64 = 4 * 1024 * 1024;
/// What only means something to the process that drives the run and to those who watch it, and what is git's own.
const PASSING: &[&str] =
    &["lock", "active.json", "live.jsonl", "live.1.jsonl", "events.idx", "git", "copy-git", "grown"];

/// The work with the state folder added as it is now. The run's `record` lies elsewhere and is shown by a link: of that run
/// the record itself is added, of others nothing.
pub(crate) fn with_state(
    work: &WorkChanges,
    top: &Path,
    record: Option<&Path>,
    objects: &mut ObjectStore,
) -> Result<WorkChanges> {
    let mut entries: Vec<TreeEntry> =
        work.entries.iter().filter(|e| !e.path.starts_with(PREFIX)).cloned().collect();
    let mut changed = work.changed.clone();
    let mut found = Vec::new();
    collect(&top.join(".ralph"), b".ralph", objects, &mut found)?;
    if let Some((record, name)) = record.and_then(|record| Some((record, record.file_name()?))) {
        let shown = [b".ralph/runs/", name.as_bytes()].concat();
        collect(record, &shown, objects, &mut found)?;
    }
    changed.extend(found.iter().map(|e| e.path.clone()));
    entries.extend(found);
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(WorkChanges { entries, changed, dirty_touched: work.dirty_touched.clone() })
}

fn collect(folder: &Path, name: &[u8], objects: &mut ObjectStore, found: &mut Vec<TreeEntry>) -> Result<()> {
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
            collect(&path, &inside, objects, found)?;
            continue;
        } else if meta.is_symlink() {
            if name == b".ralph/runs" {
                continue;
            }
            let target = fs::read_link(&path).map_err(|e| Error::file("read", &path, e))?;
            (0o120_000, target.as_os_str().as_bytes().to_vec())
        } else if meta.is_file() && meta.len() <= FILE_MAX {
            let mode = if meta.permissions().mode() & 0o100 == 0 { 0o100_644 } else { 0o100_755 };
            // A file that vanishes meanwhile is simply not there.
            let Ok(body) = fs::read(&path) else { continue };
            (mode, body)
        } else {
            continue;
        };
        found.push(TreeEntry { path: inside, mode, oid: objects.write("blob", &body)? });
    }
    Ok(())
}
