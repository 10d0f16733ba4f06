//! The repo that a run is about, where that is not the one of the folder it was asked for in: the one that a task names, or the
//! one of `--clone`. A small checkout of it takes the folder's place: what is read there is a repo's word, not the user's.

use super::{place, task};
use crate::environment::Environment;
use crate::error::AppError;
use crate::request::{PlaceRequest, RunRequest, TaskInput};
use crate::{find, handover, repo_file, task_source};
use ralph_domain::id::Digest;
use ralph_domain::outcome::ErrorCode;
use ralph_git::{Extent, Repo};
use ralph_journal::layout::RalphDir;
use std::path::{Path, PathBuf};

/// The branch of the checkout.
const BRANCH: &str = "ralph-source";

/// The request as it is run: in a checkout of the repo that it is about. One that is about the folder's own stays as it is.
pub(crate) fn settle(env: &Environment, request: &RunRequest) -> Result<RunRequest, AppError> {
    if request.asked_in.is_some() {
        return Ok(request.clone());
    }
    let top = find::top(&request.folder);
    let here = Repo::discover(env.vars(), &top).ok();
    let (from, base, by_task) = match &request.place {
        PlaceRequest::Clone { from, .. } if here.is_none() || !has_task(request) => {
            (from.clone(), None, None)
        }
        PlaceRequest::Clone { .. } => return Ok(request.clone()),
        PlaceRequest::InPlace | PlaceRequest::Worktree => match named(env, request, &top, here.as_ref())? {
            Some(named) => named,
            None => return Ok(request.clone()),
        },
    };
    let from = place::from_here(env, &from);
    let folder = checkout(env, &from, base.as_deref())?;
    let mut settled = request.clone();
    settled.task = brought(env, request, &folder)?;
    settled.asked_in = Some(request.folder.clone());
    settled.named_by = by_task;
    if !matches!(request.place, PlaceRequest::Clone { .. }) {
        settled.place = PlaceRequest::Clone { from, depth: None, sparse: Vec::new() };
    }
    settled.folder = folder;
    Ok(settled)
}

/// Address, branch to start from, and the task file that names them.
type Named = (String, Option<String>, Option<String>);

/// The repo that the task of the folder names; none where it is the folder's own.
fn named(
    env: &Environment,
    request: &RunRequest,
    top: &Path,
    here: Option<&Repo>,
) -> Result<Option<Named>, AppError> {
    if !matches!(request.task, TaskInput::Found | TaskInput::File(_)) || !has_task(request) {
        return Ok(None);
    }
    let chosen = task::choose(env, &request.folder, top, request.file(), request.ticket.as_deref());
    let chosen = match chosen {
        Ok(chosen) => chosen,
        // In a repo, what is wrong with the task is told with all the rest.
        Err(_) if here.is_some() => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(url) = chosen.repo_url.clone() else { return Ok(None) };
    if here.is_some_and(|repo| is_of(repo, &url)) {
        return Ok(None);
    }
    Ok(Some((url, chosen.base.clone(), Some(chosen.task.source))))
}

/// Whether the folder itself has what is to be done.
fn has_task(request: &RunRequest) -> bool {
    match &request.task {
        TaskInput::Found => !task_source::candidates(&request.folder).is_empty(),
        TaskInput::File(file) => request.folder.join(file).exists(),
        TaskInput::Text(_) | TaskInput::Value(_) | TaskInput::Issue(_) => true,
    }
}

/// Whether an address is the repo's own, or that of one of its remotes.
fn is_of(repo: &Repo, url: &str) -> bool {
    let wanted = plain(url);
    let remotes = repo.git().call(["remote"]).run().map(|output| output.text()).unwrap_or_default();
    let urls = remotes.lines().filter_map(|name| handover::remote_url(repo, name));
    urls.map(|url| plain(&url)).any(|url| url == wanted) || plain(&repo.top.display().to_string()) == wanted
}

/// An address without what differs between two ways to write it.
fn plain(url: &str) -> String {
    if let Ok(path) = Path::new(url.strip_prefix("file://").unwrap_or(url)).canonicalize() {
        return path.display().to_string();
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_lowercase();
    // `git@host:owner/repo` is `host/owner/repo`.
    let host = if url.contains("://") { host } else { host.replacen(':', "/", 1) };
    format!("{host}{path}").trim_end_matches('/').trim_end_matches(".git").to_owned()
}

/// The checkout, up to date.
fn checkout(env: &Environment, from: &str, base: Option<&str>) -> Result<PathBuf, AppError> {
    let key = format!("{}\0{}", ralph_git::place::shown(from), base.unwrap_or_default());
    let name = Digest::of(key.as_bytes()).short().to_owned();
    let sources = env.state_home()?.path().join("sources");
    let folder = sources.join(&name);
    let extent = Extent { depth: Some(1), sparse: Vec::new(), base: base.map(str::to_owned) };
    let source = handover::clone_source(env, from);
    let failed = |error: ralph_git::Error| AppError::from(error).code(ErrorCode::CloneFailed);
    // All runs of one address share it.
    let _lock = ralph_git::WaitLock::take(&sources.join(format!("{name}.lock"))).map_err(failed)?;
    let known = folder.is_dir();
    let made = ralph_git::place::clone_part(env.vars(), &source, &folder, BRANCH, &extent).map_err(failed)?;
    if known {
        ralph_git::place::refresh_clone(&made, &source, base).map_err(failed)?;
    }
    Ok(folder)
}

/// The task as it is found in the checkout. One that lies in the user's own folder is put there, below `.ralph/`.
fn brought(env: &Environment, request: &RunRequest, checkout: &Path) -> Result<TaskInput, AppError> {
    let name = match &request.task {
        TaskInput::Found if has_task(request) => task::find(&request.folder)?,
        TaskInput::File(file) if has_task(request) => file.clone(),
        // Beside the checkout, a path means one in it.
        other => return Ok(other.clone()),
    };
    let path = request.folder.join(&name);
    let text = repo_file::read(&path)
        .map_err(|e| AppError::usage(format!("cannot read the task file `{}`: {e}", path.display())))?;
    let base = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = format!("tasks/{}", Digest::of(&text).short());
    let dir = RalphDir::of(checkout);
    Repo::discover(env.vars(), checkout)?.exclude_ralph_dir()?;
    dir.write(&format!("{folder}/{base}"), &text)?;
    let shown = String::from_utf8_lossy(&text);
    for side in ralph_domain::dialect::detect_text(&base, &shown).side_files() {
        if let Ok(text) = repo_file::read(&path.with_file_name(side)) {
            dir.write(&format!("{folder}/{side}"), &text)?;
        }
    }
    Ok(TaskInput::File(Path::new(".ralph").join(folder).join(base)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repo_has_one_plain_address() {
        for url in [
            "https://github.com/o/r.git",
            "https://me@GitHub.com/o/r/",
            "git@github.com:o/r.git",
            "ssh://git@github.com/o/r",
        ] {
            assert_eq!(plain(url), "github.com/o/r", "{url}");
        }
        assert_ne!(plain("https://github.com/o/r2"), plain("https://github.com/o/r"));
    }
}
