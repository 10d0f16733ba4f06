//! Git's folder in a sandbox.
//!
//! Git's configuration, hooks and attributes can make the *user's* git run programs, so those are read-only whatever
//! else is allowed, and the folder is a separate mount: a mount can't be renamed, so no other folder can replace it.

use crate::local::isolation::GitAccess;
use ralph_loop_domain::ports::SandboxError;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::fs;
use std::path::{Path, PathBuf};

/// Mounts over the workspace, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::local::isolation) struct GitMounts {
    /// Path and whether it is writable.
    pub(in crate::local::isolation) mounts: Vec<(PathBuf, bool)>,
    /// Files that must not exist after a command, as they didn't before: each would redirect git's configuration.
    pub(in crate::local::isolation) unwanted: Vec<PathBuf>,
}

/// Parts of git's folder that only the user may change.
const PROTECTED: [&str; 5] = ["hooks", "config", "config.worktree", "info", "modules"];

/// More than `HEAD` or `gitdir` holds.
const TEXT_MAX: u64 = 64 * 1024;

/// The mounts for the workspace `root`. An earlier command may have replaced one of git's folders by a link, which a
/// mount would follow, so anything but a file or folder at its own path is left out.
pub(in crate::local::isolation) fn mounts(root: &Path, access: GitAccess) -> GitMounts {
    let dot = root.join(".git");
    restore_rights(root);
    let Ok(kind) = fs::symlink_metadata(&dot) else { return GitMounts::default() };
    let mut git = GitMounts::default();
    if kind.is_dir() {
        let Ok(folder) = SafeDir::open(&dot) else { return git };
        // Creates missing folders, since a missing one can't be protected. Removes anything else there.
        for name in ["hooks", "info"] {
            if folder.create_folder(name).is_err() && folder.remove(name).is_ok() {
                folder.create_folder(name).ok();
            }
        }
        git.mounts.push((dot.clone(), true));
        git.protect(&folder);
        git.unwanted = ["commondir", "config.worktree"]
            .into_iter()
            .filter(|name| folder.facts(name).is_err())
            .map(|name| dot.join(name))
            .collect();
    } else if kind.is_file() {
        git.mounts.push((dot.clone(), false));
        if let Some((own, common)) = worktree(root) {
            git.worktree(&own, &common, access);
        }
    }
    git
}

impl GitMounts {
    /// Mounts `path` below `folder`, if it is a file or folder and no link leads there.
    fn add(&mut self, folder: &SafeDir, path: impl AsRef<Path>, writable: bool) {
        let path = path.as_ref();
        if folder.facts(path).is_ok_and(|facts| matches!(facts.kind, Kind::File | Kind::Folder)) {
            self.mounts.push((folder.path().join(path), writable));
        }
    }

    fn protect(&mut self, folder: &SafeDir) {
        for name in PROTECTED {
            self.add(folder, name, false);
        }
    }

    fn worktree(&mut self, own: &SafeDir, common: &SafeDir, access: GitAccess) {
        self.mounts.push((common.path().to_owned(), false));
        if access == GitAccess::ReadOnly {
            return;
        }
        self.add(common, "objects", true);
        self.add(common, "objects/info", false);
        self.mounts.push((own.path().to_owned(), true));
        for name in ["commondir", "gitdir", "config.worktree"] {
            self.add(own, name, false);
        }
        // Only the folder of the run's branch: git creates a lock next to the ref and then renames that.
        let head = own.read_text("HEAD", Links::Refused, TEXT_MAX).unwrap_or_default();
        let Some(branch) = head.trim().strip_prefix("ref: refs/heads/") else { return };
        for base in ["refs/heads", "logs/refs/heads"] {
            let branch = Path::new(base).join(branch);
            if let Some(folder) = branch.parent().filter(|folder| common.create_folder(folder).is_ok()) {
                self.add(common, folder, true);
            }
        }
    }
}

pub(in crate::local::isolation) fn own_objects(root: &Path) -> Option<PathBuf> {
    let facts = SafeDir::open(root).and_then(|root| root.facts(".git/objects")).ok()?;
    (facts.kind == Kind::Folder).then(|| root.join(".git/objects"))
}

/// Whether the git folder of `root` has a regular `alternates` file, and so borrows objects.
pub(in crate::local::isolation) fn borrows(root: &Path) -> bool {
    let file = SafeDir::open(root.join(".git")).and_then(|dot| dot.facts("objects/info/alternates"));
    file.is_ok_and(|facts| facts.kind == Kind::File)
}

/// The parts of git's folder in a sandbox that has the workspace `root` mounted, and whether they are writable:
/// nothing, or for an agent that commits what a commit needs.
pub fn git_mounts(root: &Path, access: GitAccess) -> Vec<(PathBuf, bool)> {
    match access {
        GitAccess::ReadOnly => {
            mounts(root, access).mounts.into_iter().map(|(path, _)| (path, false)).collect()
        }
        GitAccess::Commit => mounts(root, access).mounts,
    }
}

/// Removes what a command has put into the git folder of `root` to redirect it. Ours never has such files.
pub fn tidy_git(root: &Path) -> Result<(), SandboxError> {
    let dot = root.join(".git");
    restore_rights(root);
    if dot.symlink_metadata().is_ok_and(|kind| kind.is_dir()) {
        clean(&["commondir", "config.worktree"].map(|name| dot.join(name)))?;
    }
    Ok(())
}

/// Restores the owner's permissions for the folders that the engine writes in. A command may have removed them, by
/// mistake or to end the run; a failure shows later, when the folder is used.
pub(in crate::local::isolation) fn restore_rights(root: &Path) {
    ralph_loop_safe_fs::restore_owner(root).ok();
    ralph_loop_safe_fs::restore_owner(root.join(".git")).ok();
    ralph_loop_safe_fs::restore_owner_below(root.join(".ralph")).ok();
}

/// A worktree's git folder and the one it shares. The folder must name the worktree in turn; otherwise a command has
/// made `.git` name another repo.
fn worktree(root: &Path) -> Option<(SafeDir, SafeDir)> {
    let text = SafeDir::open(root).ok()?.read_text(".git", Links::Refused, TEXT_MAX).ok()?;
    let own = root.join(text.trim().strip_prefix("gitdir: ")?).canonicalize().ok()?;
    let own = SafeDir::open(own).ok()?;
    let common = match own.read_text("commondir", Links::Refused, TEXT_MAX) {
        Ok(text) => own.path().join(text.trim()).canonicalize().ok()?,
        Err(_) => own.path().to_owned(),
    };
    if common != own.path() {
        let back = own.read_text("gitdir", Links::Refused, TEXT_MAX).ok()?;
        let back = own.path().join(back.trim());
        let same =
            |a: &Path, b: &Path| a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b));
        if !same(back.parent()?, root) {
            return None;
        }
    }
    Some((own, SafeDir::open(common).ok()?))
}

/// Removes what a command has put into git's folder to redirect it, whatever the folder's permissions. The next git
/// would trust leftovers, so failing to remove one is an error.
pub(in crate::local::isolation) fn clean(unwanted: &[PathBuf]) -> Result<(), SandboxError> {
    for path in unwanted {
        let Some(folder) = path.parent() else { continue };
        let removed =
            ralph_loop_safe_fs::restore_owner(folder).and_then(|()| ralph_loop_safe_fs::remove_tree(path));
        // If the folder is gone, so is its content.
        if let Err(error) = removed
            && path.symlink_metadata().is_ok()
        {
            return Err(SandboxError::Broken(format!(
                "the command left `{}`, which would redirect git, and it cannot be removed: {error}",
                path.display()
            )));
        }
    }
    Ok(())
}
