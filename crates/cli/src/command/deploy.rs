//! `ralph deploy`: the dashboard on somebody else's machine.

pub mod daytona;

use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::App;
use std::path::Path;

/// Puts this program and its dashboard into a sandbox of a cloud.
#[derive(Debug, clap::Args)]
pub struct DeployArgs {
    /// Where to.
    #[command(subcommand)]
    pub command: DeployCommand,
}

/// Where to.
#[derive(Debug, clap::Subcommand)]
pub enum DeployCommand {
    /// Into a sandbox of Daytona.
    Daytona(daytona::DaytonaArgs),
}

/// Runs the command.
pub fn run(args: DeployArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    match args.command {
        DeployCommand::Daytona(args) => daytona::run(&args, app, folder, out),
    }
}
