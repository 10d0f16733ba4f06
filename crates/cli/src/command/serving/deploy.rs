//! `ralph deploy`: the dashboard on a remote machine.

pub mod daytona;

use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::App;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph deploy daytona")]
pub struct DeployArgs {
    /// Where to.
    #[command(subcommand)]
    pub command: DeployCommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum DeployCommand {
    /// Deploy to a Daytona sandbox
    Daytona(daytona::DaytonaArgs),
}

pub fn run(args: DeployArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    match args.command {
        DeployCommand::Daytona(args) => daytona::run(&args, app, folder, out),
    }
}
