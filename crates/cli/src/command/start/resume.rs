//! `ralph resume`: unpauses a live run, continues a dead one.

use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use crate::parse::BudgetArgs;
use crate::progress::report::Presenter;
use ralph_loop_app::config::notify;
use ralph_loop_app::{App, NotifyRequest};
use ralph_loop_task::config::Isolation;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph resume                       continue the latest run
  ralph resume --max-iterations 50   continue past an exhausted budget
  ralph resume --from origin RUN     continue another machine's run")]
pub struct ResumeArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Fetch the run from this remote, URL or folder first
    #[arg(long, value_name = "REMOTE", requires = "run")]
    pub from: Option<String>,
    /// With --from: auto, bwrap, landlock, none
    #[arg(long, value_name = "HOW", value_parser = crate::parse::isolation, requires = "from")]
    pub isolation: Option<Isolation>,
    /// Add a channel: slack, desktop, command:LINE, none
    #[arg(long, value_name = "WAY", value_parser = notify::parse)]
    pub notify: Vec<NotifyRequest>,
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Leave the terminal's session
    #[arg(long, hide = true)]
    pub detached: bool,
}

pub fn run(args: ResumeArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if args.detached {
        // Detaches from the terminal's Ctrl-C and hangup; fails harmlessly if already detached.
        let _ = nix::unistd::setsid();
        let resumed =
            drive::resume_run(args.run.as_deref(), &args.notify, &args.budgets.change()?, app, folder, out);
        return Ok(resumed.unwrap_or_else(|error| drive::refuse(&error, out)));
    }
    if let (Some(from), Some(run)) = (&args.from, &args.run) {
        app.fetch_run(folder, run, from, args.isolation, &Presenter::new(app, out))?;
    }
    drive::resume_run(args.run.as_deref(), &args.notify, &args.budgets.change()?, app, folder, out)
}
