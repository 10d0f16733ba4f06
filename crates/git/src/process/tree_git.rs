//! [`TreeGit`]: git on objects alone, for merges. Without configuration, attributes and files, nothing can make it
//! start a program.

use crate::error::Result;
use crate::objects::files::write_atomically;
use crate::process::command::{Git, GitCall};
use crate::repo::Repo;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// No attribute of a system or a user says how to merge or show files, either.
const NOTHING: &[u8] = b"* -filter -ident -text -eol -working-tree-encoding !merge !diff\n";

#[derive(Debug, Clone)]
pub(crate) struct TreeGit {
    git: Git,
    borrowed: PathBuf,
}

impl TreeGit {
    /// Opens it in `folder`. New objects go to `objects`, which borrows from the repo's; `borrowed` is another object
    /// folder that it reads.
    pub(crate) fn open(repo: &Repo, folder: &Path, objects: PathBuf, borrowed: &Path) -> Result<Self> {
        write_atomically(&folder.join("config"), repo.object_format.bare_config().as_bytes())?;
        write_atomically(&folder.join("info/attributes"), NOTHING)?;
        write_atomically(&folder.join("refs/none"), b"")?;
        write_atomically(&folder.join("HEAD"), b"ref: refs/heads/none\n")?;
        let git = Git::in_repo(&repo.vars, folder, folder).with_objects(objects);
        Ok(Self { git, borrowed: borrowed.to_owned() })
    }

    pub(crate) fn call<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> GitCall {
        let who = [("GIT_AUTHOR_NAME", "Ralph"), ("GIT_AUTHOR_EMAIL", "ralph@localhost")];
        let too = [("GIT_COMMITTER_NAME", "Ralph"), ("GIT_COMMITTER_EMAIL", "ralph@localhost")];
        let call = self.git.call(args).env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.borrowed);
        who.into_iter().chain(too).fold(call, |call, (key, value)| call.env(key, value))
    }
}
