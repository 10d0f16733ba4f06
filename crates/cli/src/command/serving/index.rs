//! `ralph index`: the dashboard's disposable index.

use crate::error::CommandError;
use crate::output::Out;
use crate::process::server_env;
use ralph_loop_app::App;
use ralph_loop_protocol::display::text::count;
use serde_json::json;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph index rebuild")]
pub struct IndexArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: IndexCommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum IndexCommand {
    /// Rebuild the index from all run records
    #[command(after_help = "Examples:
  ralph index rebuild
  RALPH_DB_URL=postgres://db/ralph ralph index rebuild
  RALPH_DB_URL=sqlite:///ralph.db ralph index rebuild")]
    Rebuild,
}

pub fn run(args: &IndexArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    match args.command {
        IndexCommand::Rebuild => {
            let app = server_env::with_dotenv(app, folder, out)?;
            let progress = |done, all| out.say(format!("{done} of {all} …"));
            let rebuilt = ralph_loop_server::rebuild_index(&app, folder, progress)?;
            server_env::report_set_aside(rebuilt.set_aside.as_deref(), out);
            if out.json {
                out.value(&json!({ "runs": rebuilt.runs, "set_aside": rebuilt.set_aside }));
            }
            out.say(format!("the index holds {}", count(rebuilt.runs, "run")));
            Ok(0)
        }
    }
}
