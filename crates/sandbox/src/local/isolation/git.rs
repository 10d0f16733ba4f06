//! Git's folder in a sandbox.
//!
//! Whoever writes git's configuration, hooks or attributes makes the *user's* git run programs, so those are read-only
//! whatever else is allowed, and the folder is a mount of its own: a mount cannot be renamed, so no other folder takes its place.

use super::GitAccess;
use std::fs;
use std::path::{Path, PathBuf};

/// Mounts over the workspace, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitMounts {
    /// Path and whether it can be written.
    pub(super) mounts: Vec<(PathBuf, bool)>,
    /// Files that must not exist after a command, as they did not before: each would redirect git's configuration.
    pub(super) unwanted: Vec<PathBuf>,
}

/// What of git's own folder only the user may change.
const PROTECTED: [&str; 5] = ["hooks", "config", "config.worktree", "info", "modules"];

/// What to mount for the workspace `root`.
pub(super) fn mounts(root: &Path, access: GitAccess) -> GitMounts {
    let dot = root.join(".git");
    let Ok(kind) = fs::symlink_metadata(&dot) else { return GitMounts::default() };
    let mut git = GitMounts::default();
    if kind.is_dir() {
        // Missing folders are made: what does not exist cannot be protected.
        for name in ["hooks", "info"] {
            fs::create_dir_all(dot.join(name)).ok();
        }
        git.add(&dot, true);
        git.protect(&dot);
        git.unwanted = ["commondir", "config.worktree"]
            .map(|n| dot.join(n))
            .into_iter()
            .filter(|p| !p.exists())
            .collect();
    } else if kind.is_file() {
        git.add(&dot, false);
        if let Some((own, common)) = worktree(&dot) {
            git.worktree(&own, &common, access);
        }
    }
    git
}

impl GitMounts {
    fn add(&mut self, path: &Path, writable: bool) {
        if path.exists() {
            self.mounts.push((path.to_owned(), writable));
        }
    }

    fn protect(&mut self, folder: &Path) {
        for name in PROTECTED {
            self.add(&folder.join(name), false);
        }
    }

    fn worktree(&mut self, own: &Path, common: &Path, access: GitAccess) {
        self.add(common, false);
        if access == GitAccess::ReadOnly {
            return;
        }
        self.add(&common.join("objects"), true);
        self.add(&common.join("objects/info"), false);
        self.add(own, true);
        for name in ["commondir", "gitdir", "config.worktree"] {
            self.add(&own.join(name), false);
        }
        // Only where the run's branch stands: the folder of its name. Git makes a lock beside it and then renames that.
        let head = fs::read_to_string(own.join("HEAD")).unwrap_or_default();
        let Some(branch) = head.trim().strip_prefix("ref: ") else { return };
        if branch.split('/').any(|part| part == ".." || part.is_empty()) {
            return;
        }
        for base in [common.to_owned(), common.join("logs")] {
            if let Some(folder) = base.join(branch).parent() {
                fs::create_dir_all(folder).ok();
                self.add(folder, true);
            }
        }
    }
}

/// What of git's folder stands in a sandbox that has the workspace `root` mounted, and whether it can be written: nothing, or
/// for an agent that commits what a commit needs.
pub fn git_mounts(root: &Path, access: GitAccess) -> Vec<(PathBuf, bool)> {
    match access {
        GitAccess::ReadOnly => {
            mounts(root, access).mounts.into_iter().map(|(path, _)| (path, false)).collect()
        }
        GitAccess::Commit => mounts(root, access).mounts,
    }
}

/// Takes away what a command has put into the git folder of `root` to redirect it. Ours never has such files.
pub fn tidy_git(root: &Path) {
    let dot = root.join(".git");
    if dot.symlink_metadata().is_ok_and(|kind| kind.is_dir()) {
        clean(&["commondir", "config.worktree"].map(|name| dot.join(name)));
    }
}

/// A worktree's own git folder and the one it shares.
fn worktree(dot: &Path) -> Option<(PathBuf, PathBuf)> {
    let text = fs::read_to_string(dot).ok()?;
    let own = Path::new(text.trim().strip_prefix("gitdir: ")?);
    let own = dot.parent()?.join(own).canonicalize().ok()?;
    let common = match fs::read_to_string(own.join("commondir")) {
        Ok(text) => own.join(text.trim()).canonicalize().ok()?,
        Err(_) => own.clone(),
    };
    Some((own, common))
}

/// Takes away what a command has put into git's folder to redirect it.
pub(super) fn clean(unwanted: &[PathBuf]) {
    for path in unwanted {
        if fs::remove_file(path).is_err() && path.is_dir() {
            fs::remove_dir_all(path).ok();
        }
    }
}
