//! Commits named files only; other staged or changed files stay.

use crate::error::CommandError;
use ralph_loop_git::Repo;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Committed {
    /// `None` if git ignores every file.
    pub commit: Option<String>,
    pub ignored: Vec<PathBuf>,
}

/// Fails during a merge or rebase, when git can't commit single files.
pub fn refuse_half_done(repo: &Repo) -> Result<(), CommandError> {
    let under_way = [
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
    ];
    match under_way.into_iter().find(|(name, _)| repo.git_dir.join(name).exists()) {
        Some((_, what)) => {
            Err(CommandError::usage(format!("{what} is in progress in `{}`", repo.top.display()))
                .hint("finish or abort it, then run `ralph archive`"))
        }
        None => Ok(()),
    }
}

pub fn commit(repo: &Repo, paths: &[PathBuf], message: &str) -> Result<Committed, CommandError> {
    let git = repo.git();
    let from = |error: ralph_loop_git::GitError| CommandError::from(ralph_loop_git::Error::from(error));
    let (ignored, kept): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.iter().cloned().partition(|path| is_ignored(repo, path));
    if kept.is_empty() {
        return Ok(Committed { commit: None, ignored });
    }
    let literal: Vec<String> = kept.iter().map(|path| format!(":(top,literal){}", path.display())).collect();
    let with_paths = |args: &[&str]| -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).chain(["--".to_owned()]).chain(literal.clone()).collect()
    };
    git.call(with_paths(&["add"])).run().map_err(from)?;
    let who = repo.identity(None, None);
    git.call(with_paths(&["commit", "--quiet", "--only", "-m", message]))
        .env("GIT_AUTHOR_NAME", &who.name)
        .env("GIT_AUTHOR_EMAIL", &who.email)
        .env("GIT_COMMITTER_NAME", &who.name)
        .env("GIT_COMMITTER_EMAIL", &who.email)
        .run()
        .map_err(from)?;
    let head = git.call(["rev-parse", "HEAD"]).run().map_err(from)?.text().trim().to_owned();
    Ok(Committed { commit: Some(head), ignored })
}

fn is_ignored(repo: &Repo, path: &Path) -> bool {
    let args = ["check-ignore".as_ref(), "-q".as_ref(), "--".as_ref(), path.as_os_str()];
    repo.git().call(args).accept(&[1]).run().is_ok_and(|output| output.code == 0)
}
