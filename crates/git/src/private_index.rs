//! An index of our own, for a tree that is put together and written.

use crate::command::{Git, GitCall};
use crate::error::{Error, Result};
use crate::repo::Repo;
use ralph_domain::id::RunId;
use std::path::{Path, PathBuf};

/// An index that only this process knows.
pub(crate) struct PrivateIndex(PathBuf);

impl PrivateIndex {
    pub(crate) fn new(repo: &Repo, run: &RunId) -> Result<Self> {
        let folder = repo.run_folder(run);
        std::fs::create_dir_all(&folder).map_err(|e| Error::file("create", &folder, e))?;
        let path = folder.join(format!("private-index-{}", std::process::id()));
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
}

impl Drop for PrivateIndex {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
