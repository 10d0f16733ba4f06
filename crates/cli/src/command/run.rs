//! `ralph run`: from task file and configuration to a proven result.

mod issue;
mod many;
mod options;
mod place;
mod report;
mod task;
pub mod thinking;

use self::report::{announce, summary, tell_left_out};
use crate::command::resume;
use crate::error::CommandError;
use crate::output::Out;
use crate::{find, handover, host, sandboxes, signals, wiring};
use crate::{models, notify, settings};
use ralph_core::Driver;
use ralph_core::clock::SystemClock;
use ralph_domain::config::{Isolation, ProviderName, Settings};
use ralph_domain::dialect::Publish;
use ralph_domain::outcome::RunResult;
use ralph_domain::ports::Clock as _;
use ralph_domain::spec::{Place, RunSpec, Task};
use ralph_domain::state::RunState;
use ralph_git::{Repo, RepoError};
use ralph_journal::layout::RalphDir;
use std::path::{Path, PathBuf};

/// The task is `PROMPT.md`, agents and verifiers come from `.ralph/config.json` (`ralph init` writes one).
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  ralph run                         the loop on PROMPT.md: the agent is fenced off, you see each iteration's result here
  ralph run --branch fix-router     commit each iteration on a branch
  ralph run --verify 'cargo test' --agents claude,codex
  ralph run --worktree              beside your own tree
  ralph run --provider docker       commands and agents in a container
  ralph run --isolation none        with all your rights, for agents and repos you trust
  ralph run --resume                go on with the latest run of this folder")]
pub struct RunArgs {
    /// The task file: `ralph_task.md`, `ralph.json`, `ralph/tasks.json` or `PROMPT.md`; found by itself where there is
    /// only one. Several run side by side, each in a clone of its own.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The ticket that `{{ticket_id}}` in a task stands for.
    #[arg(long, value_name = "ID")]
    pub ticket: Option<String>,
    /// How many of several tasks run at a time (default 2).
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// The same, by flag.
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub prompt: Option<PathBuf>,
    /// Go on with a run: the named one, or the latest of this folder.
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,
    /// Start a new run even where an unfinished one is.
    #[arg(long, conflicts_with = "resume")]
    pub new: bool,
    /// Most iterations (default 30).
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<u32>,
    /// Most working time in seconds (default 7200); waits for limits do not count.
    #[arg(long, value_name = "N")]
    pub max_seconds: Option<u64>,
    /// Most money in USD (default 10).
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<f64>,
    /// Most tokens in all.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Refuse to start where the money cap cannot hold.
    #[arg(long)]
    pub strict_budget: bool,
    /// Only these agents, in this order.
    #[arg(long, visible_alias = "modals", value_name = "A,B", value_delimiter = ',')]
    pub agents: Vec<String>,
    /// The model for every agent that takes one.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// A check that must pass, as a shell command; may be given several times.
    #[arg(long, value_name = "COMMAND")]
    pub verify: Vec<String>,
    /// Paths that must not change; may be given several times.
    #[arg(long, value_name = "PATH")]
    pub protect: Vec<String>,
    /// Switch to this new branch and commit each iteration on it.
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Work in a git worktree of its own.
    #[arg(long, conflicts_with = "clone")]
    pub worktree: bool,
    /// Work in a fresh clone of this repo.
    #[arg(long, value_name = "URL|PATH")]
    pub clone: Option<String>,
    /// What becomes of the proven work: stays here, is pushed, or becomes a pull request.
    #[arg(long, value_name = "none|push|pr", value_parser = publish)]
    pub publish: Option<Publish>,
    /// Work on an issue of the code host: its text is the task, the pull request is linked to it.
    #[arg(long, value_name = "URL|NUMBER", conflicts_with_all = ["files", "prompt"])]
    pub issue: Option<String>,
    /// Clone only the last N commits.
    #[arg(long, value_name = "N", requires = "clone", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Clone only this folder, and the files beside and above it; may be given several times.
    #[arg(long, value_name = "FOLDER", requires = "clone")]
    pub sparse: Vec<String>,
    /// How strongly the agent is fenced from the rest of the machine.
    #[arg(long, value_name = "HOW", value_parser = isolation)]
    pub isolation: Option<Isolation>,
    /// The same as `--isolation none`.
    #[arg(long, conflicts_with_all = ["isolation", "sandbox"])]
    pub no_sandbox: bool,
    /// The strongest fence that works here, or an error.
    #[arg(long, conflicts_with = "isolation")]
    pub sandbox: bool,
    /// Also tell people this way, as long as this process lives: `slack`, `desktop`, `command:LINE`; or `none`.
    #[arg(long, value_name = "WAY", value_parser = notify::wish)]
    pub notify: Vec<notify::Wish>,
    /// Where commands run: local, docker, sbx, daytona, e2b or vercel. Elsewhere than local the work is in a worktree of its
    /// own.
    #[arg(long, value_name = "NAME", value_parser = ProviderName::parse)]
    pub provider: Option<ProviderName>,
    /// Leave the sandbox of `--provider` as it is when the run ends.
    #[arg(long)]
    pub keep_sandbox: bool,
    /// A host that commands may reach, beside the usual ones (`example.org`, `localhost:11434`); may be given several times.
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<String>,
    /// A variable of yours that commands may see; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub pass_env: Vec<String>,
}

/// Reads the value of `--isolation`.
pub fn isolation(text: &str) -> Result<Isolation, String> {
    match text {
        "auto" => Ok(Isolation::Auto),
        "bwrap" => Ok(Isolation::Bwrap),
        "landlock" => Ok(Isolation::Landlock),
        "none" => Ok(Isolation::None),
        _ => Err("one of auto, bwrap, landlock, none".into()),
    }
}

/// Reads the value of `--publish`.
fn publish(text: &str) -> Result<Publish, String> {
    match text {
        "none" => Ok(Publish::None),
        "push" => Ok(Publish::Push),
        "pr" => Ok(Publish::Pr),
        _ => Err("one of none, push, pr".into()),
    }
}

/// Runs the loop.
pub fn run(args: RunArgs, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if let Some(name) = &args.resume {
        let name = (!name.is_empty()).then_some(name.as_str());
        return resume::go_on(name, &args.notify, &args.budgets(), folder, out);
    }
    let work =
        || if args.files.len() > 1 { many::run(&args, folder, out) } else { start(&args, folder, out) };
    work()
        .inspect_err(|error| {
            // Whoever reads the last line of stdout gets the documented object, whatever happened.
            if out.json {
                out.value(&RunResult::refused(error.to_run_error()));
            }
        })
        .or_else(|error| {
            let mut people = *out;
            people.json = false;
            Ok(people.fail(&error))
        })
}

impl RunArgs {
    /// The limits that flags name.
    fn budgets(&self) -> resume::BudgetArgs {
        resume::BudgetArgs {
            max_iterations: self.max_iterations,
            max_seconds: self.max_seconds,
            max_cost: self.max_cost,
            max_tokens: self.max_tokens,
        }
    }

    /// The flags that each of several runs is given, too.
    fn passed_on(&self) -> Vec<String> {
        let mut flags = Vec::new();
        let mut flag = |name: &str, value: Option<String>| {
            flags.extend(value.map(|value| [name.to_owned(), value]).into_iter().flatten());
        };
        flag("--max-iterations", self.max_iterations.map(|n| n.to_string()));
        flag("--max-seconds", self.max_seconds.map(|n| n.to_string()));
        flag("--max-cost", self.max_cost.map(|n| n.to_string()));
        flag("--max-tokens", self.max_tokens.map(|n| n.to_string()));
        flag("--agents", (!self.agents.is_empty()).then(|| self.agents.join(",")));
        flag("--model", self.model.clone());
        flag("--ticket", self.ticket.clone());
        self.verify.iter().for_each(|command| flag("--verify", Some(command.clone())));
        self.protect.iter().for_each(|path| flag("--protect", Some(path.clone())));
        flag(
            "--publish",
            self.publish.map(|publish| match publish {
                Publish::None => "none".to_owned(),
                Publish::Push => "push".to_owned(),
                Publish::Pr => "pr".to_owned(),
            }),
        );
        self.notify.iter().for_each(|wish| flag("--notify", Some(notify::written(wish))));
        flag("--provider", self.provider.map(|name| name.as_str().to_owned()));
        self.allow_host.iter().for_each(|host| flag("--allow-host", Some(host.clone())));
        self.pass_env.iter().for_each(|name| flag("--pass-env", Some(name.clone())));
        if self.strict_budget {
            flags.push("--strict-budget".into());
        }
        if self.keep_sandbox {
            flags.push("--keep-sandbox".into());
        }
        flags.extend(
            options::asked(self)
                .map(options::name)
                .into_iter()
                .flat_map(|name| ["--isolation".to_owned(), name.to_owned()]),
        );
        flags
    }
}

fn start(args: &RunArgs, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let top = find::top(folder);
    host::load_dotenv(&top);
    let home = host::state_home()?;
    let origin = Repo::discover(&top).map_err(from_repo)?;
    let loaded = settings::load(&origin.top)?;
    let issue = match &args.issue {
        Some(named) => Some(issue::fetch(named, &origin, &loaded.file)?),
        None => None,
    };
    let named = args.files.first().or(args.prompt.as_ref()).or(issue.as_ref().map(|issue| &issue.file));
    let ticket = args.ticket.clone().or_else(|| issue.as_ref().map(|issue| issue.number.to_string()));
    let mut chosen = task::choose(folder, &top, named.map(PathBuf::as_path), ticket.as_deref())?;
    let task = without_secrets(chosen.task.clone(), &host::redactor(&top));
    let sandbox = sandboxes::choose(args, &loaded, chosen.settings.sandbox.as_ref())?;
    let mut args = args.clone();
    let isolation = if sandbox.provider().is_elsewhere() {
        // The user's own tree is no place for a sandbox to work in.
        args.worktree |= args.clone.is_none();
        Isolation::Auto
    } else {
        options::isolation(&args, &loaded)?
    };
    let args = &args;
    chosen.settings.sandbox = Some(sandbox);
    let models = models::load(&origin.top)?;
    let mut settings = options::resolve(
        args,
        loaded.clone(),
        std::mem::take(&mut chosen.settings),
        (&models, &chosen.model),
        (isolation, &origin.top),
    )?;
    let wanted = args.publish.is_some() || args.issue.is_some() || loaded.file.publish.is_some();
    if let Some(issue) = &issue {
        settings.handover.issue = Some(issue.number);
        if args.publish.is_none() && loaded.file.publish.is_none() {
            settings.handover.publish = Publish::Pr;
        }
        if chosen.branch.is_none() {
            chosen.branch = Some(issue.branch());
        }
    }
    let url = match args.clone.as_deref().filter(|from| handover::is_elsewhere(from)) {
        Some(from) => Some(from.to_owned()),
        None => handover::remote_url(&origin, &settings.handover.remote),
    };
    handover::settle(&mut settings, &task, url.as_deref(), &origin, wanted, out)?;
    if let Some(code) = continue_unfinished(args, &origin, &task, &settings, out)? {
        return Ok(code);
    }
    let clock = SystemClock::default();
    let now = clock.now();
    let run_id = ralph_core::run_id::new(now);
    if out.live && settings.isolation != Isolation::None && !args.worktree && args.clone.is_none() {
        // A large tree takes a while.
        out.say("making a twin of your tree for the agent");
    }
    let extent = place::extent(args, loaded.file.clone.as_ref(), &chosen)?;
    let placed = place::make(args, &origin, &home, &run_id, &settings, &chosen, &extent)?;
    let in_place = placed.place == Place::InPlace;
    let repo =
        if in_place { origin.clone() } else { Repo::discover(&placed.workspace).map_err(from_repo)? };
    repo.exclude_ralph_dir().map_err(CommandError::from)?;
    let config_digest = if in_place { loaded.repo_digest } else { None };
    let mut spec = RunSpec {
        version: ralph_domain::spec::VERSION,
        spec_version: 1,
        run_id,
        created_at: now,
        task,
        settings,
        place: placed.place,
        workspace: placed.workspace,
        origin: origin.top,
        branch: placed.branch,
        config_digest,
        forked_from: None,
    };
    handover::name_branch(&mut spec, &repo, chosen.branch.as_deref())?;
    let mut lock = match placed.lock {
        Some(lock) => lock,
        None => wiring::lock(&spec)?,
    };
    fresh_state_files(&spec)?;
    wiring::register(&home, &spec, &repo)?;
    announce(&spec, &loaded.unheard, &models.prices, out);
    tell_left_out(&placed.left_out, out);
    let mut parts = wiring::parts(&home, &spec, repo, &lock, signals::install(), out)
        .inspect_err(|_| sandboxes::undo(&home, &spec))?;
    parts.notifiers = notify::notifiers(&args.notify)?;
    let driver = Driver::create(spec, parts)?;
    lock.tell(driver.lease())?;
    Ok(finish(driver, out))
}

/// The state files that are missing, from their templates. Guardrails live on across runs; progress starts anew, and the
/// old one is kept with its run.
fn fresh_state_files(spec: &RunSpec) -> Result<(), CommandError> {
    let dir = RalphDir::of(spec.home());
    if let Some(last) = dir.runs().pop() {
        // Its process may have been killed before it could do so; and whoever starts anew has taken what they wanted.
        if let Ok(last) = ralph_journal::snapshot::read_spec(&dir.run(&last))
            && handed_state(&last).is_some_and(|state| state.finished.is_some())
        {
            ralph_git::twin::remove(&last.origin, &last.run_id, &last.workspace);
        }
        let _ = std::fs::rename(dir.join("progress.md"), dir.run(&last).path().join("progress.md"));
    }
    crate::state_files::write_missing(&dir)?;
    Ok(())
}

/// Runs a driver to its end and tells how it went.
pub fn finish(driver: Driver, out: &Out) -> u8 {
    let spec = driver.state().spec.clone();
    ralph_sandbox::let_go_of_code();
    let result = driver.run();
    let state = handed_state(&spec);
    summary(&result, &spec, state.as_ref(), out);
    if out.json {
        out.value(&result);
    }
    // Last, as a large tree takes its time.
    tidy_up(&spec, state.as_ref());
    result.reason.exit_code()
}

/// What is known of a run whose agent works on a twin.
fn handed_state(spec: &RunSpec) -> Option<RunState> {
    let dir = RalphDir::of(spec.home());
    spec.hands_back().then(|| ralph_journal::snapshot::load(&dir, &dir.run(&spec.run_id)).ok()).flatten()
}

/// Removes the agent's copy of the tree once a run is over: all that came of it is in the user's own tree and refs. Where the
/// user's own version of a file was kept, the copy stays, and so it does where a larger budget lets the run go on.
fn tidy_up(spec: &RunSpec, state: Option<&RunState>) {
    let over = |state: &RunState| state.finished.as_ref().is_some_and(|end| !end.reason.is_budget());
    if state.is_some_and(|state| over(state) && state.kept_back.is_empty()) {
        ralph_git::twin::remove(&spec.origin, &spec.run_id, &spec.workspace);
    }
}

/// A plain `ralph run` where an unfinished run of the same task lies goes on with it: a restart is no new start.
fn continue_unfinished(
    args: &RunArgs,
    origin: &Repo,
    task: &Task,
    settings: &Settings,
    out: &Out,
) -> Result<Option<u8>, CommandError> {
    if args.new || args.worktree || args.clone.is_some() {
        return Ok(None);
    }
    let dir = RalphDir::of(&origin.top);
    if ralph_journal::lock::holder(&dir.lock()).is_some_and(|h| ralph_journal::lock::is_alive(h.pid)) {
        // Taking the lock will say who holds it. (A dead holder's guard may still be tidying up: that is no other run.)
        return Ok(None);
    }
    let Some(id) = dir.runs().pop() else { return Ok(None) };
    let Ok(state) = ralph_journal::snapshot::load(&dir, &dir.run(&id)) else { return Ok(None) };
    if state.finished.is_some() {
        return Ok(None);
    }
    let mut before = state.spec.settings.clone();
    before.handover.branch = None;
    // Limits can be changed at any time.
    before.budgets = settings.budgets;
    let same = ralph_core::is_same_task(&state.spec.task, task) && before == *settings;
    if same {
        out.say(format!("going on with run {id}, which was not finished (`--new` starts another one)"));
        return resume::go_on(Some(id.as_str()), &args.notify, &args.budgets(), &origin.top, out).map(Some);
    }
    Err(CommandError::usage(format!("run {id} in this folder is not finished, and its task or settings differ"))
        .hint(format!("`ralph resume {id}` goes on with it, `ralph run --new` starts another one, `ralph cancel {id}` ends it")))
}

/// Errors of looking at a repo, with their hints.
pub fn from_repo(error: RepoError) -> CommandError {
    let hint = error.hint();
    CommandError { hint, ..CommandError::usage(error.to_string()) }
}

impl From<ralph_git::Error> for CommandError {
    fn from(error: ralph_git::Error) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::environment(error.to_string()) }
    }
}

/// The task as the spec and the prompts keep it: written to disk, so without the secrets that a person put into it.
fn without_secrets(task: Task, redactor: &ralph_domain::redact::Redactor) -> Task {
    let clean = |text: &str| redactor.text(text).into_owned();
    Task { title: clean(&task.title), text: clean(&task.text), raw: task.raw.as_deref().map(clean), ..task }
}
