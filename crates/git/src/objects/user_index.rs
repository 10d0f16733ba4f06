//! Updates the index of the tree that has a run's branch checked out when the branch moves, so that `git status`
//! doesn't show the run's commits backwards.
//!
//! Git changes a copy of it in the run's folder; the copy replaces the index under git's own lock, and only if the
//! index hasn't changed in between. A kill at any point leaves the old index or the new one.

use crate::error::{Error, Result};
use crate::locks::lock_file::{Flush, LockFiles};
use crate::snapshot::entry::find;
use crate::snapshot::work_tree::WorkChanges;
use crate::workspace::GitWorkspace;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

const TRIES: u32 = 10;

impl GitWorkspace {
    pub(crate) fn user_index_locks(&self) -> LockFiles {
        LockFiles::new(self.repo.run_folder(&self.run)).removing_left(self.left_locks.clone())
    }

    pub(crate) fn update_user_index(&self, paths: &BTreeSet<&[u8]>, work: &WorkChanges) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let zero = "0".repeat(self.repo.object_format.len() * 2);
        let mut input = Vec::new();
        // Removals first, so that a file can replace a folder.
        for pass_removes in [true, false] {
            for path in paths {
                let line = match find(&work.entries, path) {
                    Some(entry) if !pass_removes => format!("{:o} {}\t", entry.mode, entry.oid),
                    None if pass_removes => format!("0 {zero}\t"),
                    _ => continue,
                };
                input.extend_from_slice(line.as_bytes());
                input.extend_from_slice(path);
                input.push(0);
            }
        }
        self.change_user_index(&["update-index", "-z", "--index-info"], &input)
    }

    pub(crate) fn reset_own_index(&self, commit: &str) -> Result<()> {
        self.change_user_index(&["read-tree", commit], &[])
    }

    fn change_user_index(&self, args: &[&str], input: &[u8]) -> Result<()> {
        let index = self.repo.git_dir.join("index");
        let copy: PathBuf = self.folder.join(format!("user-index-{}", std::process::id()));
        let mut tries = 0;
        loop {
            let before = match fs::read(&index) {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(Error::file("read", &index, e)),
            };
            let changed = self.changed_copy(&copy, &before, args, input);
            let _ = fs::remove_file(&copy);
            let after = changed?;
            let unchanged = || match fs::read(&index) {
                Ok(now) if now == before => Ok(()),
                _ => Err(Error::refused("the index was changed in the meantime", "")),
            };
            match self.user_index_locks().replace(&index, &after, Flush::Yes, unchanged) {
                Err(Error::Refused { .. }) if tries < TRIES => tries += 1,
                done => return done,
            }
        }
    }

    fn changed_copy(&self, copy: &PathBuf, before: &[u8], args: &[&str], input: &[u8]) -> Result<Vec<u8>> {
        fs::write(copy, before).map_err(|e| Error::file("write", copy, e))?;
        // Keeps the user's index format; only the file differs.
        self.git.call(args).env("GIT_INDEX_FILE", copy).stdin(input).run()?;
        fs::read(copy).map_err(|e| Error::file("read", copy, e))
    }
}
