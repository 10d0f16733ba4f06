//! `ralph publish`: pushes the result of a run that has ended, or opens a pull request with it.

use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::{App, PublishRequest};
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph publish                      open a pull request with the latest run's result
  ralph publish k3f9 --push          push the branch of run k3f9, without a pull request
  ralph publish --base main --draft  open a draft against main")]
pub struct PublishArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Push the branch only
    #[arg(long, conflicts_with_all = ["base", "title", "body", "draft"])]
    pub push: bool,
    /// Branch on the remote [default: the run's branch]
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Branch that the pull request goes to
    #[arg(long, value_name = "BRANCH")]
    pub base: Option<String>,
    /// Title of the pull request
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Text of the pull request; the evidence follows it
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,
    /// Keep the pull request a draft
    #[arg(long)]
    pub draft: bool,
    /// Leave the terminal's session
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// Runs the command.
pub fn run(args: PublishArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let request = PublishRequest {
        push_only: args.push,
        branch: args.branch,
        base: args.base,
        title: args.title,
        body: args.body,
        draft: args.draft,
    };
    let publish = || drive::publish(args.run.as_deref(), &request, app, folder, out);
    if !args.detached {
        return publish();
    }
    // Ctrl-C in that terminal must not reach this process.
    let _ = nix::unistd::setsid();
    Ok(publish().unwrap_or_else(|error| drive::refuse(&error, out)))
}
