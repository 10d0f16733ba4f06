//! A linked worktree for a run: whole, or recognised as half-made and made again.

use crate::checkout::branch::{create_branch, restore_branch};
use crate::checkout::clone::{rediscover, refuse_used, same_folder};
use crate::error::{Error, Result};
use crate::process::running::{self, pause};
use crate::repo::Repo;
use nix::fcntl::{Flock, FlockArg};
use ralph_loop_protocol::id::RunId;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Times that others may be in the way.
const TRIES: u32 = 40;
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
    Ok((add(repo, path, &branch)?, branch))
}

/// Makes the worktree of a run again whose folder was removed, on its own branch, with all that was recorded.
pub fn remake_worktree(repo: &Repo, run: &RunId, path: &Path, branch: &str) -> Result<Repo> {
    remove_worktree(repo, path)?;
    restore_branch(&repo.git(), run, branch)?;
    add(repo, path, branch)
}

/// Lets git add the worktree. Git trips over worktrees that are being made or were left half-made, so runs take turns, and a
/// user's own `git worktree add` in the same instant is waited for.
fn add(repo: &Repo, path: &Path, branch: &str) -> Result<Repo> {
    let mut tries = 0;
    loop {
        let turn = take_turn(repo)?;
        remove_half_made(repo);
        let head = ["worktree", "add", "-q", "--"].map(AsRef::as_ref);
        match repo.git().call(head.into_iter().chain([path.as_os_str(), branch.as_ref()])).run() {
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
    crate::checkout::submodules::bring(repo, &made.git(), &made.head, (&made.git_dir, path))?;
    let mark = made.git_dir.join(READY);
    fs::write(&mark, "").map_err(|e| Error::file("write", &mark, e))?;
    Ok(made)
}

/// Held while this process adds a worktree; free again when it is dropped or the process dies.
fn take_turn(repo: &Repo) -> Result<Flock<File>> {
    let path = repo.common_dir.join("ralph/worktrees.turn");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|e| Error::file("open", &path, e))?;
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| Error::file("lock", &path, errno.into()))
}

/// What a killed run left of a worktree stops git from adding any other. Whoever has the turn knows that nobody is at it.
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

/// Whether a name is the id of a run: its start in UTC and four letters.
fn is_run(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    matches!(parts[..], [day, time, rest] if digits(day, 8) && digits(time, 6) && rest.len() == 4)
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
