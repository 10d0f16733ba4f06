//! Settles where a run hands over its result (code host, remote, branch) before it costs anything.

use crate::environment::Environment;
use crate::error::AppError;
use crate::report::{Notice, Reporter};
use ralph_loop_domain::ports::{Forge, GitRemote};
use ralph_loop_forge::NamedBy;
use ralph_loop_git::{Repo, checkout};
use ralph_loop_task::config::Settings;
use ralph_loop_task::dialect::Publish;
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};
use std::path::{Path, PathBuf};

/// A code host, or only a remote.
#[derive(Default)]
pub struct HandoverTarget {
    pub forge: Option<Box<dyn Forge>>,
    /// The remote, if no code host is known for it.
    pub push_to: Option<GitRemote>,
}

/// A remote's URL as git has it. It may contain a password, so never print it unredacted.
pub fn remote_url(repo: &Repo, name: &str) -> Option<String> {
    let url = repo.push_url(name)?;
    // Git resolves relative paths from the top of the repo, whatever the current folder is.
    let is_relative = !is_elsewhere(&url) && Path::new(&url).is_relative();
    Some(if is_relative { repo.top.join(url).display().to_string() } else { url })
}

/// The code host behind one of the user's remotes, or the folder that replaces one.
pub fn forge(
    env: &Environment,
    url: Option<&str>,
    local: Option<&Path>,
) -> Result<Option<Box<dyn Forge>>, AppError> {
    Ok(ralph_loop_forge::find(url, NamedBy::User, local, env.vars())?)
}

/// Like [`forge`], for the repo at `origin`, which a task may have named.
fn forge_of(
    env: &Environment,
    url: Option<&str>,
    local: Option<&Path>,
    origin: &Path,
) -> Result<Option<Box<dyn Forge>>, AppError> {
    Ok(ralph_loop_forge::find(url, named_by(env, origin), local, env.vars())?)
}

/// Where checkouts of repos named by tasks are kept.
pub fn named_checkouts(env: &Environment) -> Result<PathBuf, AppError> {
    Ok(env.state_home()?.path().join("sources/named"))
}

/// Who named the repo at `origin`.
fn named_by(env: &Environment, origin: &Path) -> NamedBy {
    let is_there = |folder: PathBuf| {
        let real = folder.canonicalize();
        origin.starts_with(&folder) || real.is_ok_and(|real| origin.starts_with(real))
    };
    match named_checkouts(env).is_ok_and(is_there) {
        true => NamedBy::Repo,
        false => NamedBy::User,
    }
}

/// The `local_forge` folder of a run in `origin`.
pub fn local_folder(settings: &Settings, origin: &Path) -> Option<PathBuf> {
    settings.handover.local_forge.as_ref().map(|path| origin.join(path))
}

/// Whether a code host is known for a repo, without contacting it.
pub fn is_known(env: &Environment, settings: &Settings, repo: &Repo) -> bool {
    let url = remote_url(repo, &settings.handover.remote);
    let local = settings.handover.local_forge.is_some();
    local || forge_of(env, url.as_deref(), None, &repo.top).is_ok_and(|found| found.is_some())
}

/// Settles what is published and rejects what can't be done. `wanted` means it was requested explicitly; a
/// default of the task format falls back to no publishing without a code host.
pub fn resolve(
    env: &Environment,
    settings: &mut Settings,
    task: &Task,
    url: Option<&str>,
    origin: &Repo,
    wanted: bool,
    report: &dyn Reporter,
) -> Result<(), AppError> {
    let needs = task.criteria.iter().find(|c| c.check.needs_forge());
    if settings.handover.publish == Publish::None {
        return match needs {
            None => Ok(()),
            Some(criterion) => Err(AppError::usage(format!(
                "{}:{}: criterion `{}` needs a pull request, but nothing is published",
                task.source, criterion.place.line, criterion.id
            ))
            .hint("`--publish pr`, or take the criterion out")),
        };
    }
    let asked = wanted || needs.is_some();
    let local = local_folder(settings, &origin.top);
    let found = match forge_of(env, url, local.as_deref(), &origin.top) {
        Ok(found) => found,
        Err(error) if asked => return Err(error),
        Err(error) => {
            report.notice(&Notice::StaysHere { reason: &error.message });
            settings.handover.publish = Publish::None;
            return Ok(());
        }
    };
    match (found, url) {
        (Some(forge), _) => {
            if let Some(folder) = &local {
                let own = ralph_loop_forge::LocalForge::open(folder, env.vars())?;
                let base = settings.handover.pr.base.as_deref();
                for branch in [base, origin.branch.as_deref()].into_iter().flatten() {
                    own.seed(&origin.top, branch)?;
                }
            }
            match forge.access() {
                Ok(access) if !access.push => {
                    return Err(AppError::environment(format!(
                        "`{}` may not push to {}",
                        access.login,
                        forge.repo()
                    ))
                    .hint("use a token that may write contents and pull requests, or `--publish none`"));
                }
                Err(error) if !error.is_temporary() => return Err(error.into()),
                // It may be back when there is something to push.
                Err(error) => report.notice(&Notice::CodeHostSilent { reason: error.to_string() }),
                Ok(_) => {}
            }
        }
        (None, Some(_)) if settings.handover.publish == Publish::Push => {}
        (None, url) if asked => {
            let what = match url {
                Some(url) => format!("no known code host for `{}`", checkout::shown(url)),
                None => format!("the repo has no remote `{}`", settings.handover.remote),
            };
            if settings.handover.publish == Publish::Push {
                let remote = &settings.handover.remote;
                return Err(AppError::environment(format!("nothing can be pushed: {what}")).hint(format!(
                    "`git remote add {remote} URL` names one; `--publish none` leaves the result here"
                )));
            }
            return Err(AppError::environment(format!("no pull request can be opened: {what}")).hint(
                "set `GITHUB_TOKEN`, point `local_forge` in `.ralph/config.json` at a folder, or pass `--publish push` or `none`",
            ));
        }
        (None, _) => {
            report.notice(&Notice::StaysHere {
                reason: "no code host is known (`--publish push` pushes the branch)",
            });
            settings.handover.publish = Publish::None;
        }
    }
    Ok(())
}

/// A free branch name on the remote, with `-v2` and so on if it exists.
pub fn free_branch(env: &Environment, wanted: &str, remote: &GitRemote) -> Result<String, AppError> {
    let taken = ralph_loop_git::remote_branches(env.vars(), remote)?;
    let is_free = |name: &str| {
        !taken
            .iter()
            .any(|t| t == name || t.starts_with(&format!("{name}/")) || name.starts_with(&format!("{t}/")))
    };
    let names = std::iter::once(wanted.to_owned()).chain((2..1000).map(|n| format!("{wanted}-v{n}")));
    let mut names = names.filter(|name| is_free(name));
    names.next().ok_or_else(|| {
        AppError::usage(format!("the code host has no room for a branch `{wanted}`"))
            .hint("it conflicts with another branch; choose another name with `--branch`")
    })
}

/// Sets the branch name on the remote.
pub fn name_branch(
    env: &Environment,
    spec: &mut RunSpec,
    repo: &Repo,
    task_branch: Option<&str>,
    report: &dyn Reporter,
) -> Result<(), AppError> {
    if !spec.settings.handover.pushes() {
        return Ok(());
    }
    let wanted = spec.branch.clone().or_else(|| task_branch.map(str::to_owned));
    let wanted = wanted.unwrap_or_else(|| format!("ralph/{}", spec.run_id));
    let other = connect(env, spec, repo)?;
    let remote = match (&other.forge, other.push_to) {
        (Some(forge), _) => match forge.remote() {
            Ok(remote) => Some(remote),
            Err(error) if error.is_temporary() => None,
            Err(error) => return Err(error.into()),
        },
        (None, remote) => remote,
    };
    let named = match remote {
        Some(remote) => free_branch(env, &wanted, &remote).or_else(|error| match other.forge {
            // Unreachable now; the first push will report it.
            Some(_) => Ok(wanted.clone()),
            None => Err(error),
        })?,
        None => wanted.clone(),
    };
    if named != wanted {
        report.notice(&Notice::BranchTaken { wanted: &wanted, named: &named });
    }
    spec.settings.handover.branch = Some(named);
    Ok(())
}

fn counterpart(
    env: &Environment,
    settings: &Settings,
    origin: &Path,
    url: Option<&str>,
) -> Result<HandoverTarget, AppError> {
    if !settings.handover.pushes() {
        return Ok(HandoverTarget::default());
    }
    let found = forge_of(env, url, local_folder(settings, origin).as_deref(), origin)?;
    let push_to = match &found {
        Some(_) => None,
        None => url.map(checkout::remote),
    };
    Ok(HandoverTarget { forge: found, push_to })
}

/// The URL a run hands over to: that of the user's repo, or of the clone's source.
pub(crate) fn url_of(env: &Environment, spec: &RunSpec, repo: &Repo) -> Option<String> {
    let remote = &spec.settings.handover.remote;
    let own = || remote_url(repo, remote);
    match &spec.place {
        WorkspaceKind::Clone { from, .. } if is_elsewhere(from) => own(),
        _ => Repo::discover(env.vars(), &spec.origin)
            .ok()
            .and_then(|origin| remote_url(&origin, remote))
            .or_else(own),
    }
}

/// Whether a clone source isn't a local folder.
pub fn is_elsewhere(from: &str) -> bool {
    from.contains("://") || (from.contains(':') && !Path::new(from).exists())
}

/// A clone URL with the code host's login, which private repos need. It is passed only through git's
/// environment.
pub fn with_login(remote: &GitRemote) -> String {
    match (&remote.login, remote.url.split_once("://")) {
        (Some((user, secret)), Some((scheme, rest))) => format!("{scheme}://{user}:{secret}@{rest}"),
        _ => remote.url.clone(),
    }
}

/// The URL to clone for the repo at `origin`, with the login of its code host if there is one.
pub fn clone_source(env: &Environment, from: &str, origin: &Path) -> String {
    if !from.contains("://") || from.contains('@') {
        return from.to_owned();
    }
    match forge_of(env, Some(from), None, origin).ok().flatten().map(|forge| forge.remote()) {
        Some(Ok(remote)) => with_login(&remote),
        // A public repo needs no login; git reports anything else.
        _ => from.to_owned(),
    }
}

/// The handover target in a run's spec.
pub fn connect(env: &Environment, spec: &RunSpec, repo: &Repo) -> Result<HandoverTarget, AppError> {
    let url = url_of(env, spec, repo);
    counterpart(env, &spec.settings, &spec.origin, url.as_deref())
}
