//! `ralph sandbox`: the local sandbox, and containers and machines made by runs.

pub mod list;
pub mod rm;
pub mod test;

use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::App;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph sandbox test
  ralph sandbox list")]
pub struct SandboxArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub command: SandboxCommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum SandboxCommand {
    /// Try to escape from the local sandbox
    Test(test::TestArgs),
    /// List the sandboxes of every provider
    List(list::ListArgs),
    /// Remove sandboxes and their files
    Rm(rm::RmArgs),
}

pub fn run(args: SandboxArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    match args.command {
        SandboxCommand::Test(args) => test::run(args, app, out),
        SandboxCommand::List(args) => list::run(args, app, out),
        SandboxCommand::Rm(args) => rm::run(args, app, out),
    }
}
