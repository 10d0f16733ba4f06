//! `ralph index`: the index of the dashboard, which can be thrown away.

use crate::error::CommandError;
use crate::output::Out;
use ralph_app::App;
use ralph_domain::text::count;
use serde_json::json;

/// The index of the dashboard: one row per run. It is never the truth, and is made from the records of the runs.
#[derive(Debug, clap::Args)]
pub struct IndexArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: IndexCommand,
}

/// What to do with the index.
#[derive(Debug, clap::Subcommand)]
pub enum IndexCommand {
    /// Make it anew from the records of all runs. A server may go on meanwhile.
    #[command(after_help = "Examples:
  ralph index rebuild
  RALPH_DB_URL=postgres://db/ralph ralph index rebuild")]
    Rebuild,
}

/// Runs the command.
pub fn run(args: &IndexArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    match args.command {
        IndexCommand::Rebuild => {
            let runs = ralph_server::rebuild_index(app, |done, all| out.say(format!("{done} of {all} …")))?;
            if out.json {
                out.value(&json!({ "runs": runs }));
            }
            out.say(format!("the index holds {}", count(runs, "run")));
            Ok(0)
        }
    }
}
