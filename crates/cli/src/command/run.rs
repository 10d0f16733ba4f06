//! `ralph run`: from task file and configuration to a proven result.

mod many;
mod race;
mod what;

use crate::consent;
use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use crate::parse::{BudgetArgs, isolation, model, publish};
use ralph_loop_app::{
    App, NotifyRequest, Overrides, PlaceRequest, RunRequest, TaskInput, Unfinished, find, notify, repo_file,
};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_task::config::{Isolation, Mode, ProviderName, RequiredProof, Share, TestsPolicy};
use ralph_loop_task::dialect::Publish;
use std::path::{Path, PathBuf};

/// The task is a sentence, or a file: `PROMPT.md` and the like. Agents and verifiers come from `.ralph/config.json`
/// (`ralph init` writes one); where it names none, installed agents and the repo's own test command are taken, and said.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  ralph run \"Fix the failing tests\"  a sentence is a task; `--verify 'make test'` says what shows that it is done
  ralph run                         the loop on PROMPT.md: the agent is sandboxed, you see each iteration's result here
  ralph run --branch fix-router     commit each iteration on a branch
  ralph run --verify 'cargo test' --agents claude,codex
  ralph run --worktree              beside your own tree
  ralph run --provider docker       commands and agents in a container
  ralph run --isolation none        with all your rights, for agents and repos you trust
  ralph run --detach                in a process of its own, which outlives this terminal
  ralph run --resume                go on with the latest run of this folder")]
pub struct RunArgs {
    /// What is to be done: one sentence in quotes, `-` for standard input, or a task file (`ralph_task.md`, `ralph.json`,
    /// `ralph/tasks.json`, `PROMPT.md`; found by itself where there is only one). Several files run side by side, each in a
    /// clone of its own.
    #[arg(value_name = "TASK", value_hint = clap::ValueHint::FilePath)]
    pub tasks: Vec<String>,
    /// What is to be done, as text, whatever it looks like; `-` is standard input.
    #[arg(short = 'p', long, value_name = "TEXT", conflicts_with = "tasks")]
    pub text: Option<String>,
    /// The folder of a plan, where it is not `ralph/`.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["tasks", "text", "prompt", "issue"])]
    pub ralph_dir: Option<PathBuf>,
    /// The ticket that `{{ticket_id}}` in a task stands for.
    #[arg(long, value_name = "ID")]
    pub ticket: Option<String>,
    /// Let several agents or models work on the task side by side (`claude,codex`), or so many of the same (`3`): the first
    /// proven result wins, the others are stopped. They share the budget.
    #[arg(long, value_name = "WHO", value_delimiter = ',', conflicts_with_all = ["resume", "jobs", "branch"])]
    pub race: Vec<String>,
    /// With `--race`: wait for all, and let the best proven result win: by the task's `metric`, the smallest `diff` or the lowest
    /// `cost`.
    #[arg(long, value_name = "BY", value_enum, num_args = 0..=1, default_missing_value = "metric", requires = "race")]
    pub best: Option<race::Best>,
    /// How many of several tasks run at a time (default 2).
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// The task file, by flag.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tasks", "text"])]
    pub prompt: Option<PathBuf>,
    /// Go on with a run: the named one, or the latest of this folder.
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,
    /// Start a new run even where an unfinished one is.
    #[arg(long, conflicts_with = "resume")]
    pub new: bool,
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Refuse to start where the money cap cannot hold.
    #[arg(long)]
    pub strict_budget: bool,
    /// Do not run the checks before the first session: what they say of the start is then not known.
    #[arg(long)]
    pub no_baseline: bool,
    /// What the run may do to the tests of the start (default additive: the work must pass them as they were, or you approve).
    #[arg(long, value_name = "frozen|additive|free", value_parser = TestsPolicy::parse)]
    pub tests: Option<TestsPolicy>,
    /// What people may do to the run over the page and the API: `guided` adds hints for the next session, `debug` also a fixed
    /// list of commands (default autonomous).
    #[arg(long, value_name = "autonomous|guided|debug", value_parser = Mode::parse)]
    pub mode: Option<Mode>,
    /// A result that only passes tests of the run's own is not done.
    #[arg(long, value_name = "independent", value_parser = RequiredProof::parse)]
    pub require_proof: Option<RequiredProof>,
    /// Only these agents, in this order.
    #[arg(long, visible_alias = "modals", alias = "modal", value_name = "A,B", value_delimiter = ',')]
    pub agents: Vec<String>,
    /// The model for every agent that takes one.
    #[arg(short, long, value_name = "MODEL", value_parser = model)]
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
    #[arg(long, value_name = "URL|NUMBER", conflicts_with_all = ["tasks", "text", "prompt"])]
    pub issue: Option<String>,
    /// Clone only the last N commits.
    #[arg(long, value_name = "N", requires = "clone", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Clone only this folder, and the files beside and above it; may be given several times.
    #[arg(long, value_name = "FOLDER", requires = "clone")]
    pub sparse: Vec<String>,
    /// How strongly the agent is isolated from the rest of the machine.
    #[arg(long, value_name = "HOW", value_parser = isolation)]
    pub isolation: Option<Isolation>,
    /// The same as `--isolation none`.
    #[arg(long, conflicts_with_all = ["isolation", "sandbox"])]
    pub no_sandbox: bool,
    /// The strongest sandbox that works here, or an error.
    #[arg(long, conflicts_with = "isolation")]
    pub sandbox: bool,
    /// Also tell people this way, as long as this process lives: `slack`, `desktop`, `command:LINE`; or `none`.
    #[arg(long, value_name = "WAY", value_parser = notify::parse)]
    pub notify: Vec<NotifyRequest>,
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
    /// What of your own settings sandboxed agent CLIs get beside their login: instructions (your CLAUDE.md or AGENTS.md), skills,
    /// mcp.
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = Share::parse)]
    pub share: Vec<Share>,
    /// Allow this run whatever the repo asks for that only you can allow (`ralph trust` shows it).
    #[arg(short, long)]
    pub yes: bool,
    /// Start the run in a process of its own, print its id and come back: it goes on by itself (`ralph attach`, `status`,
    /// `cancel`).
    #[arg(long, conflicts_with_all = ["resume", "jobs"])]
    pub detach: bool,
    /// Leave the terminal and the session of whoever started this process.
    #[arg(long, hide = true, requires = "request")]
    pub detached: bool,
    /// The whole request as JSON; `-` is standard input. How one process hands a run to another.
    #[arg(long, hide = true, value_name = "FILE")]
    pub request: Option<PathBuf>,
}

/// Runs the loop.
pub fn run(args: RunArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if let Some(name) = &args.resume {
        let name = (!name.is_empty()).then_some(name.as_str());
        return drive::resume_run(name, &args.notify, &args.budgets.change()?, app, folder, out);
    }
    if args.detached {
        // Ctrl-C and the end of a terminal are for those who sit there. Without one of its own, it is alone already.
        let _ = nix::unistd::setsid();
    }
    let work = || match &args.request {
        Some(file) => match read_request(file, folder)? {
            request if request.race.is_some() => race::look_after(&request, app, out),
            request => drive::start(&request, app, out),
        },
        None if !args.race.is_empty() => race::run(&args, app, folder, out),
        None if args.detach && args.tasks.len() > 1 => {
            Err(CommandError::usage("`--detach` starts one run, but several tasks are named")
                .hint("start them one by one, each with `--detach` and `--worktree` or `--clone`"))
        }
        None if args.detach => detach(&args.request(folder, what::task(&args, folder)?), app, out),
        None if args.tasks.len() > 1 => many::run(&args, app, folder, out),
        None => {
            tell_place(&args, folder, out);
            drive::start_asking(&args.request(folder, what::task(&args, folder)?), app, out)
        }
    };
    Ok(work().unwrap_or_else(|error| drive::refuse(&error, out)))
}

/// Checks run at the top of the repo: whoever stands below it is told, with the command that checks there.
fn tell_place(args: &RunArgs, folder: &Path, out: &Out) {
    let top = find::top(folder);
    let Some(below) = folder.strip_prefix(&top).ok().filter(|below| !below.as_os_str().is_empty()) else {
        return;
    };
    if let Some(command) = args.verify.iter().find(|command| !command.trim_start().starts_with("cd ")) {
        let below = below.display();
        out.say(format!(
            "{} `{command}` runs at the top of the repo, not in `{below}`; `--verify 'cd {below} && {command}'` checks there",
            out.err(Tone::Attention, "note:")
        ));
    }
}

/// Starts a run, or a race, that goes on by itself.
fn detach(request: &RunRequest, app: &App, out: &Out) -> Result<u8, CommandError> {
    let request = consent::settle(request, app, out)?;
    let run = app.spawn(&request)?;
    if out.json {
        out.value(&serde_json::json!({ "run_id": run }));
    } else {
        out.line(run.as_str());
        out.say(format!("it goes on by itself; `ralph attach {run}` shows it, `ralph cancel {run}` ends it"));
    }
    Ok(0)
}

fn read_request(file: &Path, folder: &Path) -> Result<RunRequest, CommandError> {
    let text = if file.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        repo_file::read_text(&folder.join(file))
    };
    let text =
        text.map_err(|e| CommandError::usage(format!("cannot read the request `{}`: {e}", file.display())))?;
    serde_json::from_str(&text).map_err(|e| CommandError::usage(format!("the request cannot be read: {e}")))
}

impl RunArgs {
    /// What the flags ask for, for this task.
    fn request(&self, folder: &Path, task: TaskInput) -> RunRequest {
        let place = match (&self.clone, self.worktree) {
            (Some(from), _) => {
                PlaceRequest::Clone { from: from.clone(), depth: self.depth, sparse: self.sparse.clone() }
            }
            (None, true) => PlaceRequest::Worktree,
            (None, false) => PlaceRequest::InPlace,
        };
        RunRequest {
            folder: folder.to_owned(),
            task,
            ticket: self.ticket.clone(),
            unfinished: if self.new { Unfinished::StartAnew } else { Unfinished::GoOn },
            overrides: self.overrides(),
            place,
            branch: self.branch.clone(),
            isolation: match (self.no_sandbox, self.sandbox) {
                (true, _) => Some(Isolation::None),
                (_, true) => Some(Isolation::Auto),
                _ => self.isolation,
            },
            provider: self.provider,
            keep_sandbox: self.keep_sandbox,
            sandbox: None,
            base: None,
            publish: self.publish,
            notify: self.notify.clone(),
            yes: self.yes,
            asked_in: None,
            named_by: None,
            named_in: None,
            run_id: None,
            asked_by: None,
            race: None,
        }
    }

    fn overrides(&self) -> Overrides {
        Overrides {
            max_iterations: self.budgets.max_iterations,
            max_seconds: self.budgets.max_seconds,
            max_cost: self.budgets.max_cost,
            max_tokens: self.budgets.max_tokens,
            strict_budget: self.strict_budget,
            no_baseline: self.no_baseline,
            tests: self.tests,
            mode: self.mode,
            require_proof: self.require_proof,
            agents: self.agents.clone(),
            model: self.model.clone(),
            verify: self.verify.clone(),
            checks: Vec::new(),
            protect: self.protect.clone(),
            allow_host: self.allow_host.clone(),
            pass_env: self.pass_env.clone(),
            share: self.share.clone(),
        }
    }
}
