//! `ralph status`: a run's status within milliseconds, without its driver.

use crate::error::CommandError;
use crate::output::Out;
use crate::text::run_text;
use ralph_loop_app::App;
use ralph_loop_app::read::status;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph status            show the active run, or the latest
  ralph status k3f9       show run k3f9
  ralph status --json     print JSON")]
pub struct StatusArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
}

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
