//! `ralph resume`: unpause a living run, continue a dead one.

use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use crate::parse::BudgetArgs;
use crate::report::Presenter;
use ralph_loop_app::{App, NotifyRequest, notify};
use ralph_loop_task::config::Isolation;
use std::path::Path;

/// A run that is paused goes on; one whose process has ended is continued from its journal, with its iteration count,
/// cost, cooldowns and budgets.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph resume            the latest run of this folder
  ralph resume k3f9       by the end of its id
  ralph resume --max-iterations 50   go on after the budget was used up
  ralph resume --from origin RUN   a run of another machine, from the state it pushed")]
pub struct ResumeArgs {
    /// The run; the latest of this folder if left out.
    pub run: Option<String>,
    /// Bring the run here first, from the state that it pushed to this remote (a name, an address or a folder).
    #[arg(long, value_name = "REMOTE", requires = "run")]
    pub from: Option<String>,
    /// With `--from`: how strongly the agent is sandboxed here; what the run says of that does not count.
    #[arg(long, value_name = "HOW", value_parser = crate::parse::isolation, requires = "from")]
    pub isolation: Option<Isolation>,
    /// Also tell people this way, as long as this process lives: `slack`, `desktop`, `command:LINE`; or `none`.
    #[arg(long, value_name = "WAY", value_parser = notify::parse)]
    pub notify: Vec<NotifyRequest>,
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Leave the terminal and the session of whoever started this process.
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// Runs the command.
pub fn run(args: ResumeArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if args.detached {
        // Ctrl-C and the end of a terminal are for those who sit there. Without one of its own, it is alone already.
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
