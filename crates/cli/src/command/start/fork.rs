//! `ralph fork`: starts a run from an iteration of another.

use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use crate::parse::{BudgetArgs, model};
use crate::progress::report::Presenter;
use ralph_loop_app::{App, ForkRequest};
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph fork k3f9 --at 3 --agent codex   continue after iteration 3 with another agent
  ralph fork --at 0 --model opus         start over with another model
  ralph fork --guardrail 'Do not touch the parser'")]
pub struct ForkArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Iteration to start from, 0 for the start [default: the last]
    #[arg(long, value_name = "N")]
    pub at: Option<u32>,
    /// Agents to use, in this order
    #[arg(long, alias = "agents", value_name = "NAME", value_delimiter = ',')]
    pub agent: Vec<String>,
    /// Model for every agent
    #[arg(long, value_name = "MODEL", value_parser = model)]
    pub model: Option<String>,
    /// Add a lasting rule to this repo
    #[arg(long, value_name = "TEXT")]
    pub guardrail: Vec<String>,
    /// Branch of the new run
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Grant everything this repo requests, for this run
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub budgets: BudgetArgs,
}

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
