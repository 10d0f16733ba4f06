//! `ralph demo`: a whole run on a small example, with a scripted agent that errs before it succeeds. No account, no key,
//! no network.

use crate::demo_repo::{fresh_folder, make, on_its_own, request};
use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::{App, RunRequest};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph demo
  ralph demo --dir /tmp/ralph-demo     keep the example in this folder")]
pub struct DemoArgs {
    /// Folder to create [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Don't pause between the agent's steps
    #[arg(long)]
    pub fast: bool,
}

/// Runs the command.
pub fn run(args: DemoArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let dir = match &args.dir {
        Some(dir) => folder.join(dir),
        None => fresh_folder(app.environment())?,
    };
    if dir.exists() && std::fs::read_dir(&dir).is_ok_and(|mut d| d.next().is_some()) {
        return Err(CommandError::usage(format!("`{}` exists and is not empty", dir.display()))
            .hint("name a new folder with `--dir`"));
    }
    make(&dir, args.fast, app.environment().vars())?;
    out.say(format!("a small repo with failing tests is in {}", dir.display()));
    let app = &on_its_own(app, &dir);
    let (request, sandboxed) = request(app.environment(), &dir);
    if !sandboxed {
        out.say(
            "this machine can't sandbox agents (run `ralph doctor`); the demo's scripted agent is harmless",
        );
    }
    app.asked(&RunRequest::in_folder(&dir))?.allow_file(".ralph/config.json")?;
    // The demo is there to be watched: its steps show even where stderr is no terminal.
    let mut out = *out;
    out.verbose = !out.quiet;
    Ok(drive::start_or_refuse(&request, app, &out))
}
