//! `ralph status`: where a run stands, in a few milliseconds and without asking the process that drives it.

use crate::error::CommandError;
use crate::output::Out;
use crate::run_text;
use ralph_loop_app::{App, status};
use std::path::Path;

/// Is it alive, is it getting closer, does it need you, what has it cost: in this order.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph status            the run that is running in this folder, else its latest
  ralph status k3f9       by the end of its id
  ralph status --json     one JSON object")]
pub struct StatusArgs {
    /// The run; the latest of this folder if left out.
    pub run: Option<String>,
}

/// Runs the command.
pub fn run(args: StatusArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let StatusArgs { run } = args;
    let facts = app.facts(folder, run.as_deref())?;
    if out.json {
        out.value(&status::with_race(app.environment(), &facts));
    } else {
        run_text::print(&facts, out);
        facts.mark_seen();
    }
    Ok(0)
}
