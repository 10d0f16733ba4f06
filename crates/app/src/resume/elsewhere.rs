//! `ralph resume --from REMOTE RUN`: a run whose machine or sandbox is gone goes on here, from the state that it pushed.

use crate::environment::Environment;
use crate::error::AppError;
use crate::report::{Notice, Reporter};
use crate::{find, handover, isolation, model_access, models, settings, wiring};
use ralph_core::clock::SystemClock;
use ralph_core::relocate;
use ralph_domain::config::Isolation;
use ralph_domain::dialect::ModelChoice;
use ralph_domain::id::RunId;
use ralph_domain::ports::GitRemote;
use ralph_domain::spec::{RunSpec, WorkspaceKind};
use ralph_git::{GitWorkspace, Repo, place};
use ralph_journal::layout::{RalphDir, StateHome};
use ralph_journal::{artifacts, registry};
use std::path::Path;
use std::sync::Arc;

/// Most bytes of a run's state.
const STATE_MAX: usize = 64 * 1024 * 1024;

/// Brings a run here, unless what is here reaches as far already.
pub fn fetch_run(
    env: &Environment,
    from: &str,
    run: &str,
    isolation: Option<Isolation>,
    folder: &Path,
    report: &dyn Reporter,
) -> Result<(), AppError> {
    let run = RunId::parse(run).map_err(|_| {
        AppError::usage(format!("`{run}` is not a whole run id"))
            .hint("the pull request names it, and so does the state ref `refs/ralph/RUN/state`")
    })?;
    let home = env.state_home()?;
    let top = find::top(folder);
    let env = &env.with_dotenv(&top);
    let here = Repo::discover(env.vars(), &top).ok();
    let remote = remote(env, from, here.as_ref())?;
    let path = home.workspace(&run);
    let branch = format!("ralph/{run}");
    let repo = match Repo::discover(env.vars(), &path).ok().filter(|found| same(&found.top, &path)) {
        Some(found) => found,
        None => clone(env, &remote, &path, &branch)?,
    };
    let state_ref = format!("refs/ralph/{run}/state");
    let fetched = format!("refs/ralph-fetched/{run}");
    ralph_git::fetch(
        &repo,
        &remote,
        &[format!("+{state_ref}:{fetched}"), "+refs/heads/*:refs/remotes/origin/*".into()],
    )
    .map_err(|error| {
        AppError::environment(format!(
            "the state of run {run} cannot be fetched from `{}`: {error}",
            remote.url
        ))
        .hint("is it the right remote, and did the run push (`publish: push` or `pr`)?")
    })?;
    repo.exclude_ralph_dir()?;
    let files = ralph_git::read_files(&repo, &fetched, STATE_MAX)?;
    let dir = RalphDir::of(&repo.top);
    let events = format!("runs/{run}/events.jsonl");
    let theirs = files.iter().find(|(name, _)| *name == events).map_or(0, |(_, bytes)| bytes.len());
    let ours = registry::find(&home, &run).map(|entry| entry.run_dir().events());
    let ours = ours.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |meta| meta.len() as usize);
    if ours >= theirs && ours > 0 {
        report.notice(&Notice::HasItAlready);
        return Ok(());
    }
    let (record, own) = (home.record(&run), format!("runs/{run}/"));
    record.create()?;
    for (name, bytes) in &files {
        // The record of the run lies apart; what else there is belongs to its folder.
        let path = match name.strip_prefix(&own) {
            Some(inside) => record.path().join(inside),
            None => dir.path().join(name),
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| {
                AppError::environment(format!("cannot make the folder `{}`: {e}", folder.display()))
            })?;
        }
        artifacts::write_atomic(&path, bytes)?;
    }
    // A sealed copy of an earlier visit is shorter; the state that was pushed is the longer story.
    for old in [home.seal(&run), home.seal(&run).with_extension("spec.json")] {
        let _ = std::fs::remove_file(old);
    }
    let spec = settle_in(env, &home, &run, &repo, (&remote, from), isolation)?;
    wiring::register(&home, &spec)?;
    let iterations = relocate::read(&wiring::places(&home, &run)).map_or(0, |state| state.iterations.count);
    report.notice(&Notice::Brought { run: &run, folder: &spec.workspace, iterations });
    Ok(())
}

/// The remote that is meant: a name of this repo's, or an address; with the token of its code host.
fn remote(env: &Environment, from: &str, here: Option<&Repo>) -> Result<GitRemote, AppError> {
    let url = here.and_then(|repo| handover::remote_url(repo, from)).unwrap_or_else(|| from.to_owned());
    let bare = Path::new(&url).join("repo.git");
    if bare.join("HEAD").is_file() {
        return Ok(ralph_git::path_remote(&bare));
    }
    match handover::forge(env, Some(&url), None) {
        Ok(Some(forge)) => Ok(forge.remote()?),
        // A public repo can be read without a token.
        _ => Ok(place::remote(&url)),
    }
}

fn clone(env: &Environment, remote: &GitRemote, path: &Path, branch: &str) -> Result<Repo, AppError> {
    Ok(place::clone(env.vars(), &handover::with_login(remote), path, branch)?)
}

/// Makes the fetched files the run's own: new places in the spec, a baseline in this clone, a line in the journal.
fn settle_in(
    env: &Environment,
    home: &StateHome,
    run: &RunId,
    repo: &Repo,
    (remote, from): (&GitRemote, &str),
    isolation: Option<Isolation>,
) -> Result<RunSpec, AppError> {
    let places = wiring::places(home, run);
    let state = relocate::read(&places)?;
    if let Some(end) = &state.result.finished {
        return Err(AppError::usage(format!("run {run} is over: {}", end.summary)));
    }
    let Some(baseline) = state.baseline.clone() else {
        return Err(AppError::usage(format!("run {run} had not begun when it pushed its state")));
    };
    let mut spec = state.spec.clone();
    let same_repo = find_origin(env, &spec, remote);
    spec.workspace = repo.top.clone();
    spec.origin = same_repo.unwrap_or_else(|| repo.top.clone());
    spec.place = WorkspaceKind::Clone { from: remote.url.clone(), sparse: Vec::new() };
    spec.config_digest = None;
    in_own_words(env, &mut spec, isolation)?;
    if spec.settings.handover.local_forge.is_some() {
        // The folder that it was fetched from stands in for the code host, wherever that was before.
        spec.settings.handover.local_forge = remote.url.strip_suffix("/repo.git").map(str::to_owned);
    }
    spec.branch = spec.branch.or_else(|| spec.settings.handover.branch.clone());
    let mut workspace =
        GitWorkspace::new(repo.clone(), run.clone(), wiring::workspace_options(home, &spec, repo))?;
    let baseline = workspace.relocate(&baseline, state.work.commit.as_ref(), &relocate::protected(&spec))?;
    let redactor = Arc::new(env.redactor(&spec.origin));
    relocate::move_here(&places, redactor, &spec, baseline, from, &SystemClock::default())?;
    Ok(spec)
}

/// What a run was frozen with comes from the remote, like a repo's files. What opens the sandbox or says where keys go is this
/// machine's user's to say.
fn in_own_words(env: &Environment, spec: &mut RunSpec, isolation: Option<Isolation>) -> Result<(), AppError> {
    let loaded = settings::load(env, &spec.origin)?;
    let wanted = isolation.or(loaded.user_isolation).unwrap_or_default();
    let own = loaded.file;
    let settings = &mut spec.settings;
    settings.isolation = match settings.sandbox.provider().is_elsewhere() {
        true => Isolation::Auto,
        false => isolation::resolve(env, wanted)?,
    };
    settings.allowed_hosts = own.allowed_hosts.unwrap_or_default();
    settings.pass_env = own.pass_env.unwrap_or_default();
    settings.sandbox.volumes = own.sandbox.map(|sandbox| sandbox.volumes).unwrap_or_default();
    let choice = ModelChoice {
        default_profile: settings.models.default.clone(),
        fallback_profile: settings.models.fallback.clone(),
    };
    model_access::resolve(env, settings, &models::load(env, &spec.origin)?, &choice);
    model_access::check(env, settings)
}

/// The user's own folder that the run was started from, where it is on this machine.
fn find_origin(env: &Environment, spec: &RunSpec, remote: &GitRemote) -> Option<std::path::PathBuf> {
    let repo = Repo::discover(env.vars(), &spec.origin).ok()?;
    let url = handover::remote_url(&repo, &spec.settings.handover.remote)?;
    (url == remote.url).then(|| spec.origin.clone())
}

fn same(a: &Path, b: &Path) -> bool {
    a.canonicalize().ok() == b.canonicalize().ok()
}
