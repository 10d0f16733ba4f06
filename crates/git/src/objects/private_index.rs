//! A private index for building and writing a tree.

use crate::error::{Error, Result};
use crate::process::command::{Git, GitCall};
use crate::repo::Repo;
use crate::snapshot::entry::{TreeEntry, index_line};
use ralph_loop_protocol::id::RunId;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Gives each index of this process its own file.
static MADE: AtomicU32 = AtomicU32::new(0);

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

    pub(crate) fn call<A: AsRef<std::ffi::OsStr>>(
        &self,
        git: &Git,
        args: impl IntoIterator<Item = A>,
    ) -> GitCall {
        git.call(args).index(&self.0)
    }
}

pub(crate) fn write_tree(
    repo: &Repo,
    run: &RunId,
    tree: &str,
    writes: &[(Vec<u8>, Option<TreeEntry>)],
) -> Result<String> {
    let (git, index) = (repo.git(), PrivateIndex::new(repo, run)?);
    index.call(&git, ["read-tree", tree]).run()?;
    let call = index.call(&git, ["update-index", "--replace", "-z", "--index-info"]);
    call.stdin(index_info(writes, repo)).run()?;
    Ok(index.call(&git, ["write-tree"]).run()?.text())
}

/// Input for `git update-index --index-info`; removals come first, as a file may replace a folder.
pub(crate) fn index_info(writes: &[(Vec<u8>, Option<TreeEntry>)], repo: &Repo) -> Vec<u8> {
    let zero = "0".repeat(repo.object_format.len() * 2);
    let gone = writes.iter().filter(|(_, entry)| entry.is_none());
    let gone = gone.flat_map(|(path, _)| [format!("0 {zero}\t").as_bytes(), path, b"\0"].concat());
    let new = writes.iter().filter_map(|(path, entry)| Some((path.as_slice(), entry.as_ref()?)));
    gone.chain(new.flat_map(index_line)).collect()
}

impl Drop for PrivateIndex {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
