//! A linked worktree for a run: whole, or recognised as half-made and made again.

use crate::branch::create_branch;
use crate::error::{Error, Result};
use crate::folder::{rediscover, refuse_used, same_folder};
use crate::repo::Repo;
use ralph_domain::id::RunId;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file in the worktree's git folder: all files of the worktree are there.
const READY: &str = "ralph-ready";

/// A linked worktree at `path` on a new branch like `branch`; says which one it became. `path` is the run's own place: what
/// an earlier process of this run left there half-made is removed, and a whole one is used again.
pub fn add_worktree(repo: &Repo, run: &RunId, path: &Path, branch: &str) -> Result<(Repo, String)> {
    if let Some(found) = ready(repo, path)? {
        return Ok(found);
    }
    let is_own = path.file_name().is_some_and(|name| name == run.as_str());
    if is_own {
        remove_worktree(repo, path)?;
    } else {
        refuse_used(path)?;
    }
    let branch = create_branch(repo, run, branch, &repo.head)?;
    let head = ["worktree", "add", "-q", "--"].map(AsRef::as_ref);
    repo.git().call(head.into_iter().chain([path.as_os_str(), branch.as_ref()])).run()?;
    let made = rediscover(&repo.vars, path)?;
    let mark = made.git_dir.join(READY);
    fs::write(&mark, "").map_err(|e| Error::file("write", &mark, e))?;
    Ok((made, branch))
}

/// The whole worktree of this repo at `path`, where there is one.
fn ready(repo: &Repo, path: &Path) -> Result<Option<(Repo, String)>> {
    let Ok(found) = Repo::discover(&repo.vars, path) else { return Ok(None) };
    if !same_folder(&found.top, path)
        || !found.is_linked_worktree()
        || found.common_dir != repo.common_dir
        || !found.git_dir.join(READY).is_file()
    {
        return Ok(None);
    }
    let branch = found.branch.clone().ok_or_else(|| {
        Error::refused(format!("the worktree `{}` is on no branch", path.display()), "start a new run")
    })?;
    Ok(Some((found, branch)))
}

/// Removes the worktree at `path` and what the repo knows of it, and nothing else. Its branch stays.
pub fn remove_worktree(repo: &Repo, path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::file("remove", path, e)),
        _ => {}
    }
    for admin in known(repo, path) {
        fs::remove_dir_all(&admin).map_err(|e| Error::file("remove", &admin, e))?;
    }
    Ok(())
}

/// The folders below `.git/worktrees` that belong to `path`.
fn known(repo: &Repo, path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default();
    let all = fs::read_dir(repo.common_dir.join("worktrees")).into_iter().flatten().flatten();
    all.map(|entry| entry.path())
        .filter(|admin| match fs::read_to_string(admin.join("gitdir")) {
            Ok(link) => Path::new(link.trim_end()).parent() == Some(path),
            // Killed before the link was written: git names the folder after the worktree's.
            Err(_) => admin.file_name() == Some(name),
        })
        .collect()
}
