//! Turns a request into a validated plan, and a plan into a driver.

mod asked;
mod checks;
mod driven;
mod fork;
mod issue;
mod leftovers;
pub(crate) mod memory;
pub(crate) mod options;
mod place;
pub(crate) mod placement;
mod preview;
mod source;
pub(crate) mod task;
pub(crate) mod unfinished;

use crate::config::settings::LoadedSettings;
use crate::config::{model_access, models, notify, settings};
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::report::{Notice, Reporter};
use crate::request::{RunRequest, TaskInput, Workplace};
use crate::start::{asked_by, handover, locks, sandboxes};
use crate::task::hidden;
use crate::task::lint::checks::{TaskCheck, sourced};
use crate::trust::consent::{TaskPrivileges, TrustScan};
use crate::trust::record_trust;
use crate::wiring;
pub(crate) use asked::asked;
pub(crate) use driven::watch_dotenv;
pub use driven::{RunReport, StartedRun};
use driven::{handed_state, has_ended, remove_agent_copy};
pub use fork::ForkRequest;
pub(crate) use fork::fork;
use jiff::Timestamp;
use placement::PlacementRequest;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::{CancelToken, Run, RunWriter};
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_git::{CloneDepth, Repo};
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::folder::shown;
use ralph_loop_protocol::id::{AgentName, Digest, RunId};
use ralph_loop_task::config::{CloneConfig, Isolation, ProviderName, Settings};
use ralph_loop_task::dialect::Publish;
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};
pub(crate) use source::{asked_for_source, settle, trust_stores};
use std::path::Path;
use std::sync::Arc;

/// A validated run, with nothing created yet.
pub struct Plan {
    /// The request, with its place settled.
    request: RunRequest,
    /// The run's environment, with the repo's `.env`.
    env: Environment,
    home: StateHome,
    origin: Repo,
    task: Task,
    settings: Settings,
    chosen: task::ChosenTask,
    extent: CloneDepth,
    /// The permissions the run is allowed.
    allowed: Vec<Digest>,
    unpriced: Vec<AgentName>,
    checks: Vec<TaskCheck>,
    config_digest: Option<Digest>,
    /// An unfinished run of the same task and settings, which continues instead.
    resumes: Option<RunId>,
    /// Where it forks from another run.
    fork: Option<fork::ForkPoint>,
    /// Checks that agents must not see.
    hidden: Vec<hidden::HiddenCriterion>,
}

impl Plan {
    pub fn task(&self) -> &Task {
        &self.task
    }
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// The checks that must pass, with their sources.
    pub fn checks(&self) -> &[TaskCheck] {
        &self.checks
    }
    /// The unfinished run that would continue instead of a new one.
    pub fn resumes(&self) -> Option<&RunId> {
        self.resumes.as_ref()
    }
    pub(crate) fn environment(&self) -> &Environment {
        &self.env
    }
    pub(crate) fn request(&self) -> &RunRequest {
        &self.request
    }
    pub(crate) fn top(&self) -> &Path {
        &self.origin.top
    }
}

/// Validates and settles everything before anything is created.
pub(crate) fn prepare(
    env: &Environment,
    request: &RunRequest,
    report: &dyn Reporter,
) -> Result<Plan, AppError> {
    let env = &env.for_run_of(request.asked_by.as_deref());
    let request = &settle(env, request)?;
    let top = find::top(&request.folder);
    let env = env.with_dotenv(&top)?;
    let env = source::with_config_beside_task(env, request);
    if request.part != CloneConfig::default() {
        return Err(AppError::usage(
            "`depth` and `sparse` say how much to clone, and this run clones nothing",
        )
        .hint("add `--clone .`, or name the repo in the task (`repo_url`, `repository.url`)"));
    }
    let home = env.state_home()?;
    placement::sweep(&home);
    let origin = Repo::discover(env.vars(), &top)?;
    refuse_linked(&origin.top)?;
    // Approvals are checked first; the rest assumes that everything was allowed.
    let open = env.trusting_all();
    let loaded = settings::load(&open, &origin.top)?;
    let models = models::load(&open, &origin.top)?;
    let gathering = TrustScan {
        env: &env,
        top: &origin.top,
        request,
        loaded: &loaded,
        models: &models,
        task: None,
        working_dir: None,
    };
    let issue = match &request.task {
        TaskInput::Issue(named) => {
            let asked = gathering.asked()?;
            let allowed = asked.settle(&env, request.yes)?;
            let env = asked.allowed_in(&env, &allowed);
            let named = (named.as_str(), request.pinned.as_ref());
            Some(issue::fetch(&env, named, &origin, &loaded.file, report)?)
        }
        _ => None,
    };
    if let Some(pinned) = &request.pinned {
        pinned.check_file(&request.folder, request.file())?;
    }
    let mut chosen = task::of_request(&env, request, &top, issue.as_ref())?;
    let words = chosen.source(request).map(|source| TaskPrivileges {
        source,
        settings: &chosen.settings,
        models: &chosen.model,
        asks_to_publish: chosen.asks_to_publish(),
    });
    let working_dir = chosen.task.working_dir.as_deref();
    let asked = TrustScan { task: words, working_dir, ..gathering }.asked()?;
    let allowed = asked.settle(&env, request.yes)?;
    let env = asked.allowed_in(&env, &allowed);
    let publishes_unasked = request.publish.is_none()
        && !(request.yes || request.publish_settled)
        && words.filter(|words| !words.asks_to_publish).is_some_and(|words| {
            let mut settings = words.settings.clone();
            settings::screened(&env, &origin.top, &loaded.user, words.source, &mut settings);
            settings.publish != words.settings.publish
        });
    let task = without_secrets(chosen.task.clone(), &env.redactor(&top));
    // Report all missing things at once.
    let mut missing = Vec::new();
    let sandbox = sandboxes::choose(&env, request, &loaded, chosen.settings.sandbox.as_ref());
    let sandbox = sandbox.unwrap_or_else(|error| {
        missing.push(error);
        Default::default()
    });
    let mut request = request.clone();
    let isolation = if sandbox.provider().is_elsewhere() {
        // A sandbox must not work in the user's own tree.
        if request.place == Workplace::InPlace {
            request.place = Workplace::Worktree;
        }
        Isolation::Auto
    } else {
        options::isolation(&env, &request, &loaded).unwrap_or_else(|error| {
            missing.push(error);
            Isolation::Auto
        })
    };
    chosen.settings.sandbox = Some(sandbox);
    let publishes = loaded.file.clone().with_task(chosen.settings.clone());
    let resolved = options::resolve(
        &env,
        &request,
        loaded.clone(),
        std::mem::take(&mut chosen.settings),
        (&models, &chosen.model),
        (isolation, &origin.top),
    );
    let (mut settings, assumptions) = resolved.unwrap_or_else(|error| {
        missing.push(error);
        let mut settings = publishes.resolve();
        settings.handover.publish = request.publish.unwrap_or(settings.handover.publish);
        (settings, Default::default())
    });
    let hidden = hidden_criteria(&origin, isolation, &settings).unwrap_or_else(|error| {
        missing.push(error);
        Vec::new()
    });
    hidden::add_to(&mut settings, &hidden);
    if let Some(issue) = &issue {
        adopt_issue(issue, &request, &loaded, &mut settings, &mut chosen);
    }
    if publishes_unasked && issue.is_none() {
        keep_here(&env, &mut settings, &origin, report);
    }
    missing.extend(
        settle_handover(&env, &request, &mut settings, (&task, chosen.asks_pr), (&origin, &loaded), report)
            .err(),
    );
    if let Some(error) = AppError::all(missing) {
        return Err(error);
    }
    let resumes = unfinished::of(&home, &request, &origin, &task, &settings)?;
    if let Some(run) = unfinished::beside(&home, &request, &origin, &task) {
        report.notice(&Notice::OtherUnfinished { run: &run });
    }
    let extent = place::extent(&request, loaded.file.clone.as_ref(), &chosen)?;
    let unpriced =
        model_access::unpriced(&settings, &models.prices).into_iter().map(|a| a.name.clone()).collect();
    if resumes.is_none() && !assumptions.is_empty() {
        report.notice(&Notice::Assumed {
            assumptions: &assumptions,
            settings: &settings,
            place: &request.place,
        });
    }
    let checks = sourced(&settings, &chosen.checks, &loaded, &assumptions, &request.overrides);
    if resumes.is_none() {
        report.notice(&Notice::Checks(&checks));
    }
    let by_task = request.publish.is_none() && loaded.file.publish.is_none();
    if let Some(url) = chosen.repo_url.as_deref().filter(|_| by_task && settings.handover.pushes()) {
        report.notice(&Notice::TaskPushes { url });
    }
    let in_place = request.place == Workplace::InPlace;
    Ok(Plan {
        request,
        env,
        home,
        origin,
        task,
        settings,
        chosen,
        extent,
        allowed,
        unpriced,
        checks,
        config_digest: loaded.repo_digest.filter(|_| in_place),
        resumes,
        fork: None,
        hidden,
    })
}

/// The repo's hidden criteria; refuses them if the agent could read them.
fn hidden_criteria(
    origin: &Repo,
    isolation: Isolation,
    settings: &Settings,
) -> Result<Vec<hidden::HiddenCriterion>, AppError> {
    let found = hidden::read(origin)?;
    if found.is_empty() || isolation != Isolation::None || settings.sandbox.provider().is_elsewhere() {
        return Ok(found);
    }
    Err(AppError::usage("hidden criteria need a sandbox, and this run has none")
        .cause("an agent with `--isolation none` can read `.ralph/hidden/`")
        .hint("run without `--isolation none`, or move `.ralph/hidden` out of the repo"))
}

/// Rejects a linked `.ralph`: a run writes there and follows no links.
fn refuse_linked(top: &Path) -> Result<(), AppError> {
    let dir = RalphDir::of(top);
    match std::fs::symlink_metadata(dir.path()) {
        Ok(meta) if !meta.is_dir() => Err(AppError::usage(format!(
            "`{}` is not a folder",
            dir.path().display()
        ))
        .hint(
            "ralph keeps its files there and doesn't follow links: replace it with a real folder, or remove it",
        )),
        _ => Ok(()),
    }
}

/// Applies an issue's metadata: the pull request links to it, and the branch is named after it.
fn adopt_issue(
    issue: &issue::Issue,
    request: &RunRequest,
    loaded: &LoadedSettings,
    settings: &mut Settings,
    chosen: &mut task::ChosenTask,
) {
    settings.handover.issue = Some(issue.number);
    if request.publish.is_none() && loaded.file.publish.is_none() {
        settings.handover.publish = Publish::Pr;
    }
    if chosen.branch.is_none() {
        chosen.branch = Some(issue.branch());
    }
}

/// Leaves the result here although the task's format publishes by default: a repo's file doesn't decide that.
fn keep_here(env: &Environment, settings: &mut Settings, origin: &Repo, report: &dyn Reporter) {
    let is_pr = settings.handover.publish == Publish::Pr;
    if settings.handover.publish == Publish::None || is_pr && !handover::is_known(env, settings, origin) {
        return;
    }
    settings.handover.publish = Publish::None;
    report.notice(&Notice::StaysHere {
        reason: "the task's format publishes it, which only you can allow (`--publish pr`, or `ralph trust`)",
    });
}

fn settle_handover(
    env: &Environment,
    request: &RunRequest,
    settings: &mut Settings,
    (task, asks_pr): (&Task, bool),
    (origin, loaded): (&Repo, &LoadedSettings),
    report: &dyn Reporter,
) -> Result<(), AppError> {
    let by_issue = matches!(request.task, TaskInput::Issue(_));
    let wanted = request.publish.is_some() || by_issue || asks_pr || loaded.file.publish.is_some();
    let url = match &request.place {
        Workplace::Clone { from, .. } if handover::is_elsewhere(from) => Some(from.clone()),
        _ => handover::remote_url(origin, &settings.handover.remote),
    };
    handover::resolve(env, settings, task, url.as_deref(), origin, wanted, report)
}

/// Creates what a plan needs and wires the backends. The run is registered before its workspace is created.
pub(crate) fn start(
    plan: Plan,
    cancel: Arc<CancelToken>,
    report: &dyn Reporter,
) -> Result<StartedRun, AppError> {
    let now = SystemClock::default().now();
    let run_id = plan.request.run_id.clone().unwrap_or_else(|| ralph_loop_core::run_id::new(now));
    let spec = planned(&plan, run_id, now)?;
    if spec.hands_back() {
        report.notice(&Notice::CopyingTree);
    }
    let Plan { request, env, home, .. } = &plan;
    place::exclude_state(&plan.origin, &spec)?;
    let placement_request = PlacementRequest::of(&plan, &spec.run_id);
    let mut lock = locks::of_folder(home, spec.home(), &spec.run_id)?;
    let begun = || -> Result<StartedRun, AppError> {
        home.record(&spec.run_id).create()?;
        locks::lead(home, &spec.run_id, &lock);
        record_trust::write(home, &spec.run_id, &plan.allowed)?;
        placement_request.keep(env, home, &spec.run_id)?;
        asked_by::keep(&home.record(&spec.run_id), plan.request.asked_by.as_deref())?;
        hidden::keep(home, &spec.run_id, &plan.hidden)?;
        let mut writer = RunWriter::create(spec.clone(), &wiring::writer_options(env, home, &spec)?)?;
        wiring::register(home, &spec)?;
        shown::link(&RalphDir::of(&spec.origin), &spec.run_id, &home.record(&spec.run_id));
        link_record(env, home, request, &spec.run_id);
        let left_out = placement::make(env, home, &mut writer, &placement_request, report)?;
        let spec = writer.state().spec.clone();
        if let Some(fork) = &plan.fork {
            fork.begin(env, &spec, &home.record(&spec.run_id))?;
        }
        report.notice(&Notice::Starting { spec: &spec, unpriced: &plan.unpriced });
        report.notice(&Notice::LeftOut(&left_out));
        warn_uncommitted(&plan, &spec, report);
        let missing = ralph_loop_git::checkout::submodules::missing(&plan.origin);
        if !missing.is_empty() {
            report.notice(&Notice::MissingSubmodules(&missing));
        }
        let repo = Repo::discover(env.vars(), spec.home())?;
        let mut parts = wiring::parts(env, home, &spec, repo, &lock, cancel, report)?;
        parts.notifiers = notify::notifiers(env, &request.notify)?;
        let run = Run::open(writer, parts)?;
        lock.record_driver(run.lease())?;
        let dotenv = watch_dotenv(env.vars(), home, &spec);
        Ok(StartedRun { run, lock, vars: env.vars().clone(), home: home.clone(), dotenv })
    };
    begun().inspect_err(|_| {
        placement::forget(env, home, &spec);
        place::leave_run_branch(&plan.origin, &spec);
    })
}

/// Reports that a separate workspace doesn't include the user's uncommitted changes.
fn warn_uncommitted(plan: &Plan, spec: &RunSpec, report: &dyn Reporter) {
    if let Some(fork) = &plan.fork {
        if let Some(unfinished) = &fork.unfinished {
            report.notice(&Notice::WithUnfinished { run: &fork.from.run, files: &unfinished.files });
        }
        return;
    }
    if spec.place != WorkspaceKind::Worktree || plan.request.base.is_some() {
        return;
    }
    let args = ["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all"];
    let Ok(status) = plan.origin.git().call(args).run() else { return };
    let text = status.text();
    let files: Vec<String> = text
        .split('\0')
        .filter_map(|line| line.get(3..))
        .filter(|path| !path.is_empty() && *path != spec.task.source && !path.starts_with(".ralph/"))
        .map(str::to_owned)
        .collect();
    if !files.is_empty() {
        report.notice(&Notice::StayBehind { files: &files });
    }
}

/// Makes the run visible in the folder of the request, if that isn't in its repo.
fn link_record(env: &Environment, home: &StateHome, request: &RunRequest, run: &RunId) {
    let Some(folder) = &request.asked_in else { return };
    let top = find::top(folder);
    if let Ok(repo) = Repo::discover(env.vars(), &top) {
        let _ = repo.exclude_ralph_dir();
    }
    let dir = RalphDir::of(&top);
    if std::fs::create_dir_all(dir.path()).is_ok() {
        shown::link(&dir, run, &home.record(run));
    }
}

/// The spec of a run, with the requested workspace and branch.
fn planned(plan: &Plan, run_id: RunId, now: Timestamp) -> Result<RunSpec, AppError> {
    let Plan { env, home, origin, settings, .. } = plan;
    let request = PlacementRequest::of(plan, &run_id);
    place::check_free(home, origin, &request)?;
    let in_place = request.place == Workplace::InPlace;
    let own_tree = in_place && settings.isolation == Isolation::None;
    let copied = !in_place && needs_agent_copy(settings);
    let tree = home.workspace(&run_id);
    let copy = if copied { home.agent_copy(&run_id) } else { tree.clone() };
    let workspace = if own_tree { origin.top.clone() } else { copy };
    let own_branch = || match in_place {
        true => origin.branch.clone().filter(|_| settings.checkpoint_commits),
        false => Some(format!("ralph/{run_id}")),
    };
    let unproven = leftovers::unproven_runs(env.vars(), home, origin, &request.place);
    let spec = RunSpec {
        version: 1,
        spec_version: 1,
        created_at: now,
        task: plan.task.clone(),
        settings: settings.clone(),
        place: request.place(env, origin),
        workspace,
        origin: origin.top.clone(),
        handed_to: copied.then_some(tree),
        branch: request.branch.clone().or_else(|| request.task_branch.clone()).or_else(own_branch),
        config_digest: plan.config_digest.clone(),
        forked_from: plan.fork.as_ref().map(|fork| fork.from.clone()),
        unproven_runs: unproven.iter().map(|(run, _)| run.clone()).collect(),
        run_id,
    };
    leftovers::refuse_protected(origin, &spec, &unproven, in_place)?;
    Ok(spec)
}

/// Whether the agent of a worktree or clone gets a copy: wherever it could write to a git folder on this
/// machine. Clouds copy anyway and return no git folder.
pub(crate) fn needs_agent_copy(settings: &Settings) -> bool {
    match settings.sandbox.provider() {
        ProviderName::Local => settings.isolation != Isolation::None,
        provider => provider.mounts(),
    }
}

/// The latest run in this folder, except the one being created.
fn latest_run_in(home: &StateHome, folder: &Path, without: Option<&RunId>) -> Option<Registration> {
    let here = |entry: &Registration| entry.workspace == folder && Some(&entry.run_id) != without;
    find::runs_of(home, folder).into_iter().rfind(here)
}

/// The task as spec and prompts keep it: redacted, because it is written to disk.
fn without_secrets(task: Task, redactor: &ralph_loop_domain::redact::Redactor) -> Task {
    let clean = |text: &str| redactor.text(text).into_owned();
    Task { title: clean(&task.title), text: clean(&task.text), raw: task.raw.as_deref().map(clean), ..task }
}
