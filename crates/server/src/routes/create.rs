//! Creates a run for the dashboard or a program.

use super::prepare::known_repo;
use super::runs::forget_unbegun;
use crate::auth::Caller;
use crate::http::extract::{Answer, Body};
use crate::http::problem::Problem;
use crate::people::Role;
use crate::routes::record::shown_path::{refuse_private_task, shown_path};
use crate::row::RunRow;
use crate::scheduler::{AuthSource, Queued};
use crate::server::Server;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use ralph_loop_app::config::{model_access, models, settings};
use ralph_loop_app::race::RaceBy;
use ralph_loop_app::task::task_source;
use ralph_loop_app::trust::pinned::Pinned;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{Environment, Overrides, RaceRequest, RunRequest, TaskInput, Unfinished, Workplace};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::{Digest, RunId};
use ralph_loop_task::config::{CloneConfig, Isolation, Mode, ProviderName, SandboxConfig};
use ralph_loop_task::dialect::{self, Dialect, Publish, TaskTexts, detect_text};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// How long a response waits for the run to start.
const BEGIN: Duration = Duration::from_secs(8);
/// Polling interval for a row being written.
const ROW: Duration = Duration::from_millis(50);
/// Size limits of a task and of an idempotency key.
const TASK_MAX: usize = 160 * 1024;
const KEY_MAX: usize = 200;
/// Limits for labels of a run and for their length.
const LABELS_MAX: usize = 20;
const LABEL_MAX: usize = 100;

/// A requested run. Omitted fields come from the task, the configuration and the environment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CreateRun {
    /// A folder of `GET /repos`, or a URL to clone.
    repo: String,
    /// The task: a sentence, or the text of a task file.
    text: Option<String>,
    /// The same as `text`.
    task: Option<String>,
    /// A task file in the repo.
    task_file: Option<String>,
    /// Commands that must pass.
    verify: Vec<String>,
    /// The base branch.
    base_branch: Option<String>,
    /// The sandbox provider.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    provider: Option<ProviderName>,
    /// The image of the sandbox.
    image: Option<String>,
    /// Its size.
    resources: Option<Resources>,
    /// Only these agents, in this order.
    agents: Vec<String>,
    /// The model for every agent that takes one.
    model: Option<String>,
    /// Model profiles.
    profiles: Option<Profiles>,
    /// Sandbox strength on this machine. `landlock` and `none` require the admin role.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    isolation: Option<Isolation>,
    /// What users may do to the run: autonomous, guided or debug.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    mode: Option<Mode>,
    /// `in_place`, `worktree` or `clone`.
    place: Option<String>,
    /// Clone only the last commits.
    depth: Option<u32>,
    /// Clone only these folders; an empty name means the task's `working_dir`.
    sparse: Vec<String>,
    /// What to do with the proven work: none, push or pr.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    publish: Option<Publish>,
    /// The hard limits.
    limits: Option<Limits>,
    /// Login for the code host: pat, app or none.
    auth: Option<AuthSource>,
    /// Several runs in parallel instead of one: agents or models, or a number (`["3"]`: three of the same).
    /// The first proven result wins and the others are stopped; they share the budget.
    race: Vec<String>,
    /// With `race`: wait for all, and the best proven result wins: by `metric`, `diff` or `cost`.
    best: Option<RaceBy>,
    /// In a fleet: labels the worker must have, in addition to the run's agents and provider.
    labels: Vec<String>,
}

/// Size of a sandbox.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Resources {
    /// Processors.
    cpus: Option<f64>,
    /// Memory.
    memory_mb: Option<f64>,
    /// Disk.
    disk_gb: Option<f64>,
}

/// Model profiles of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Profiles {
    /// The default profile.
    default: Option<String>,
    /// The fallback profile.
    fallback: Option<String>,
}

/// The hard limits.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Iteration limit.
    max_iterations: Option<u32>,
    /// Working time limit in minutes.
    max_minutes: Option<f64>,
    /// Cost limit.
    max_cost_usd: Option<f64>,
}

/// Where a run starts.
pub(super) struct StartPlace {
    pub(super) folder: PathBuf,
    /// It is a URL to clone.
    pub(super) is_address: bool,
}

/// Whether a repo is a URL to clone, not a local folder.
pub(super) fn is_address(repo: &str) -> bool {
    repo.starts_with("https://") || repo.starts_with("ssh://") || repo.starts_with("git@")
}

/// The repo of a request: a known folder or a URL.
pub(super) async fn place_of(server: &Server, body: &CreateRun) -> Result<StartPlace, Problem> {
    let repo = body.repo.trim();
    if is_address(repo) {
        // A name that a program could parse as an option.
        if repo.contains("://-") || repo.contains("@-") {
            return Err(Problem::bad("`repo` is an address without a host"));
        }
        // Only the starting point of the request.
        let folder = server.repos.first().cloned().unwrap_or_else(|| server.home.path().to_owned());
        return Ok(StartPlace { folder, is_address: true });
    }
    if repo.is_empty() {
        return Err(
            Problem::bad("`repo` says where the work is").hint("`GET /api/v1/repos` lists the folders")
        );
    }
    Ok(StartPlace { folder: known_repo(server, repo).await?, is_address: false })
}

impl CreateRun {
    /// The engine's request.
    pub(super) fn request(&self, place: &StartPlace, caller: &Caller) -> Result<RunRequest, Problem> {
        if matches!(self.isolation, Some(Isolation::None | Isolation::Landlock)) {
            caller.may(Role::Admin)?;
        }
        let limits = self.limits.unwrap_or_default();
        let size = self.resources.unwrap_or_default();
        for (name, number) in [
            ("max_minutes", limits.max_minutes),
            ("cpus", size.cpus),
            ("memory_mb", size.memory_mb),
            ("disk_gb", size.disk_gb),
        ] {
            if number.is_some_and(|number| !number.is_finite() || number <= 0.0) {
                return Err(Problem::bad(format!("`{name}` must be a number above 0")));
            }
        }
        if limits.max_cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            return Err(Problem::bad("`max_cost_usd` must be a number of at least 0"));
        }
        let overrides = Overrides {
            max_iterations: limits.max_iterations,
            max_seconds: limits.max_minutes.map(|minutes| (minutes * 60.0) as u64),
            max_cost: limits.max_cost_usd,
            agents: self.agents.clone(),
            model: self.model.clone().filter(|model| !model.is_empty()),
            verify: self.verify.iter().filter(|line| !line.trim().is_empty()).cloned().collect(),
            mode: self.mode,
            ..Overrides::default()
        };
        if self.depth == Some(0) {
            return Err(Problem::bad("`depth` must be at least 1"));
        }
        if self.race.is_empty() && self.best.is_some() {
            return Err(Problem::bad("`best` is for a race").hint("name in `race` who races"));
        }
        let race = (!self.race.is_empty()).then(|| RaceRequest {
            who: self.race.iter().map(|name| name.trim().to_owned()).collect(),
            by: self.best.unwrap_or_default(),
            runs: Vec::new(),
        });
        let sandbox = SandboxConfig {
            image: self.image.clone().filter(|image| !image.is_empty()),
            vcpu: size.cpus,
            memory_gib: size.memory_mb.map(|mb| mb / 1024.0),
            disk_gib: size.disk_gb,
            ..SandboxConfig::default()
        };
        Ok(RunRequest {
            task: self.task()?,
            unfinished: Unfinished::StartAnew,
            overrides,
            part: match self.place(place)? {
                Workplace::Clone { .. } => CloneConfig::default(),
                _ => CloneConfig { depth: self.depth, sparse: self.sparse.clone() },
            },
            place: self.place(place)?,
            isolation: self.isolation,
            provider: self.provider,
            sandbox: (sandbox != SandboxConfig::default()).then_some(sandbox),
            base: self.base_branch.clone().filter(|base| !base.is_empty()),
            publish: self.publish,
            asked_by: Some(caller.person.name.clone()),
            race,
            ..RunRequest::in_folder(&place.folder)
        })
    }

    fn task(&self) -> Result<TaskInput, Problem> {
        let text = self.text.as_ref().or(self.task.as_ref()).filter(|text| !text.trim().is_empty());
        match (text, &self.task_file) {
            (Some(text), None) if text.len() <= TASK_MAX => Ok(TaskInput::Text(text.clone())),
            (Some(_), None) => Err(Problem::bad(format!("the task has more than {} kB", TASK_MAX / 1024))),
            // Files hidden from users must not become a task, which all users can read.
            (None, Some(file)) if shown_path(file).is_ok() => Ok(TaskInput::File(file.into())),
            (None, Some(_)) => Err(Problem::bad(
                "`task_file` is a path in the repo, without `..`, and no file that holds secrets",
            )),
            (Some(_), Some(_)) => Err(Problem::bad("either `text` or `task_file`, and not both")),
            (None, None) => Ok(TaskInput::Found),
        }
    }

    fn place(&self, place: &StartPlace) -> Result<Workplace, Problem> {
        let clone = |from: &str| Workplace::Clone {
            from: from.to_owned(),
            depth: self.depth,
            sparse: self.sparse.clone(),
        };
        match (self.place.as_deref(), place.is_address) {
            (None | Some("" | "clone"), true) => Ok(clone(self.repo.trim())),
            (None | Some("" | "worktree"), false) => Ok(Workplace::Worktree),
            (Some("in_place"), false) => Ok(Workplace::InPlace),
            (Some("clone"), false) => Ok(clone(&place.folder.display().to_string())),
            _ => Err(Problem::bad("`place` must be in_place, worktree or clone; URLs are always cloned")),
        }
    }

    /// Rejects unknown model profiles before the run waits for its turn.
    fn check_models(&self, env: &Environment, folder: &Path) -> Result<(), Problem> {
        let profiles = self.profiles.clone().unwrap_or_default();
        if self.model.is_none() && profiles.default.is_none() && profiles.fallback.is_none() {
            return Ok(());
        }
        let models = models::load(env, folder)?.models;
        let mut settings = settings::load(env, folder)?.file.resolve();
        settings.agents.retain(|agent| {
            self.agents.is_empty() || self.agents.iter().any(|name| agent.name.as_str() == name)
        });
        for (field, name) in [("default", profiles.default), ("fallback", profiles.fallback)] {
            if let Some(name) = name.filter(|name| models.get(name).is_none()) {
                let shown = one_line(&name, 60);
                return Err(Problem::refused(format!("`profiles.{field}`: there is no profile `{shown}`"))
                    .hint(models.known_for(&name)));
            }
        }
        settings.models = models;
        match self.model.as_deref().filter(|model| !model.is_empty()) {
            Some(model) => Ok(model_access::check_choice(env, &settings, None, model)?),
            None => Ok(()),
        }
    }

    /// The limits for iterations and dollars, as far as configuration, task and request say before the start.
    fn limits_known(&self, env: &Environment, folder: Option<&Path>) -> (u32, f64) {
        let config = match folder {
            Some(folder) => settings::load(env, folder).map(|loaded| loaded.file),
            None => settings::user_file(env),
        };
        let task = self.task_text(folder).and_then(|(name, text)| {
            let dialect = detect_text(&name, &text);
            dialect::read(dialect, &TaskTexts::new(&name, text))
        });
        let of_task = task.map(|task| task.settings).unwrap_or_default();
        let budgets = config.unwrap_or_default().with_task(of_task).resolve().budgets;
        let limits = self.limits.unwrap_or_default();
        (
            limits.max_iterations.unwrap_or(budgets.max_iterations),
            limits.max_cost_usd.unwrap_or_else(|| budgets.max_cost.dollars()),
        )
    }

    /// The task's file name and text, if it is here already.
    fn task_text(&self, folder: Option<&Path>) -> Option<(String, String)> {
        if let Some(text) = self.text.as_ref().or(self.task.as_ref()) {
            return Some((Dialect::PromptMd.main_file().to_owned(), text.clone()));
        }
        let folder = folder?;
        let name = self.task_file.clone().or_else(|| {
            task_source::candidates(folder).first().map(|dialect| dialect.main_file().to_owned())
        })?;
        let text = repo_file::read_text(&folder.join(&name)).ok()?;
        Some((name, text))
    }

    /// The worker's labels. Only a fleet run chooses a worker.
    fn labels(&self, goes_to_fleet: bool) -> Result<(), Problem> {
        let fits = |label: &String| {
            (1..=LABEL_MAX).contains(&label.len()) && label.chars().all(|c| c.is_ascii_graphic() && c != ',')
        };
        if self.labels.is_empty() {
            return Ok(());
        }
        if !goes_to_fleet {
            return Err(Problem::bad("`labels` choose a worker, and this run goes to none")
                .hint("runs of an address go to workers, where the server has a fleet (docs/SCALE.md)"));
        }
        if self.labels.len() > LABELS_MAX || !self.labels.iter().all(fits) {
            return Err(Problem::bad(format!(
                "`labels` are at most {LABELS_MAX} words of at most {LABEL_MAX} characters, without a comma"
            )));
        }
        Ok(())
    }

    /// Fuzzing entry point: parses without a server and returns a score of what was understood.
    pub(super) fn read_whole(&self) -> usize {
        let place = StartPlace { folder: PathBuf::from("/repo"), is_address: false };
        let read = [self.task().is_ok(), self.place(&place).is_ok(), !self.title().is_empty()];
        read.into_iter().filter(|read| *read).count()
    }

    fn title(&self) -> String {
        let text =
            self.text.as_deref().or(self.task.as_deref()).or(self.task_file.as_deref()).unwrap_or_default();
        let mut lines = text.lines().map(|line| line.trim().trim_start_matches('#').trim());
        let first = lines.find(|line| !line.is_empty() && *line != "---");
        one_line(first.unwrap_or("the task of the repo"), 80)
    }
}

pub(crate) async fn create(
    State(server): State<Arc<Server>>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<CreateRun>,
) -> Answer<(StatusCode, Json<RunRow>)> {
    caller.may(Role::Operator)?;
    let place = place_of(&server, &body).await?;
    let mut request = body.request(&place, &caller)?;
    let goes_to_fleet = server.fleet.is_some() && place.is_address && body.race.is_empty();
    body.labels(goes_to_fleet)?;
    if !place.is_address {
        let (env, folder, body) = (server.app.environment().clone(), place.folder.clone(), body.clone());
        server.blocking(move || body.check_models(&env, &folder)).await?;
    }
    let now = server.now();
    if !place.is_address && matches!(request.task, TaskInput::Found | TaskInput::File(_)) {
        let (own, folder, by) = (server.clone(), place.folder.clone(), caller.person.name.clone());
        let file = request.file().map(Path::to_owned);
        let pinned = move || {
            file.iter().try_for_each(|file| refuse_private_task(own.app.environment(), &folder, file))?;
            Ok(Pinned::file(&folder, file.as_deref(), &by, now))
        };
        request.pinned = server.blocking(pinned).await?;
    }
    let mut run = ralph_loop_core::run_id::new(now);
    let key = idempotency_key(&headers, &caller)?;
    let mut before = None;
    if let Some(key) = &key {
        let wanted = Digest::of(serde_json::to_string(&body).unwrap_or_default().as_bytes());
        let known =
            server.index.remember_key(key, wanted.as_str(), run.as_str(), now.as_millisecond()).await?;
        if let Some(known) = known {
            if known.request != wanted.as_str() {
                return Err(Problem::refused("this `Idempotency-Key` was already used for another request")
                    .hint("use a new key for a new run"));
            }
            run = RunId::new(known.run);
            before = Some(known.kept != 0);
        }
    }
    // A repeated request waits until the first one is stored. If that failed, this one creates the same run.
    let alone = server.edit_alone(&run).await;
    if let Some(was_kept) = before {
        match row_of(&server, &run).await? {
            Some(row) => return Ok((StatusCode::OK, Json(row))),
            None if was_kept => return Err(Problem::missing("the run of that key is gone")),
            None => {}
        }
    }
    let wanted = Wanted { run: run.clone(), request, place, body, now };
    let made = wanted.make(&server, &caller, alone).await;
    match (&made, &key) {
        (Ok(_), Some(key)) => server.index.keep_key(key, run.as_str()).await?,
        (Err(problem), Some(key)) if problem.status().is_client_error() => {
            server.index.forget_key(key, run.as_str()).await?;
        }
        _ => {}
    }
    Ok((StatusCode::CREATED, Json(made?)))
}

/// A requested run with its id.
struct Wanted {
    run: RunId,
    request: RunRequest,
    place: StartPlace,
    body: CreateRun,
    now: Timestamp,
}

impl Wanted {
    /// Passes it to the fleet or the scheduler; releases `alone` once it is stored.
    async fn make(
        self,
        server: &Arc<Server>,
        caller: &Caller,
        alone: OwnedMutexGuard<()>,
    ) -> Result<RunRow, Problem> {
        let Self { run, mut request, place, body, now } = self;
        let limits = {
            let (env, body) = (server.app.environment().clone(), body.clone());
            let folder = (!place.is_address).then(|| place.folder.clone());
            server.blocking(move || Ok(body.limits_known(&env, folder.as_deref()))).await?
        };
        request.run_id = Some(run.clone());
        ralph_loop_app::race::enter(&mut request, now)?;
        let queued = Queued {
            id: run.clone(),
            title: body.title(),
            person: caller.person.name.clone(),
            provider: body.provider.unwrap_or_default().as_str().to_owned(),
            repo: match place.is_address {
                true => body.repo.trim().to_owned(),
                false => place.folder.display().to_string(),
            },
            at: now,
            auth: body.auth,
            profiles: body.profiles.clone().map(|p| (p.default, p.fallback)).unwrap_or_default(),
            problem: None,
            limits,
            request,
        };
        let detail = match queued.places() {
            1 => queued.title.clone(),
            many => format!("{} (a race of {many})", queued.title),
        };
        caller.note(server, "create", Some(run.as_str()), Some(detail))?;
        // Runs of a race stay together on this machine.
        if queued.places() == 1
            && let Some(row) =
                crate::routes::people::fleet::hand_on(server, &queued, place.is_address, &body.labels).await?
        {
            return Ok(row);
        }
        let waiting = queued.row(None);
        let told = server.scheduler.add(queued)?;
        drop(alone);
        // Without room it waits, and its row says so.
        let Some(told) = told else {
            let row = server.index.get(run.as_str()).await.ok().flatten();
            return Ok(row.unwrap_or(waiting));
        };
        match tokio::time::timeout(BEGIN, told).await {
            Ok(Ok(Err(problem))) => {
                // The client gets the error immediately, so nothing stays in the list.
                server.scheduler.take_out(run.as_str()).await?;
                let (own, id) = (server.clone(), run.clone());
                server.blocking(move || forget_unbegun(&own, &id)).await?;
                server.live.touch(&run);
                Err(problem)
            }
            Ok(Ok(Ok(run))) => Ok(begun(server, run).await.unwrap_or(waiting)),
            // It is slow to start.
            Ok(Err(_)) | Err(_) => {
                let row = server.index.get(run.as_str()).await.ok().flatten();
                Ok(row.unwrap_or(waiting))
            }
        }
    }
}

fn idempotency_key(headers: &HeaderMap, caller: &Caller) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| (1..=KEY_MAX).contains(&text.len()));
    let text =
        text.ok_or_else(|| Problem::bad(format!("`Idempotency-Key` has 1 to {KEY_MAX} characters")))?;
    Ok(Some(format!("{}\n{text}", caller.person.name)))
}

async fn begun(server: &Arc<Server>, run: RunId) -> Option<RunRow> {
    let live = server.live.clone();
    server.blocking(move || Ok(live.with(&run, |run| run.row().clone())?)).await.ok()
}

/// The row of an earlier request's run; `None` if it wasn't stored.
async fn row_of(server: &Arc<Server>, run: &RunId) -> Result<Option<RunRow>, Problem> {
    let begun_to_look = Instant::now();
    loop {
        if let Some(row) = server.index.get(run.as_str()).await? {
            return Ok(Some(row));
        }
        // Its row is about to be written.
        if !server.scheduler.is_waiting(run.as_str()) {
            break;
        }
        if begun_to_look.elapsed() > BEGIN {
            return Err(Problem::conflict("the run begins at this moment").hint("try again in a few seconds"));
        }
        tokio::time::sleep(ROW).await;
    }
    match begun(server, run.clone()).await {
        Some(row) => Ok(Some(row)),
        None => crate::routes::people::fleet::row_of(server, run.as_str()).await,
    }
}
