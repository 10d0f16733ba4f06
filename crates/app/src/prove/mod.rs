//! The proof of a commit that no run made: by a person, or another tool. Works in a separate repo, so that
//! nothing changes in the user's.

mod folders;
mod revision;

use crate::config::{models, settings};
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::report::Reporter;
use crate::request::{Overrides, RunRequest, TaskInput};
use crate::run::{options, task};
use crate::start::{locks, sandboxes};
use crate::task::hidden;
use crate::trust::Ask;
use crate::trust::consent::TrustScan;
use crate::trust::repo_file;
use crate::wiring;
use folders::Folders;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::{CancelToken, CommitProof, CommitToProve, HunkLimits, RunWriter, prove_commit};
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_git::{Repo, checkout};
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::id::CommitId;
use ralph_loop_task::config::Isolation;
use ralph_loop_task::dialect::{Dialect, Publish};
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is to be proven, and how.
#[derive(Debug, Clone, Default)]
pub struct ProveRequest {
    /// The user's folder.
    pub folder: PathBuf,
    /// A revision, or the number or URL of a pull request; `HEAD` if absent.
    pub what: Option<String>,
    /// The revision to compare with; the default branch if absent.
    pub base: Option<String>,
    /// Commands that must pass, replacing the configured checks.
    pub verify: Vec<String>,
    /// A task file, whose checks count as well.
    pub task: Option<PathBuf>,
    /// Sandbox strength on this machine.
    pub isolation: Option<Isolation>,
    /// Whether each hunk is reverted in turn.
    pub hunks: Option<HunkLimits>,
}

/// A finished proof.
#[derive(Debug)]
pub struct ProvedCommit {
    pub result: CommitProof,
    /// Requests of the repo's configuration that the user hasn't allowed.
    pub left_out: Vec<String>,
}

/// Proves a commit. `None` if it was canceled.
pub fn prove(
    env: &Environment,
    request: &ProveRequest,
    cancel: Arc<CancelToken>,
    report: &dyn Reporter,
) -> Result<Option<ProvedCommit>, AppError> {
    let top = find::top(&request.folder);
    let env = env.with_dotenv(&top)?;
    let home = env.state_home()?;
    let users = Repo::discover(env.vars(), &top)?;
    let now = SystemClock::default().now();
    let run_id = ralph_loop_core::run_id::new(now);
    let wanted = revision::find(&env, request.what.as_deref(), request.base.as_deref(), &users)?;
    let folders = Folders::new(&home, &run_id, &users.top);
    let scratch = checkout::separate(&users, &users.head, folders.source())?;
    let pair = wanted.bring(&scratch)?;
    // What the commit changes in the configuration must not decide about the commit.
    let scratch = checkout::switch(&scratch, &pair.base)?;
    add_untracked_config(&users, &scratch, &pair.commit)?;

    let env = granted(&env, request, &users, &scratch.top)?;
    let loaded = settings::load(&env, &scratch.top)?;
    let grants = env.grants(&scratch.top);
    let asks = loaded.asks.iter().filter(|ask| !grants.allow(ask));
    let mut left_out: Vec<String> = asks.map(Ask::shown).collect();
    let mut chosen = match &request.task {
        Some(file) => task::choose(&env, &request.folder, &users.top, Some(file), None)?,
        None => task::plain(nothing_asked()),
    };
    let source = chosen.task.source.clone();
    let asks = settings::screened(&env, &users.top, &loaded.user, &source, &mut chosen.settings);
    left_out.extend(asks.iter().filter(|ask| !grants.allow(ask)).map(Ask::shown));
    let run_request = RunRequest {
        task: TaskInput::Value(Box::new(chosen.task.clone())),
        overrides: Overrides { verify: request.verify.clone(), ..Overrides::default() },
        isolation: request.isolation,
        publish: Some(Publish::None),
        ..RunRequest::in_folder(below(&request.folder, &users.top, &scratch.top))
    };
    let sandbox = sandboxes::choose(&env, &run_request, &loaded, chosen.settings.sandbox.as_ref())?;
    let isolation = match sandbox.provider().is_elsewhere() {
        true => Isolation::Auto,
        false => options::isolation(&env, &run_request, &loaded)?,
    };
    chosen.settings.sandbox = Some(sandbox);
    let mut settings =
        options::for_checks(&env, &run_request, loaded, chosen.settings, (isolation, &scratch.top))?;
    let criteria = hidden::read(&users)?;
    hidden::add_to(&mut settings, &criteria);
    let spec = RunSpec {
        version: 1,
        spec_version: 1,
        run_id: run_id.clone(),
        created_at: now,
        task: chosen.task,
        settings,
        place: WorkspaceKind::Clone { from: users.top.display().to_string(), sparse: Vec::new() },
        workspace: scratch.top.clone(),
        origin: users.top.clone(),
        handed_to: None,
        branch: None,
        config_digest: None,
        forked_from: None,
        unproven_runs: Vec::new(),
    };
    let wanted = CommitToProve {
        base_tree: revision::tree_of(&scratch, &pair.base)?,
        tree: revision::tree_of(&scratch, &pair.commit)?,
        base: CommitId::new(pair.base),
        commit: CommitId::new(pair.commit),
        hunks: request.hunks,
    };
    home.record(&run_id).create()?;
    hidden::keep(&home, &run_id, &criteria)?;
    let lock = locks::of_folder(&home, &scratch.top, &run_id)?;
    let mut parts = wiring::parts(&env, &home, &spec, scratch, &lock, cancel, report)?;
    let mut options = wiring::writer_options(&env, &home, &spec)?;
    // The record is removed at the end, so it needs no sealed copy.
    (parts.places.seal, options.places.seal) = (None, None);
    let writer = RunWriter::create(spec, &options)?;
    let result = prove_commit(writer, parts, &wanted)?;
    Ok(result.map(|result| ProvedCommit { result, left_out }))
}

/// The environment with what the user allowed this repo, once or by a variable. Whatever else the repo asks
/// for is left out.
fn granted(
    env: &Environment,
    request: &ProveRequest,
    users: &Repo,
    scratch: &Path,
) -> Result<Environment, AppError> {
    let open = env.trusting_all();
    let (loaded, models) = (settings::load(&open, scratch)?, models::load(&open, scratch)?);
    let run = RunRequest { isolation: request.isolation, ..RunRequest::in_folder(&users.top) };
    let asked = TrustScan {
        env,
        top: &users.top,
        request: &run,
        loaded: &loaded,
        models: &models,
        task: None,
        working_dir: None,
    }
    .asked()?;
    let named: &[Ask] = if asked.is_in_variable(env) { asked.asks() } else { &[] };
    let kept = asked.store().allowed().unwrap_or_default();
    Ok(env.granting(kept.iter().chain(named).map(|ask| ask.digest.clone())))
}

/// A task that asks for nothing: only the repo's checks count.
fn nothing_asked() -> Task {
    Task {
        id: None,
        ticket: None,
        title: "Prove a commit".to_owned(),
        text: String::new(),
        source: String::new(),
        dialect: Dialect::PromptMd,
        raw: None,
        criteria: Vec::new(),
        working_dir: None,
        context_files: Vec::new(),
        rules: Vec::new(),
    }
}

/// The user's folder, in the separate repo.
fn below(folder: &Path, top: &Path, scratch: &Path) -> PathBuf {
    let below = folder.strip_prefix(top).map(|below| scratch.join(below));
    below.ok().filter(|folder| folder.is_dir()).unwrap_or_else(|| scratch.to_owned())
}

/// Copies the user's own configuration, unless git tracks one in either commit: then the original decides.
fn add_untracked_config(users: &Repo, scratch: &Repo, commit: &str) -> Result<(), AppError> {
    let name = ".ralph/config.json";
    for commit in [scratch.head.as_str(), commit] {
        let listed = scratch.git().call(["ls-tree", "--name-only", commit, "--", name]).run();
        if !listed.map_err(ralph_loop_git::Error::from)?.text().is_empty() {
            return Ok(());
        }
    }
    match repo_file::read(&RalphDir::of(&users.top).config()) {
        Ok(text) => Ok(RalphDir::of(&scratch.top).write("config.json", &text)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(repo_file::unreadable(&RalphDir::of(&users.top).config(), &error)),
    }
}
