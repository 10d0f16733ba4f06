//! The repo of a run that isn't the folder's: named by the task or by `--clone`. A small checkout replaces
//! the folder; what is read there is untrusted, like any repo.

use super::{place, task};
use crate::config::server_policy;
use crate::config::settings;
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::request::{RunRequest, TaskInput, Workplace};
use crate::start::handover;
use crate::task::task_source;
use crate::trust::consent::{TrustRequest, push_ask};
use crate::trust::repo_file;
use crate::trust::store::TrustStore;
use crate::trust::{Ask, PrivilegeKind, quoted};
use ralph_loop_git::{CloneDepth, Repo};
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::id::Digest;
use ralph_loop_protocol::outcome::ErrorCode;
use ralph_loop_task::config::Publish;
use std::cell::LazyCell;
use std::path::{Path, PathBuf};

/// The checkout's branch.
const BRANCH: &str = "ralph-source";

/// Moves the request to a checkout of the repo it is about, if that isn't the folder's own.
pub(crate) fn settle(env: &Environment, request: &RunRequest) -> Result<RunRequest, AppError> {
    let env = &env.for_run_of(request.asked_by.as_deref());
    if let Workplace::Clone { from, .. } = &request.place {
        server_policy::check_clone(env, from)?;
    }
    if request.asked_in.is_some() {
        return Ok(request.clone());
    }
    let top = find::top(&request.folder);
    let is_repo = || Repo::discover(env.vars(), &top).is_ok();
    let (from, base, by_task) = match &request.place {
        Workplace::Clone { from, .. } if !has_task(request) || !is_repo() => (from.clone(), None, None),
        Workplace::Clone { .. } => return Ok(request.clone()),
        Workplace::InPlace | Workplace::Worktree => match named(env, request, &top)? {
            Some(Named { url, base, by_repo, .. }) => (url, base, by_repo),
            None => return Ok(request.clone()),
        },
    };
    // Nothing connects anywhere before this check.
    if let Some(asked) = asked_for_source(env, request)? {
        asked.settle(env, request.yes)?;
    }
    server_policy::check_clone(env, &from)?;
    let from = place::from_here(env, &from);
    let folder = checkout(env, &from, base.as_deref(), by_task.is_some())?;
    let mut settled = request.clone();
    // A task from here is the user's own, or was allowed above to push there.
    settled.publish_settled = is_file(request) && has_task(request);
    settled.task = brought(env, request, &folder)?;
    settled.asked_in = Some(request.folder.clone());
    (settled.named_by, settled.named_in) = by_task.unzip();
    if !matches!(request.place, Workplace::Clone { .. }) {
        let part = std::mem::take(&mut settled.part);
        settled.place = Workplace::Clone { from, depth: part.depth, sparse: part.sparse };
    }
    settled.folder = folder;
    Ok(settled)
}

/// The environment with the configuration of the request's folder, if that is in no repo.
pub(super) fn with_config_beside_task(env: Environment, request: &RunRequest) -> Environment {
    let Some(folder) = request.asked_in.as_deref().filter(|_| request.asked_by.is_none()) else { return env };
    let top = find::top(folder);
    match Repo::discover(env.vars(), &top) {
        Ok(_) => env,
        Err(_) => env.with_config_beside_task(RalphDir::of(&top).config()),
    }
}

/// Approval needed before fetching the repo that another repo's task names: it is fetched with the user's
/// rights into a sandbox whose commands the task chooses. Connects to nothing.
pub(crate) fn asked_for_source(
    env: &Environment,
    request: &RunRequest,
) -> Result<Option<TrustRequest>, AppError> {
    let env = &env.for_run_of(request.asked_by.as_deref());
    if request.asked_in.is_some() || matches!(request.place, Workplace::Clone { .. }) {
        return Ok(None);
    }
    let top = find::top(&request.folder);
    let Some(named) = named(env, request, &top)? else { return Ok(None) };
    let Some((source, naming)) = named.by_repo else { return Ok(None) };
    let shown = quoted(&ralph_loop_git::checkout::shown(&named.url));
    let text = format!("work on a clone of {shown}, made with your access to it");
    let mut asks = vec![Ask::new(PrivilegeKind::Clone, &source, "repo_url", &named.url, text)];
    let user = || settings::load(&env.trusting_all(), &naming).ok()?.user.publish;
    let publish = request.publish.or(named.publish).or_else(user);
    if publish.is_some_and(|publish| publish != Publish::None) {
        asks.push(push_ask(&source, &naming, &named.url));
    }
    Ok(Some(TrustRequest::of(TrustStore::of(&env.state_home()?, &naming), asks)))
}

/// Where approvals for the request's repo, and for the repo its task names, are kept.
pub(crate) fn trust_stores(env: &Environment, request: &RunRequest) -> Result<Vec<TrustStore>, AppError> {
    let (home, top) = (env.state_home()?, find::top(&request.folder));
    let mut stores = vec![TrustStore::of(&home, &top)];
    if let Ok(Some(named)) = named(env, request, &top) {
        stores.extend(named.by_repo.iter().map(|(_, repo)| TrustStore::of(&home, repo)));
        let from = place::from_here(env, &named.url);
        let folder = checkout_folder(env, &from, named.base.as_deref(), named.by_repo.is_some())?;
        stores.push(TrustStore::of(&home, &folder));
    }
    stores.dedup_by(|a, b| a.path() == b.path());
    Ok(stores)
}

/// The repo that a task names.
struct Named {
    url: String,
    /// The base branch.
    base: Option<String>,
    /// What the task wants to do with results.
    publish: Option<Publish>,
    /// The task file and its repo; `None` if it is outside any repo and so the user's own.
    by_repo: Option<(String, PathBuf)>,
}

/// The repo that the folder's task names; `None` if it is the folder's own.
fn named(env: &Environment, request: &RunRequest, top: &Path) -> Result<Option<Named>, AppError> {
    if !is_file(request) || !has_task(request) {
        return Ok(None);
    }
    // Asks git only if the task names a repo.
    let here = LazyCell::new(|| Repo::discover(env.vars(), top).ok());
    let chosen = task::choose(env, &request.folder, top, request.file(), request.ticket.as_deref());
    let chosen = match chosen {
        Ok(chosen) => chosen,
        // In a repo, problems of the task are reported later with all others.
        Err(_) if here.is_some() => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(url) = chosen.repo_url.clone() else { return Ok(None) };
    if here.as_ref().is_some_and(|repo| is_of(repo, &url)) {
        return Ok(None);
    }
    let file = match &request.task {
        TaskInput::File(file) => request.folder.join(file),
        _ => request.folder.join(task::find(&request.folder)?),
    };
    // A link to a file in another repo is untrusted like that repo.
    let file = file.canonicalize().unwrap_or(file);
    let folder = file.parent().unwrap_or(&request.folder);
    let naming = Repo::discover(env.vars(), folder).ok().map(|repo| repo.top);
    let naming = naming.or_else(|| here.as_ref().map(|repo| repo.top.clone()));
    Ok(Some(Named {
        url,
        base: chosen.base.clone(),
        publish: chosen.settings.publish,
        by_repo: naming.map(|repo| (chosen.task.source, repo)),
    }))
}

fn is_file(request: &RunRequest) -> bool {
    matches!(request.task, TaskInput::Found | TaskInput::File(_))
}

/// Whether the folder itself has a task.
fn has_task(request: &RunRequest) -> bool {
    match &request.task {
        TaskInput::Found => !task_source::candidates(&request.folder).is_empty(),
        TaskInput::File(file) => request.folder.join(file).exists(),
        TaskInput::Text(_) | TaskInput::Value(_) | TaskInput::Issue(_) => true,
    }
}

/// Whether a URL belongs to the repo or one of its remotes.
fn is_of(repo: &Repo, url: &str) -> bool {
    let wanted = plain(url);
    let remotes = repo.git().call(["remote"]).run().map(|output| output.text()).unwrap_or_default();
    let urls = remotes.lines().filter_map(|name| handover::remote_url(repo, name));
    urls.map(|url| plain(&url)).any(|url| url == wanted) || plain(&repo.top.display().to_string()) == wanted
}

/// A URL normalized for comparison.
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

/// The checkout folder of a URL.
fn checkout_folder(
    env: &Environment,
    from: &str,
    base: Option<&str>,
    by_repo: bool,
) -> Result<PathBuf, AppError> {
    let key = format!("{}\0{}", ralph_loop_git::checkout::shown(from), base.unwrap_or_default());
    let name = Digest::of(key.as_bytes()).short().to_owned();
    let all = handover::named_checkouts(env)?;
    let of_user = all.parent().unwrap_or(&all).to_owned();
    Ok(if by_repo { all } else { of_user }.join(name))
}

/// The checkout, updated.
fn checkout(env: &Environment, from: &str, base: Option<&str>, by_repo: bool) -> Result<PathBuf, AppError> {
    let folder = checkout_folder(env, from, base, by_repo)?;
    let extent = CloneDepth { depth: Some(1), sparse: Vec::new(), base: base.map(str::to_owned) };
    let source = handover::clone_source(env, from, &folder);
    let failed = |error: ralph_loop_git::Error| AppError::from(error).code(ErrorCode::CloneFailed);
    // All runs of one URL share it.
    let _lock = ralph_loop_git::WaitLock::take(&folder.with_extension("lock")).map_err(failed)?;
    let known = folder.is_dir();
    let made = ralph_loop_git::checkout::clone_part(env.vars(), &source, &folder, BRANCH, &extent)
        .map_err(failed)?;
    if known {
        ralph_loop_git::checkout::refresh_clone(&made, &source, base).map_err(failed)?;
    }
    Ok(folder)
}

/// The task inside the checkout. A task from the user's folder is copied below its `.ralph/`.
fn brought(env: &Environment, request: &RunRequest, checkout: &Path) -> Result<TaskInput, AppError> {
    let name = match &request.task {
        TaskInput::Found if has_task(request) => task::find(&request.folder)?,
        TaskInput::File(file) if has_task(request) => file.clone(),
        // Otherwise a path refers to the checkout.
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
    for side in ralph_loop_task::dialect::detect_text(&base, &shown).side_files() {
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
