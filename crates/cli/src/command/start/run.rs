//! `ralph run`: from a task to a proven result.

mod many;
mod race;
mod what;

use crate::consent;
use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use crate::parse::{BudgetArgs, isolation, model, publish};
use ralph_loop_app::config::notify;
use ralph_loop_app::read::find;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, NotifyRequest, Overrides, RunRequest, TaskInput, Unfinished, Workplace};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_task::config::{
    CloneConfig, Isolation, Mode, ProviderName, RequiredProof, Share, TestsPolicy,
};
use ralph_loop_task::dialect::Publish;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  ralph run \"Fix the failing tests\"         a sentence as the task
  ralph run --verify 'cargo test' --agents claude,codex
  ralph run --publish pr                    the task file here, as a pull request
More options, in `man ralph-run`: --protect --tests --require-proof --no-baseline --strict-budget
  --max-tokens --best --jobs --depth --sparse --ticket --ralph-dir --mode --share --pass-env --notify")]
pub struct RunArgs {
    /// Sentence, task file, or `-` for stdin
    #[arg(value_name = "TASK", value_hint = clap::ValueHint::FilePath)]
    pub tasks: Vec<String>,
    /// Task as text, never a file name; `-` for stdin
    #[arg(short = 'p', long, value_name = "TEXT", conflicts_with = "tasks")]
    pub text: Option<String>,
    /// Folder of the plan [default: ralph]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["tasks", "text", "prompt", "issue"])]
    pub ralph_dir: Option<PathBuf>,
    /// Value of {{ticket_id}} in the task
    #[arg(long, value_name = "ID")]
    pub ticket: Option<String>,
    /// Race these agents or models, or N copies of one
    #[arg(long, value_name = "WHO", value_delimiter = ',', conflicts_with_all = ["resume", "jobs", "branch"])]
    pub race: Vec<String>,
    /// Pick the winner by metric, diff or cost
    #[arg(long, value_name = "BY", value_enum, num_args = 0..=1, default_missing_value = "metric", requires = "race")]
    pub best: Option<race::Best>,
    /// How many tasks run at once [default: 2]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Task file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tasks", "text"])]
    pub prompt: Option<PathBuf>,
    /// Resume a run [default: the latest]
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,
    /// Start a new run even if one is unfinished
    #[arg(long, conflicts_with = "resume")]
    pub new: bool,
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Refuse agents whose cost can't be capped
    #[arg(long)]
    pub strict_budget: bool,
    /// Skip the checks before the first session
    #[arg(long)]
    pub no_baseline: bool,
    /// What may happen to original tests [default: additive]
    #[arg(long, value_name = "frozen|additive|free", value_parser = TestsPolicy::parse)]
    pub tests: Option<TestsPolicy>,
    /// What dashboard users may do [default: autonomous]
    #[arg(long, value_name = "autonomous|guided|debug", value_parser = Mode::parse)]
    pub mode: Option<Mode>,
    /// Reject results that pass only the run's own tests
    #[arg(long, value_name = "independent", value_parser = RequiredProof::parse)]
    pub require_proof: Option<RequiredProof>,
    /// Agents to use, in this order
    #[arg(long, visible_alias = "modals", alias = "modal", value_name = "A,B", value_delimiter = ',')]
    pub agents: Vec<String>,
    /// Model for every agent
    #[arg(short, long, value_name = "MODEL", value_parser = model)]
    pub model: Option<String>,
    /// Require this command to pass (repeatable)
    #[arg(long, value_name = "COMMAND", help_heading = "Checks and limits")]
    pub verify: Vec<String>,
    /// Protect this path from changes (repeatable)
    #[arg(long, value_name = "PATH")]
    pub protect: Vec<String>,
    /// Create this branch and commit each iteration
    #[arg(long, value_name = "NAME", help_heading = "Where, and what happens to the result")]
    pub branch: Option<String>,
    /// Work in a separate git worktree
    #[arg(long, conflicts_with = "clone", help_heading = "Where, and what happens to the result")]
    pub worktree: bool,
    /// Work in a fresh clone of this repo
    #[arg(long, value_name = "URL|PATH", help_heading = "Where, and what happens to the result")]
    pub clone: Option<String>,
    /// Deliver the proven work: none, push, pr
    #[arg(long, value_name = "none|push|pr", value_parser = publish, help_heading = "Where, and what happens to the result")]
    pub publish: Option<Publish>,
    /// Work on this GitHub issue
    #[arg(long, value_name = "URL|NUMBER", conflicts_with_all = ["tasks", "text", "prompt"])]
    pub issue: Option<String>,
    /// Clone only the last N commits
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Clone only this folder (repeatable) [default: working_dir]
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = "")]
    pub sparse: Vec<String>,
    /// Sandbox: auto, bwrap, landlock, none [default: auto]
    #[arg(long, value_name = "HOW", value_parser = isolation, help_heading = "Where, and what happens to the result")]
    pub isolation: Option<Isolation>,
    /// Same as --isolation none
    #[arg(long, conflicts_with_all = ["isolation", "sandbox"])]
    pub no_sandbox: bool,
    /// Same as --isolation auto
    #[arg(long, conflicts_with = "isolation")]
    pub sandbox: bool,
    /// Add a channel: slack, desktop, command:LINE, none
    #[arg(long, value_name = "WAY", value_parser = notify::parse)]
    pub notify: Vec<NotifyRequest>,
    /// Run in docker, sbx, daytona, e2b, vercel or local
    #[arg(long, value_name = "NAME", value_parser = ProviderName::parse, help_heading = "Where, and what happens to the result")]
    pub provider: Option<ProviderName>,
    /// Keep the sandbox when the run ends
    #[arg(long)]
    pub keep_sandbox: bool,
    /// Allow access to this host (repeatable)
    #[arg(long, value_name = "HOST", help_heading = "Where, and what happens to the result")]
    pub allow_host: Vec<String>,
    /// Pass this variable to commands (repeatable)
    #[arg(long, value_name = "NAME")]
    pub pass_env: Vec<String>,
    /// Share your instructions, skills or mcp with agents
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = Share::parse)]
    pub share: Vec<Share>,
    /// Grant everything this repo requests, for this run
    #[arg(short, long)]
    pub yes: bool,
    /// Run in the background and print the run id
    #[arg(long, conflicts_with_all = ["resume", "jobs"])]
    pub detach: bool,
    /// Leave the terminal's session
    #[arg(long, hide = true, requires = "request")]
    pub detached: bool,
    /// Read the whole request as JSON
    #[arg(long, hide = true, value_name = "FILE")]
    pub request: Option<PathBuf>,
}

pub fn run(args: RunArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if let Some(name) = &args.resume {
        let name = (!name.is_empty()).then_some(name.as_str());
        return drive::resume_run(name, &args.notify, &args.budgets.change()?, app, folder, out);
    }
    if args.detached {
        // Detaches from the terminal's Ctrl-C and hangup; fails harmlessly if already detached.
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
            report_workspace(&args, folder, out);
            drive::start_asking(&args.request(folder, what::task(&args, folder)?), app, out)
        }
    };
    Ok(work().unwrap_or_else(|error| drive::refuse(&error, out)))
}

/// Checks run at the top of the repo; suggests the right command to users in a subfolder.
fn report_workspace(args: &RunArgs, folder: &Path, out: &Out) {
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

/// Starts a detached run or race.
fn detach(request: &RunRequest, app: &App, out: &Out) -> Result<u8, CommandError> {
    let request = consent::settle(request, app, out)?;
    let run = app.spawn(&request)?;
    if out.json {
        out.value(&serde_json::json!({ "run_id": run }));
    } else {
        out.line(run.as_str());
        out.say(format!(
            "started in the background; run `ralph attach {run}` to watch it, `ralph cancel {run}` to end it"
        ));
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
    serde_json::from_str(&text).map_err(|e| CommandError::usage(format!("can't parse the request: {e}")))
}

impl RunArgs {
    /// Builds the request from the flags.
    fn request(&self, folder: &Path, task: TaskInput) -> RunRequest {
        let place = match (&self.clone, self.worktree) {
            (Some(from), _) => {
                Workplace::Clone { from: from.clone(), depth: self.depth, sparse: self.sparse.clone() }
            }
            (None, true) => Workplace::Worktree,
            (None, false) => Workplace::InPlace,
        };
        let part = match place {
            Workplace::Clone { .. } => CloneConfig::default(),
            _ => CloneConfig { depth: self.depth, sparse: self.sparse.clone() },
        };
        RunRequest {
            folder: folder.to_owned(),
            task,
            ticket: self.ticket.clone(),
            unfinished: if self.new { Unfinished::StartAnew } else { Unfinished::GoOn },
            overrides: self.overrides(),
            place,
            part,
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
            publish_settled: false,
            run_id: None,
            asked_by: None,
            pinned: None,
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
