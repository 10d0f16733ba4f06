//! `ralph mcp`: serves runs over the Model Context Protocol on stdio.

use crate::error::CommandError;
use crate::output::Out;
use clap::Args;
use ralph_loop_app::App;
use ralph_loop_mcp::{RalphServer, Role};
use std::path::Path;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  claude mcp add ralph -- ralph mcp\n  codex mcp add ralph -- ralph mcp\n  ralph -C ~/project mcp --read-only"
)]
pub struct McpArgs {
    /// Offer read-only tools
    #[arg(long)]
    read_only: bool,
}

pub fn run(args: McpArgs, app: &App, folder: &Path, _: &Out) -> Result<u8, CommandError> {
    let role = if args.read_only { Role::Viewer } else { Role::Operator };
    let app = App::new(app.environment().clone().with_face("mcp"));
    ralph_loop_mcp::serve_stdio(RalphServer::new(app, folder.to_owned(), role))?;
    Ok(0)
}
