//! An index of our own, for a tree that is put together and written.

use crate::command::{Git, GitCall};
use crate::error::{Error, Result};
use crate::repo::Repo;
use ralph_loop_protocol::id::RunId;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Those that this process has made: each has a file of its own.
static MADE: AtomicU32 = AtomicU32::new(0);

/// An index that only this process knows.
pub(crate) struct PrivateIndex(PathBuf);

impl PrivateIndex {
    pub(crate) fn new(repo: &Repo, run: &RunId) -> Result<Self> {
        let folder = repo.run_folder(run);
        std::fs::create_dir_all(&folder).map_err(|e| Error::file("create", &folder, e))?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("private-index-{}-{number}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn call<A: AsRef<std::ffi::OsStr>>(
        &self,
        git: &Git,
        args: impl IntoIterator<Item = A>,
    ) -> GitCall {
        git.call(args).index(&self.0)
    }

    /// Begins with what another index has; says whether that could be read.
    pub(crate) fn copy_of(&self, index: &Path) -> Result<bool> {
        match std::fs::copy(index, &self.0) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(Error::file("copy", index, e)),
        }
    }

    /// The tree that it stands for; none while files in it conflict.
    pub(crate) fn tree(&self, git: &Git) -> Result<Option<String>> {
        let written = self.call(git, ["write-tree"]).accept(&[1, 128]).run()?;
        Ok((written.code == 0).then(|| written.text()))
    }
}

impl Drop for PrivateIndex {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
