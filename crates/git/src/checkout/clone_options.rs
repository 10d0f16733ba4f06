//! How much of a repo a clone brings: only its last commits, or only some folders.

use crate::error::{Error, Result};
use crate::process::command::Git;

/// How much of a repo a clone brings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CloneDepth {
    /// How many commits of the history, if not all.
    pub depth: Option<u32>,
    /// Only these folders, and the files in the folders above them. Empty: all.
    pub sparse: Vec<String>,
    /// The branch to fetch, if not the default: a short history has one branch.
    pub base: Option<String>,
}

impl CloneDepth {
    pub(crate) fn is_whole(&self) -> bool {
        self.depth.is_none() && self.sparse.is_empty()
    }

    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut args = Vec::new();
        if let Some(depth) = self.depth {
            args.extend(["--depth".to_owned(), depth.max(1).to_string()]);
            args.extend(self.base.iter().map(|base| format!("--branch={base}")));
        }
        if !self.sparse.is_empty() {
            // A server that can't filter sends all files; git warns and continues.
            args.extend(["--sparse", "--filter=blob:none"].map(str::to_owned));
        }
        args
    }
}

/// A folder as `git sparse-checkout` takes it; an error if it isn't a valid one.
pub fn sparse_folder(text: &str) -> Result<String> {
    let folder = text.trim_start_matches("./").trim_matches('/');
    let odd = folder.is_empty()
        || text.starts_with(['/', '-', '!'])
        || folder.split('/').any(|part| matches!(part, "" | "." | ".." | ".git"))
        || folder.contains(['*', '?', '[', '\\', '\n', '\0', '"']);
    match odd {
        true => Err(Error::refused(
            format!("`{text}` isn't a folder that a sparse clone can contain"),
            "name folders below the top of the repo, without patterns, for example `packages/api`",
        )),
        false => Ok(folder.to_owned()),
    }
}

pub(crate) fn limit(git: &Git, folders: &[String]) -> crate::process::command::GitCall {
    let head = ["sparse-checkout", "set", "--cone", "--no-sparse-index", "--"].map(str::to_owned);
    git.call(head.into_iter().chain(folders.iter().cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_folders_must_be_plain_and_inside_the_repo() {
        for (text, folder) in [("a/b", "a/b"), ("./a/", "a"), ("über uns", "über uns")] {
            assert_eq!(sparse_folder(text).unwrap(), folder);
        }
        for text in ["", "/", "/etc", "../x", "a/../b", "-x", "*.rs", "a//b", ".git", "!a"] {
            let refused = sparse_folder(text).unwrap_err().to_string();
            assert!(refused.contains("isn't a folder that a sparse clone can contain"), "{text}: {refused}");
        }
    }
}
