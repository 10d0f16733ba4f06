//! `ralph fork`: a new run with the files of another one's iteration.

use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use crate::parse::{BudgetArgs, model};
use crate::report::Presenter;
use ralph_loop_app::{App, ForkRequest};
use std::path::Path;

/// The new run works in a worktree of its own, on a branch of its own, with the task, checks and settings of the other one, and
/// with what its sessions had left for each other by then. The other run stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph fork --at 3                      the latest run of this folder, from its third iteration on
  ralph fork k3f9 --at 3 --agent codex   the same point, another agent
  ralph fork --at 0 --model opus         from its start, with another model
  ralph fork --guardrail 'Do not touch the parser'")]
pub struct ForkArgs {
    /// The run; the latest of this folder if left out.
    pub run: Option<String>,
    /// The iteration whose files it begins with; 0 is the start, the last one if left out.
    #[arg(long, value_name = "N")]
    pub at: Option<u32>,
    /// Only these agents, in this order.
    #[arg(long, alias = "agents", value_name = "NAME", value_delimiter = ',')]
    pub agent: Vec<String>,
    /// The model for every agent that takes one.
    #[arg(long, value_name = "MODEL", value_parser = model)]
    pub model: Option<String>,
    /// A further rule for this and later runs of the repo.
    #[arg(long, value_name = "TEXT")]
    pub guardrail: Vec<String>,
    /// The branch of the new run.
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Allow whatever the repo asks for, for this run.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub budgets: BudgetArgs,
}

/// Runs the command.
pub fn run(args: ForkArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let wanted = ForkRequest {
        at: args.at,
        agents: args.agent,
        model: args.model,
        guardrails: args.guardrail,
        budgets: args.budgets.change()?,
        branch: args.branch,
        yes: args.yes,
    };
    let work = || {
        let plan = app.fork(folder, args.run.as_deref(), &wanted, &Presenter::new(app, out))?;
        drive::start_plan(plan, app, out)
    };
    Ok(work().unwrap_or_else(|error| drive::refuse(&error, out)))
}
