//! `ralph audit`: the server's audit log.

use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::{App, AppError};
use ralph_loop_protocol::display::text::count;
use serde_json::json;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph audit verify")]
pub struct AuditArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: AuditCommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum AuditCommand {
    /// Verify that no entry was changed, removed or added
    #[command(after_help = "Examples:
  ralph audit verify                  print the newest digest: keep it elsewhere
  ralph audit verify --digest SHA256  fail if a digest that you kept is missing
The log is `server/audit.jsonl` in $XDG_STATE_HOME/ralph.")]
    Verify {
        /// Digest that the log must contain
        #[arg(long, value_name = "SHA256")]
        digest: Option<String>,
    },
}

pub fn run(args: &AuditArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    let AuditCommand::Verify { digest } = &args.command;
    let found = ralph_loop_server::verify_audit(app.environment(), digest.as_deref())?;
    if let Some(digest) = digest.as_ref().filter(|_| !found.has_digest) {
        return Err(AppError::environment(format!("the audit log has no line with the digest {digest}"))
            .cause("entries at its end were removed, or it is another server's log")
            .hint("compare the log with your last backup of it"));
    }
    if out.json {
        out.value(&json!({
            "entries": found.entries, "unchained": found.unchained, "newest": found.newest,
        }));
        return Ok(0);
    }
    let entries = count(usize::try_from(found.entries).unwrap_or(usize::MAX), "chained line");
    out.say(format!("unchanged: {entries}, {} from before the log was chained", found.unchained));
    if let Some(newest) = &found.newest {
        out.line(newest.as_str());
    }
    Ok(0)
}
