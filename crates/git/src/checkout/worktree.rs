//! A linked worktree for a run; a half-made one is recognized and recreated.

use crate::checkout::branch::{create_branch, restore_branch};
use crate::checkout::clone::{rediscover, refuse_used, same_folder};
use crate::error::{Error, Result};
use crate::filters::Filters;
use crate::process::running::{self, pause};
use crate::repo::Repo;
use nix::fcntl::{Flock, FlockArg};
use ralph_loop_protocol::id::RunId;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// How often another process may be in the way.
const TRIES: u32 = 40;
/// A file in the worktree's git folder that marks it as complete.
const READY: &str = "ralph-ready";

/// Adds a linked worktree at `path` on a new branch like `branch`; returns the branch. `path` belongs to the run: a
/// half-made worktree of an earlier process is removed, and a complete one reused.
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
    Ok((add(repo, path, &branch)?, branch))
}

/// Recreates the run's removed worktree on its branch, with all recorded work.
pub fn remake_worktree(repo: &Repo, run: &RunId, path: &Path, branch: &str) -> Result<Repo> {
    remove_worktree(repo, path)?;
    restore_branch(&repo.user_git(), run, branch)?;
    add(repo, path, branch)
}

/// Lets git add the worktree. Git fails on half-made worktrees, so runs take turns, and wait for a user's `git
/// worktree add`.
fn add(repo: &Repo, path: &Path, branch: &str) -> Result<Repo> {
    let mut tries = 0;
    loop {
        let turn = take_turn(repo)?;
        remove_half_made(repo);
        let head = ["worktree", "add", "-q", "--no-checkout", "--"].map(AsRef::as_ref);
        match repo.user_git().call(head.into_iter().chain([path.as_os_str(), branch.as_ref()])).run() {
            Ok(_) => break,
            Err(error) if tries < TRIES && error.stderr.contains("/worktrees/") => {
                tries += 1;
                remove_worktree(repo, path)?;
                drop(turn);
                pause();
            }
            Err(error) => return Err(error.into()),
        }
    }
    let made = rediscover(&repo.vars, path)?;
    made.remote_git().call(["reset", "-q", "--hard"]).run()?;
    Filters::smudge_checkout(&made, None, &made.settings()?, None)?;
    crate::checkout::submodules::bring(repo, &made.git(), &made.head, (&made.git_dir, path))?;
    let mark = made.git_dir.join(READY);
    fs::write(&mark, "").map_err(|e| Error::file("write", &mark, e))?;
    Ok(made)
}

/// A lock held while this process adds a worktree; released when dropped or when the process dies.
fn take_turn(repo: &Repo) -> Result<Flock<File>> {
    let path = repo.common_dir.join("ralph/worktrees.turn");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|e| Error::file("open", &path, e))?;
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| Error::file("lock", &path, errno.into()))
}

/// Git refuses to add a worktree while a killed run's half-made one exists. The lock shows that no other process is
/// adding it.
fn remove_half_made(repo: &Repo) {
    for entry in fs::read_dir(repo.common_dir.join("worktrees")).into_iter().flatten().flatten() {
        let admin = entry.path();
        let whole = ["commondir", "gitdir", "HEAD"]
            .iter()
            .all(|name| fs::metadata(admin.join(name)).is_ok_and(|meta| meta.len() > 0));
        if !whole && entry.file_name().to_str().is_some_and(is_run) {
            let _ = fs::remove_dir_all(&admin);
        }
    }
}

fn is_run(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    matches!(parts[..], [day, time, rest] if digits(day, 8) && digits(time, 6) && rest.len() == 4)
}

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

/// Removes the worktree at `path` and the repo's record of it. Its branch stays.
pub fn remove_worktree(repo: &Repo, path: &Path) -> Result<()> {
    running::kill_git_in(path);
    match ralph_loop_safe_fs::remove_tree(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::file("remove", path, e)),
        _ => {}
    }
    for admin in known(repo, path) {
        fs::remove_dir_all(&admin).map_err(|e| Error::file("remove", &admin, e))?;
    }
    Ok(())
}

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
