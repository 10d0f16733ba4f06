//! Creates the branch of a run under a free name, and recognizes it after a kill.

use crate::error::{Error, Result};
use crate::locks::lock_file::LockFiles;
use crate::objects::refs::Refs;
use crate::process::command::UserGit;
use crate::repo::{RefFormat, Repo};
use crate::snapshot::watch::stat_of;
use ralph_loop_protocol::id::RunId;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

const TRIES: u32 = 50;

fn branches(repo: &Repo) -> Result<BTreeSet<String>> {
    let output = repo.git().call(["for-each-ref", "--format=%(refname)", "refs/heads/"]).run()?;
    Ok(output.text().lines().filter_map(|l| l.strip_prefix("refs/heads/")).map(str::to_owned).collect())
}

/// The branches of a repo and of its remote, those with the latest commits first.
pub fn branch_names(repo: &Repo, most: usize) -> Result<Vec<String>> {
    let count = format!("--count={}", most.saturating_mul(2));
    let args = ["for-each-ref", "--sort=-committerdate", "--format=%(refname)", &count];
    let output = repo.git().call(args.into_iter().chain(["refs/heads/", "refs/remotes/origin/"])).run()?;
    let mut names: Vec<String> = Vec::new();
    for line in output.text().lines() {
        let name = line.strip_prefix("refs/heads/").or_else(|| line.strip_prefix("refs/remotes/origin/"));
        if let Some(name) = name.filter(|name| *name != "HEAD" && !names.iter().any(|known| known == name)) {
            names.push(name.to_owned());
        }
    }
    names.truncate(most);
    Ok(names)
}

/// A free branch name like `base`: a rerun gets `-v2`, `-v3`, …; if a branch blocks the path, `-` replaces the last
/// `/`.
pub fn free_branch_name(repo: &Repo, base: &str) -> Result<String> {
    let taken = branches(repo)?;
    let mut base = base.to_owned();
    let blocked = |name: &str| name.match_indices('/').any(|(at, _)| taken.contains(&name[..at]));
    while blocked(&base) {
        match base.rfind('/') {
            Some(at) => base.replace_range(at..=at, "-"),
            None => break,
        }
    }
    // A branch below the name blocks it as well: with `a/b`, git can't create `a`.
    let is_taken =
        |name: &str| taken.contains(name) || taken.iter().any(|t| t.starts_with(&format!("{name}/")));
    if !is_taken(&base) {
        return Ok(base);
    }
    let mut version = 2_u32;
    loop {
        let name = format!("{base}-v{version}");
        if !is_taken(&name) {
            return Ok(name);
        }
        version += 1;
    }
}

/// Creates a branch like `base` at `commit` and returns its name. If another process takes the name first, the next
/// one is tried. Repeated after a kill, it finds the branch that this run had made.
pub fn create_branch(repo: &Repo, run: &RunId, base: &str, commit: &str) -> Result<String> {
    if let Some(made) = made_before(repo, run, base)? {
        return Ok(made);
    }
    let mut tries = 0;
    loop {
        let name = free_branch_name(repo, base)?;
        match make(repo, run, &name, commit) {
            // Taken since: the name itself, or one that blocks it.
            Err(Error::RefMoved { .. } | Error::File { .. }) if tries < TRIES => tries += 1,
            Err(error) => return Err(error),
            Ok(()) => return Ok(name),
        }
    }
}

/// Creates exactly this branch, or finds that this run had made it.
pub fn create_exactly(repo: &Repo, run: &RunId, name: &str, commit: &str) -> Result<()> {
    match make(repo, run, name, commit) {
        Err(Error::RefMoved { .. }) => {
            match locks(repo, run).is_made(&repo.common_dir.join("refs/heads").join(name)) {
                true => Ok(()),
                false => Err(exists_already(repo, name)),
            }
        }
        done => done,
    }
}

fn make(repo: &Repo, run: &RunId, name: &str, commit: &str) -> Result<()> {
    let refs = Refs::new(repo, &folder(repo, run));
    let full = format!("refs/heads/{name}");
    if repo.ref_format == RefFormat::Other {
        return refs.update(&full, commit, None);
    }
    refs.create(&full, commit)?;
    begin_log(repo, name, commit);
    Ok(())
}

/// Creates the reflog of a new branch if git keeps logs here. Failing to write it loses nothing else.
fn begin_log(repo: &Repo, name: &str, commit: &str) {
    let log = repo.common_dir.join("logs/refs/heads").join(name);
    if !repo.git_dir.join("logs/HEAD").is_file() || log.exists() {
        return;
    }
    let (who, at) = (repo.identity(None, None), time_of(&repo.common_dir.join("refs/heads").join(name)));
    let zero = "0".repeat(commit.len());
    let line =
        format!("{zero} {commit} {} <{}> {at} +0000\tbranch: Created from HEAD\n", who.name, who.email);
    if let Some(folder) = log.parent()
        && std::fs::create_dir_all(folder).is_ok()
    {
        let _ = std::fs::write(&log, line);
    }
}

fn time_of(path: &std::path::Path) -> i64 {
    stat_of(path).map_or(0, |stat| i64::from(stat.mtime.0))
}

fn made_before(repo: &Repo, run: &RunId, base: &str) -> Result<Option<String>> {
    let locks = locks(repo, run);
    if repo.ref_format == RefFormat::Other || !locks.has_made_any() {
        return Ok(None);
    }
    let stem = base.replace('/', "-");
    let found = branches(repo)?.into_iter().find(|name| {
        name.replace('/', "-").starts_with(&stem)
            && locks.is_made(&repo.common_dir.join("refs/heads").join(name))
    });
    Ok(found)
}

/// Removes a branch that this run made, unless it was moved since.
pub fn remove_branch(repo: &Repo, run: &RunId, name: &str) {
    let full = repo.common_dir.join("refs/heads").join(name);
    if repo.ref_format == RefFormat::Other || !locks(repo, run).is_made(&full) {
        return;
    }
    let full = format!("refs/heads/{name}");
    if let Ok(Some(at)) = Refs::new(repo, &folder(repo, run)).read(&full) {
        // A leftover branch does no harm.
        let _ = repo.git().call(["update-ref", "-d", &full, &at]).run();
    }
}

/// Recreates a run's deleted branch at the last recorded work, else at the start.
pub fn restore_branch(git: &UserGit, run: &RunId, name: &str) -> Result<()> {
    let branch = format!("refs/heads/{name}");
    let commit_of = |rev: &str| -> Result<Option<String>> {
        let found = git
            .call(["rev-parse", "--quiet", "--verify", "--end-of-options", rev])
            .accept(&[1, 128])
            .run()?;
        Ok(Some(found.text()).filter(|id| !id.is_empty()))
    };
    if commit_of(&branch)?.is_some() {
        return Ok(());
    }
    for recorded in [format!("refs/ralph/{run}/work^{{commit}}"), format!("refs/ralph/{run}/start^1")] {
        if let Some(commit) = commit_of(&recorded)? {
            git.call(["update-ref", &branch, &commit, ""]).run()?;
            return Ok(());
        }
    }
    Ok(())
}

fn folder(repo: &Repo, run: &RunId) -> PathBuf {
    repo.run_folder(run)
}

fn locks(repo: &Repo, run: &RunId) -> LockFiles {
    LockFiles::new(folder(repo, run))
}

fn exists_already(repo: &Repo, name: &str) -> Error {
    let free = free_branch_name(repo, name).unwrap_or_else(|_| format!("{name}-v2"));
    Error::refused(
        format!("the branch `{name}` exists already"),
        format!("choose another name, e.g. `{free}`"),
    )
}

/// Switches the user's folder to the new branch `name` at `HEAD`, without touching files, index or other branches.
/// Repeated after a kill, it finishes the switch.
pub fn create_branch_in_place(repo: &Repo, run: &RunId, name: &str) -> Result<Repo> {
    create_exactly(repo, run, name, &repo.head)?;
    switch_in_place(repo, run, name)
}

/// Points `HEAD` at a branch that is at the same commit.
pub fn switch_in_place(repo: &Repo, run: &RunId, name: &str) -> Result<Repo> {
    if repo.branch.as_deref() != Some(name) {
        Refs::new(repo, &folder(repo, run)).point_head_at(name)?;
        note_switch(repo, name);
    }
    Repo::discover(&repo.vars, &repo.top)
        .map_err(|e| Error::refused(e.to_string(), e.hint().unwrap_or_default()))
}

/// Returns to the branch that was checked out before a run switched to `own`, if that branch is still at `head`,
/// `own` is checked out and nothing is staged. Touches no file. Returns its name.
pub fn leave_branch(repo: &Repo, run: &RunId, own: &str, head: &str) -> Result<Option<String>> {
    let git = repo.git();
    if repo.branch.as_deref() != Some(own)
        || git.call(["diff", "--cached", "--quiet"]).accept(&[1]).run()?.code != 0
    {
        return Ok(None);
    }
    let before = git.call(["rev-parse", "--abbrev-ref", "@{-1}"]).accept(&[128]).run()?;
    let name = before.text().trim().to_owned();
    let tip = Refs::new(repo, &folder(repo, run)).read(&format!("refs/heads/{name}"))?;
    if before.code != 0 || name.is_empty() || name == own || tip.as_deref() != Some(head) {
        return Ok(None);
    }
    let now = switch_in_place(repo, run, &name)?;
    now.git().call(["read-tree", "HEAD"]).run()?;
    now.git().call(["update-index", "-q", "--refresh"]).accept(&[1]).run()?;
    Ok(Some(name))
}

/// The line in `HEAD`'s log by which `git switch -` finds the way back. Failing to write it loses nothing else.
fn note_switch(repo: &Repo, name: &str) {
    if repo.ref_format == RefFormat::Other {
        return;
    }
    let who = repo.identity(None, None);
    let at = time_of(&repo.git_dir.join("HEAD"));
    let from = repo.branch.as_deref().unwrap_or(&repo.head);
    let (head, who, mail) = (&repo.head, &who.name, &who.email);
    let line = format!("{head} {head} {who} <{mail}> {at} +0000\tcheckout: moving from {from} to {name}\n");
    if let Ok(mut log) = OpenOptions::new().append(true).open(repo.git_dir.join("logs/HEAD")) {
        let _ = log.write_all(line.as_bytes());
    }
}
