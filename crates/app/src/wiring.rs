//! Wires the backends of a run's ports.

use crate::agents::isolation::RepoInside;
use crate::agents::{hooks, installed, isolation};
use crate::config::{model_access, models, settings};
use crate::environment::Environment;
use crate::error::AppError;
use crate::report::Reporter;
use crate::start::{handover, sandboxes};
use crate::task::hidden;
use crate::trust::quoted;
use crate::trust::repo_file;
use ralph_loop_agents::{
    ActionsAgent, BackendAsker, CliAgent, HttpModelClient, ProgramPlace, ProgramSource, ScriptedAgent,
    ToolsAgent, presets,
};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::{CancelToken, Helpers, Refusals, RunPorts, WriterOptions};
use ralph_loop_domain::model::price::PriceTable;
use ralph_loop_domain::model::{ModelClient, Pricing};
use ralph_loop_domain::ports::{Agent, Sandbox, Workspace};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_git::agent_copy::{self, CopyContents, CopyDirs, History};
use ralph_loop_git::{GitWorkspace, HandBack, Repo, WorkspaceOptions};
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::journal::RunPaths;
use ralph_loop_journal::lock::RunLock;
use ralph_loop_protocol::id::RunId;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_task::config::{AgentConfig, AgentKind, Expect, HistoryAccess, Settings, is_inside};
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Journal paths of a run.
pub fn places(env: &Environment, home: &StateHome, run: &RunId) -> RunPaths {
    let elsewhere = env.hold().map(|hold| hold.seal.clone());
    RunPaths { dir: home.record(run), seal: Some(home.seal(run)), elsewhere }
}

/// Journal paths of a registered run, wherever its record is.
pub fn places_of(home: &StateHome, entry: &Registration) -> RunPaths {
    RunPaths { dir: entry.run_dir(), seal: Some(home.seal(&entry.run_id)), elsewhere: None }
}

/// Journal options for this process as the driver.
pub fn writer_options(
    env: &Environment,
    home: &StateHome,
    spec: &RunSpec,
) -> Result<WriterOptions, AppError> {
    Ok(WriterOptions {
        places: places(env, home, &spec.run_id),
        redactor: Arc::new(env.redactor(&spec.origin)),
        clock: Arc::new(SystemClock::default()),
        machine: Some(ralph_loop_journal::folder::machine::id(home)?),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
    })
}

/// The git folder of a run.
pub fn git_folders(home: &StateHome, run: &RunId) -> CopyDirs {
    let record = home.record(run);
    CopyDirs { user: Some(record.git()), agent: Some(record.copy_git()) }
}

/// What the agent's copy holds by these settings.
pub fn copy_contents(settings: &Settings) -> CopyContents {
    let history = match settings.workspace.history {
        Some(HistoryAccess::Full) => History::Full,
        Some(HistoryAccess::Start) | None => History::Start,
    };
    CopyContents { include: settings.workspace.include.clone(), history }
}

/// Adds the run to the registry, so that it can be found from anywhere.
pub fn register(home: &StateHome, spec: &RunSpec) -> Result<(), AppError> {
    let entry = Registration {
        run_id: spec.run_id.clone(),
        title: spec.task.title.clone(),
        origin: spec.origin.clone(),
        workspace: spec.home().to_owned(),
        created_at: spec.created_at,
        record: Some(home.record(&spec.run_id).path().to_owned()),
    };
    Ok(registry::register(home, &entry)?)
}

/// The object folders that the agent's copy of the run borrows from, if it has one.
pub fn lent_objects(home: &StateHome, spec: &RunSpec, repo: &Repo, has_copy: bool) -> Vec<PathBuf> {
    let folders = || agent_copy::object_folders(repo, &spec.run_id, &git_folders(home, &spec.run_id));
    if has_copy { folders() } else { Vec::new() }
}

/// How a run's work is recorded.
pub fn workspace_options(home: &StateHome, spec: &RunSpec, repo: &Repo) -> WorkspaceOptions {
    let settings = &spec.settings;
    let identity = repo.identity(settings.commit_author.as_deref(), settings.commit_email.as_deref());
    WorkspaceOptions {
        branch: spec.branch.clone(),
        allow_agent_commits: settings.allow_agent_commits,
        own_tree: spec.place != WorkspaceKind::InPlace,
        commit_state: settings.commit_state,
        folder: git_folders(home, &spec.run_id).user,
        sparse: match &spec.place {
            WorkspaceKind::Clone { sparse, .. } => sparse.clone(),
            WorkspaceKind::InPlace | WorkspaceKind::Worktree => Vec::new(),
        },
        ..WorkspaceOptions::new(identity)
    }
}

/// Everything a driver needs.
pub fn parts(
    env: &Environment,
    home: &StateHome,
    spec: &RunSpec,
    repo: Repo,
    lock: &RunLock,
    cancel: Arc<CancelToken>,
    report: &dyn Reporter,
) -> Result<RunPorts, AppError> {
    let places = places(env, home, &spec.run_id);
    let other = handover::connect(env, spec, &repo)?;
    let redactor = Arc::new(env.redactor(&spec.origin));
    let lock_fd = lock
        .fd()
        .try_clone_to_owned()
        .map_err(|e| AppError::environment(format!("cannot share the lock with the guard: {e}")))?;
    let refusals = Refusals::default();
    // A finished run's copy is gone, and reading it needs none.
    let agent_copy = spec.hands_back() && spec.workspace.is_dir();
    let folder = if agent_copy { &spec.workspace } else { spec.home() };
    let installed = installed::of_run(env, spec);
    let objects = lent_objects(home, spec, &repo, agent_copy);
    let elsewhere = sandboxes::of_run(env, home, spec, (&repo, &objects), &refusals, &cancel)?;
    let (sandbox, keeper): (Box<dyn Sandbox>, _) = match elsewhere {
        Some((sandbox, keeper)) => (sandbox, Some(keeper)),
        None => {
            let mut options = LocalOptions::new(spec.run_id.as_str(), env.vars());
            if let Some(program) = env.helper_program() {
                options.guard_exe = Some(program.to_owned());
            }
            options.lock_fd = Some(lock_fd);
            if let Some(hold) = env.hold() {
                let lease = hold.clock.for_guard();
                options.lease_fd = Some(lease.map_err(|e| {
                    AppError::environment(format!("cannot share the lease with the guard: {e}"))
                })?);
            }
            options.env_remove = model_access::own_keys(env, &spec.settings);
            let inside = RepoInside { objects, identity: isolation::identity(&repo) };
            let shown = vec![places.dir.path().to_owned()];
            options.isolation = isolation::of_run(env, home, spec, &refusals, shown, inside, &installed)?;
            (Box::new(LocalSandbox::start(folder, options)?), None)
        }
    };
    let options = workspace_options(home, spec, &repo);
    let run_id = spec.run_id.clone();
    let workspace: Box<dyn Workspace> = if agent_copy {
        let folders = git_folders(home, &run_id);
        let agents = agent_copy::open(&spec.workspace, &repo, &run_id, &folders)?;
        Box::new(HandBack::new(agents, repo, run_id, options, &folders)?)
    } else {
        Box::new(GitWorkspace::new(repo, run_id, options)?)
    };
    let access = ModelAccess::new(env, spec, &redactor);
    let custom_checks = hidden::checks(home, &spec.run_id, &cancel);
    Ok(RunPorts {
        dir: RalphDir::of(folder),
        home: RalphDir::of(spec.home()),
        cooldowns: home.folder_cooldowns(spec.home()),
        places,
        proof_dir: home.path().join("proofs").join(spec.run_id.as_str()),
        baseline_cache: Some(home.path().join("baselines")),
        sandbox,
        workspace,
        installed,
        agents: agents(env, home, spec, &access)?,
        custom_checks,
        clock: Arc::new(SystemClock::default()),
        redactor,
        observers: vec![report.observer()],
        cancel,
        helpers: access.helpers(),
        refusals,
        forge: other.forge,
        push_to: other.push_to,
        notifiers: Vec::new(),
        keeper,
        machine: Some(ralph_loop_journal::folder::machine::id(home)?),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        vars: env.vars().clone(),
    })
}

/// Calls models for this run and prices them.
struct ModelAccess {
    client: Arc<dyn ModelClient>,
    pricing: Pricing,
    redactor: Arc<Redactor>,
}

impl ModelAccess {
    fn new(env: &Environment, spec: &RunSpec, redactor: &Arc<Redactor>) -> Self {
        // Lazy: no reads, connections or threads until it is used.
        let (origin, surroundings) = (spec.origin.clone(), env.clone());
        let models = spec.settings.models.clone();
        let prices: OnceLock<PriceTable> = OnceLock::new();
        let pricing: Pricing = Arc::new(move |model, tokens| {
            let prices = prices.get_or_init(|| match models::load(&surroundings, &origin) {
                Ok(loaded) => loaded.prices.with_profiles(&models),
                Err(_) => PriceTable::builtin().with_profiles(&models),
            });
            prices.cost(model, tokens).map(|cost| (cost.cost, cost.saved))
        });
        Self { client: Arc::new(HttpModelClient::new(env.lookup())), pricing, redactor: redactor.clone() }
    }

    fn helpers(&self) -> Helpers {
        let asking = BackendAsker::new().with_client(self.client.clone()).with_pricing(self.pricing.clone());
        Helpers { asker: Some(Arc::new(asking)), pricing: Some(self.pricing.clone()), on_stuck: None }
    }
}

fn agents(
    env: &Environment,
    home: &StateHome,
    spec: &RunSpec,
    access: &ModelAccess,
) -> Result<Vec<Box<dyn Agent>>, AppError> {
    let mut agents: Vec<Box<dyn Agent>> = Vec::new();
    for config in &spec.settings.agents {
        match config.kind {
            AgentKind::Cli => {
                let mut user = hooks::user_side(env, spec, config);
                let name = presets::preset_of(&config.command_argv);
                let here = name.filter(|_| !spec.settings.sandbox.provider().is_elsewhere());
                user.model = here.and_then(|name| crate::agents::isolation::own_value(env, name, "model"));
                let agent = CliAgent::new(config.clone())
                    .with_hooks(hooks::of_agent(env, home, spec, config)?)
                    .with_user(user);
                agents.push(Box::new(match program_of(env, spec, config) {
                    Some(program) => agent.with_program(program),
                    None => agent,
                }));
            }
            AgentKind::Actions => agents.push(Box::new(
                ActionsAgent::new(
                    config.clone(),
                    spec.settings.models.clone(),
                    access.pricing.clone(),
                    access.client.clone(),
                )
                .with_redactor(access.redactor.clone()),
            )),
            AgentKind::Tools => {
                let mut agent = ToolsAgent::new(
                    config.clone(),
                    spec.settings.models.clone(),
                    access.pricing.clone(),
                    access.client.clone(),
                    env.tools(),
                )
                .with_redactor(access.redactor.clone())
                .with_temp_dir(env.vars().temp_dir());
                if let Some(path) = awaited_file(spec) {
                    agent = agent.with_done_file(path.into());
                }
                agents.push(Box::new(agent));
            }
            AgentKind::Scripted => {
                let name = config.script.clone().unwrap_or_default();
                let path = spec.origin.join(&name);
                if !is_inside(&name) {
                    return Err(AppError::usage(format!(
                        "the script {} is not a file of the repo",
                        quoted(&name)
                    ))
                    .hint("`script` names a file below the folder of the run, without `..`"));
                }
                let text = read_script(&path)?;
                let agent = ScriptedAgent::from_json(config.clone(), &text)
                    .map_err(|e| AppError::usage(format!("{}:{}: {}", path.display(), e.line, e.message)))?;
                agents.push(Box::new(agent));
            }
        }
    }
    Ok(agents)
}

/// The path of a known agent's program, resolved at each start: outside the repo, or as the user allowed.
/// Remote programs are resolved there.
fn program_of(env: &Environment, spec: &RunSpec, config: &AgentConfig) -> Option<ProgramSource> {
    let name = presets::preset_of(&config.command_argv)?;
    if spec.settings.sandbox.provider().is_elsewhere() {
        return None;
    }
    let (programs, grants) = (settings::programs(env, &spec.origin), env.grants(&spec.origin));
    let (argv, workspace) = (config.command_argv.clone(), spec.workspace.clone());
    Some(ProgramSource::new(move || {
        let found = programs.known(&argv).ok_or_else(|| format!("the program `{name}` no longer exists"))?;
        let inside = || found.path.canonicalize().is_ok_and(|real| real.starts_with(&workspace));
        match &found.ask {
            Some(ask) if !grants.allow(ask) => Err(format!(
                "{} is not what you have allowed to be started as `{name}`: `ralph trust` shows it",
                found.path.display()
            )),
            None if inside() => Err(format!("`{}` is a file of the agent's own", found.path.display())),
            _ => {
                Ok(ProgramPlace { program: found.path.display().to_string(), path: programs.guarded_path() })
            }
        }
    }))
}

/// The file that signals completion, if this run waits for one.
fn awaited_file(spec: &RunSpec) -> Option<&str> {
    spec.settings.verifiers.iter().find_map(|verifier| match &verifier.expect {
        Some(Expect::FileExists { path }) if path.ends_with("DONE.md") => Some(path.as_str()),
        _ => None,
    })
}

fn read_script(path: &Path) -> Result<String, AppError> {
    repo_file::read_text(path).map_err(|e| {
        AppError::usage(format!("cannot read the script `{}`: {e}", path.display()))
            .hint(repo_file::remedy(&e).unwrap_or("`script` names a file below the folder of the run"))
    })
}
