//! `ralph resume --from REMOTE RUN`: continues a run whose machine or sandbox is gone from the state it
//! pushed.

use crate::agents::isolation;
use crate::config::{model_access, models, settings};
use crate::environment::{DEFAULT_PROVIDER, Environment};
use crate::error::AppError;
use crate::read::find;
use crate::report::{Notice, Reporter};
use crate::run::needs_agent_copy;
use crate::start::handover;
use crate::trust::TrustedSet;
use crate::trust::record_trust;
use crate::trust::screen::{Screen, fetched_agent};
use crate::wiring;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::resume::relocate;
use ralph_loop_domain::ports::{Baseline, GitRemote, Workspace as _};
use ralph_loop_git::{GitWorkspace, Repo, agent_copy, checkout};
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_journal::folder::registry;
use ralph_loop_protocol::id::{Digest, RunId};
use ralph_loop_safe_fs::SafeDir;
use ralph_loop_task::config::{AgentConfig, ConfigFile, Handover, Isolation, ProviderName};
use ralph_loop_task::dialect::ModelChoice;
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use std::path::Path;
use std::sync::Arc;

/// Size limit for a run's state.
const STATE_MAX: usize = 64 * 1024 * 1024;

/// Fetches a run, unless the local copy is as recent.
pub fn fetch_run(
    env: &Environment,
    from: &str,
    run: &str,
    isolation: Option<Isolation>,
    folder: &Path,
    report: &dyn Reporter,
) -> Result<(), AppError> {
    let run = RunId::parse(run).map_err(|_| {
        AppError::usage(format!("`{run}` is not a complete run id"))
            .hint("the pull request names it, and so does the state ref `refs/ralph/RUN/state`")
    })?;
    let home = env.state_home()?;
    let top = find::top(folder);
    let env = &env.with_dotenv(&top)?;
    let here = Repo::discover(env.vars(), &top).ok();
    let remote = remote(env, from, here.as_ref())?;
    let path = home.workspace(&run);
    let _alone = one_at_a_time(&path)?;
    let branch = format!("ralph/{run}");
    let repo = match Repo::discover(env.vars(), &path).ok().filter(|found| same(&found.top, &path)) {
        Some(found) => found,
        None => clone(env, &remote, &path, &branch)?,
    };
    let state_ref = format!("refs/ralph/{run}/state");
    let fetched = format!("refs/ralph-fetched/{run}");
    ralph_loop_git::fetch(
        &repo,
        &remote,
        &[format!("+{state_ref}:{fetched}"), "+refs/heads/*:refs/remotes/origin/*".into()],
    )
    .map_err(|error| {
        AppError::environment(format!("can't fetch the state of run {run} from `{}`: {error}", remote.url))
            .hint("is it the right remote, and did the run push (`publish: push` or `pr`)?")
    })?;
    repo.exclude_ralph_dir()?;
    let files = ralph_loop_git::read_files(&repo, &fetched, STATE_MAX)?;
    let events = format!("runs/{run}/events.jsonl");
    let theirs = files.iter().find(|(name, _)| *name == events).map_or(0, |(_, bytes)| bytes.len());
    let ours = registry::find(&home, &run).map(|entry| entry.run_dir().events());
    let ours = ours.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |meta| meta.len() as usize);
    if ours >= theirs && ours > 0 {
        report.notice(&Notice::HasItAlready);
        return Ok(());
    }
    fetch_files(&home, &run, &repo, &files)?;
    // A sealed copy from an earlier fetch is older than the pushed state.
    for old in [home.seal(&run), home.seal(&run).with_extension("spec.json")] {
        let _ = std::fs::remove_file(old);
    }
    let here = here.map(|repo| repo.top);
    let spec = settle_in(env, &home, &run, &repo, (&remote, from), (isolation, here.as_deref()))?;
    // The branch may contain something else at the run folder's path.
    refuse_odd_folder(&repo.top)?;
    wiring::register(&home, &spec)?;
    let iterations =
        relocate::read(&wiring::places(env, &home, &run)).map_or(0, |state| state.iterations.count);
    report.notice(&Notice::Brought { run: &run, folder: spec.home(), iterations });
    Ok(())
}

/// Waits for other fetches on this machine: two would clone into one folder and corrupt each other's state.
/// Released when the file is dropped.
fn one_at_a_time(clone: &Path) -> Result<std::fs::File, AppError> {
    let folder = clone.parent().unwrap_or(clone);
    let lock = || {
        std::fs::create_dir_all(folder)?;
        let folder = std::fs::File::open(folder)?;
        folder.lock()?;
        Ok(folder)
    };
    lock().map_err(|e: std::io::Error| {
        AppError::environment(format!("cannot lock `{}`: {e}", folder.display()))
            .hint("another `ralph resume --from` may be running there")
    })
}

/// Writes the fetched files: the run's record separately, the rest into its folder. They come from a remote,
/// so no links are followed, and nothing in them sets the workspace or permissions.
fn fetch_files(
    home: &StateHome,
    run: &RunId,
    repo: &Repo,
    files: &[(String, Vec<u8>)],
) -> Result<(), AppError> {
    let record = home.record(run);
    record.create()?;
    refuse_odd_folder(&repo.top)?;
    let failed = |name: &str, e: std::io::Error| {
        AppError::environment(format!("can't write the file `{name}` from the state of run {run}: {e}"))
            .hint("another file type is in the way; the fetched run state is corrupt")
    };
    let open = |path: &Path| SafeDir::open(path).map_err(|e| failed(".", e));
    let (top, own) = (open(&repo.top)?, format!("runs/{run}/"));
    let dir = top.create_folder(".ralph").map_err(|e| failed(".ralph", e))?;
    let record = open(record.path())?;
    for (name, bytes) in files {
        match name.strip_prefix(&own) {
            Some(inside) if is_of_this_machine(inside) => {}
            Some(inside) => record.write(inside, bytes).map_err(|e| failed(name, e))?,
            // Settings must come from this machine.
            None if ["config.json", "models.yaml"].contains(&name.as_str()) => {}
            None => dir.write(name, bytes).map_err(|e| failed(name, e))?,
        }
    }
    // Fetched files grant no permissions.
    record_trust::write(home, run, &[])
}

/// Record files that are valid only on the machine that wrote them.
pub(super) fn is_of_this_machine(inside: &str) -> bool {
    let first = inside.split('/').next().unwrap_or_default();
    ["place.json", record_trust::FILE, "lock", "wake", "git", "copy-git", "removed-sandboxes"]
        .contains(&first)
}

/// Rejects a fetched branch whose `.ralph` isn't a folder: a link would redirect the run's writes.
pub(super) fn refuse_odd_folder(top: &Path) -> Result<(), AppError> {
    match std::fs::symlink_metadata(RalphDir::of(top).path()) {
        Ok(meta) if !meta.is_dir() => {
            Err(AppError::usage(format!("`.ralph` on the run's branch isn't a folder: `{}`", top.display()))
                .hint("remove it from that branch; the run keeps its files there and follows no link"))
        }
        _ => Ok(()),
    }
}

/// The named remote or URL, with the token of its code host.
fn remote(env: &Environment, from: &str, here: Option<&Repo>) -> Result<GitRemote, AppError> {
    let url = here.and_then(|repo| handover::remote_url(repo, from)).unwrap_or_else(|| from.to_owned());
    let bare = Path::new(&url).join("repo.git");
    if bare.join("HEAD").is_file() {
        return Ok(ralph_loop_git::path_remote(&bare));
    }
    match handover::forge(env, Some(&url), None) {
        Ok(Some(forge)) => Ok(forge.remote()?),
        // A public repo needs no token.
        _ => Ok(checkout::remote(&url)),
    }
}

fn clone(env: &Environment, remote: &GitRemote, path: &Path, branch: &str) -> Result<Repo, AppError> {
    Ok(checkout::clone(env.vars(), &handover::with_login(remote), path, branch)?)
}

/// Adopts the fetched files: new paths in the spec, a baseline in this clone, a journal entry.
fn settle_in(
    env: &Environment,
    home: &StateHome,
    run: &RunId,
    repo: &Repo,
    (remote, from): (&GitRemote, &str),
    (isolation, here): (Option<Isolation>, Option<&Path>),
) -> Result<RunSpec, AppError> {
    let places = wiring::places(env, home, run);
    let state = relocate::read(&places)?;
    if state.spec.run_id != *run {
        return Err(AppError::usage(format!("the state of run {run} is that of run {}", state.spec.run_id)));
    }
    // Controls count once journaled; others in the inbox could come from anyone.
    let inbox = places.dir.inbox();
    if let Ok(file) = std::fs::OpenOptions::new().write(true).open(&inbox)
        && file.metadata().is_ok_and(|meta| meta.len() > state.people.inbox)
    {
        file.set_len(state.people.inbox)
            .map_err(|e| AppError::environment(format!("cannot write `{}`: {e}", inbox.display())))?;
    }
    if let Some(end) = &state.result.finished {
        return Err(AppError::usage(format!("run {run} is over: {}", end.summary)));
    }
    let Some(baseline) = state.baseline.clone() else {
        return Err(AppError::usage(format!("run {run} had not begun when it pushed its state")));
    };
    let mut spec = state.spec.clone();
    let same_repo = here.filter(|here| is_origin(env, here, &spec, remote)).map(Path::to_owned);
    spec.workspace = repo.top.clone();
    spec.handed_to = None;
    spec.origin = same_repo.unwrap_or_else(|| repo.top.clone());
    spec.place = WorkspaceKind::Clone { from: remote.url.clone(), sparse: Vec::new() };
    in_own_words(env, &mut spec, isolation)?;
    settle_push(repo, &mut spec, remote)?;
    let mut workspace =
        GitWorkspace::new(repo.clone(), run.clone(), wiring::workspace_options(home, &spec, repo))?;
    let baseline = workspace.relocate(&baseline, state.work.commit.as_ref(), &relocate::protected(&spec))?;
    // The start commit's configuration predates the agent; a later one might not.
    let config = workspace.file_at(&baseline.head, ".ralph/config.json")?;
    spec.config_digest = config.map(|bytes| Digest::of(&bytes));
    copy_for_agent(env, home, repo, &baseline, &mut spec)?;
    let redactor = Arc::new(env.redactor(&spec.origin));
    relocate::move_here(&places, redactor, &state, (&spec, baseline), from, &SystemClock::default())?;
    Ok(spec)
}

/// The agent's copy for a fetched run, if it uses one. Replaces a copy from an earlier fetch, which is older.
pub(super) fn copy_for_agent(
    env: &Environment,
    home: &StateHome,
    repo: &Repo,
    baseline: &Baseline,
    spec: &mut RunSpec,
) -> Result<(), AppError> {
    if !needs_agent_copy(&spec.settings) {
        return Ok(());
    }
    let (run, copy) = (spec.run_id.clone(), home.agent_copy(&spec.run_id));
    ralph_loop_safe_fs::remove_tree(&copy)
        .map_err(|e| AppError::environment(format!("cannot remove `{}`: {e}", copy.display())))?;
    let here = Repo::discover(env.vars(), &repo.top)?;
    let options = wiring::workspace_options(home, spec, &here);
    let tree = GitWorkspace::new(here, run.clone(), options)?;
    let contents = wiring::copy_contents(&spec.settings);
    let folders = wiring::git_folders(home, &run);
    agent_copy::make_of_relocated(tree, baseline, &copy, (&contents, &folders))?;
    (spec.workspace, spec.handed_to) = (copy, Some(repo.top.clone()));
    Ok(())
}

/// The run pushes to where it was fetched from, which the user named, but never onto the base branch.
fn settle_push(repo: &Repo, spec: &mut RunSpec, remote: &GitRemote) -> Result<(), AppError> {
    let handover = &mut spec.settings.handover;
    if handover.local_forge.is_some() {
        // The folder it was fetched from replaces the code host, wherever that was.
        handover.local_forge = remote.url.strip_suffix("/repo.git").map(str::to_owned);
    }
    spec.branch = spec.branch.take().or_else(|| handover.branch.clone());
    let head = repo.git().call(["symbolic-ref", "-q", "--short", "refs/remotes/origin/HEAD"]).run();
    let main = head.ok().map(|head| head.text().trim_start_matches("origin/").to_owned());
    let base = handover.pr.base.clone();
    let taken = |branch: &Option<String>| branch.is_some() && (*branch == main || *branch == base);
    if handover.pushes() && (taken(&handover.branch) || taken(&spec.branch)) {
        return Err(AppError::needs_person(format!(
            "the fetched run would push onto the branch `{}`",
            handover.branch.as_deref().or(spec.branch.as_deref()).unwrap_or_default()
        ))
        .cause("fetched state can't choose that; each run has its own branch")
        .hint("inspect the state with `git fetch`, then start your own run"));
    }
    Ok(())
}

/// A fetched spec is untrusted, like a repo's files. What opens the sandbox, or decides where keys and
/// results go, comes from this machine's user.
fn in_own_words(env: &Environment, spec: &mut RunSpec, isolation: Option<Isolation>) -> Result<(), AppError> {
    let loaded = settings::load(env, &spec.origin)?;
    let wanted = isolation.or(loaded.user_isolation).unwrap_or_default();
    let own = loaded.file;
    let settings = &mut spec.settings;
    let agents = std::mem::take(&mut settings.agents);
    settings.agents = own_agents(env, &spec.origin, &own, agents);
    if settings.agents.is_empty() {
        return Err(AppError::environment("no agent of the fetched run can work here")
            .hint("install one that it names, or define it in your own configuration"));
    }
    let user_sandbox = own.sandbox.clone().unwrap_or_default();
    let by_variable = || ProviderName::parse(&env.vars().filled(DEFAULT_PROVIDER)?).ok();
    // The user decides where code goes: a fetched run can't move it into a cloud.
    match user_sandbox.provider.or_else(by_variable) {
        Some(provider) => settings.sandbox.provider = Some(provider),
        None => settings.sandbox.provider = settings.sandbox.provider.filter(|named| !named.is_cloud()),
    }
    (settings.sandbox.image, settings.sandbox.snapshot) = (user_sandbox.image, user_sandbox.snapshot);
    settings.sandbox.volumes = user_sandbox.volumes;
    settings.isolation = match settings.sandbox.provider().is_elsewhere() {
        true => Isolation::Auto,
        false => isolation::resolve(env, wanted)?,
    };
    settings.allowed_hosts = own.allowed_hosts.unwrap_or_default();
    settings.pass_env = own.pass_env.unwrap_or_default();
    settings.share = own.share.unwrap_or_default();
    settings.sandbox_read = own.sandbox_read.unwrap_or_default();
    settings.workspace = own.workspace.unwrap_or_default();
    settings.handover.publish = own.publish.unwrap_or(settings.handover.publish);
    settings.handover.remote = own.remote.unwrap_or_else(|| Handover::default().remote);
    let choice = ModelChoice {
        default_profile: settings.models.default.clone(),
        fallback_profile: settings.models.fallback.clone(),
    };
    model_access::resolve(env, settings, &models::load(env, &spec.origin)?, &choice);
    let mut problems = Vec::new();
    model_access::check(env, settings, &mut problems);
    AppError::together(problems)
}

/// The agents of a fetched run, using the user's own definitions if there are any: no URL, variable or
/// program chosen by the remote gets a key.
fn own_agents(env: &Environment, top: &Path, own: &ConfigFile, agents: Vec<AgentConfig>) -> Vec<AgentConfig> {
    let (programs, nothing) = (settings::programs(env, top), TrustedSet::default());
    let screen = Screen {
        source: "the fetched state",
        user: own,
        provider: None,
        programs: &programs,
        grants: &nothing,
    };
    let ours =
        |agent: &AgentConfig| own.agents.iter().flatten().find(|mine| mine.name == agent.name).cloned();
    let agents =
        agents.into_iter().filter_map(|agent| ours(&agent).or_else(|| fetched_agent(&screen, agent)));
    agents.collect()
}

/// Whether the user is in the folder that started the run: on this machine, with the same remote.
fn is_origin(env: &Environment, here: &Path, spec: &RunSpec, remote: &GitRemote) -> bool {
    let url = |repo: &Repo| handover::remote_url(repo, &spec.settings.handover.remote);
    here == spec.origin
        && Repo::discover(env.vars(), here).ok().and_then(|repo| url(&repo)).as_ref() == Some(&remote.url)
}

pub(super) fn same(a: &Path, b: &Path) -> bool {
    a.canonicalize().ok() == b.canonicalize().ok()
}
