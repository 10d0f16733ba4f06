//! `ralph demo`: a complete run on a small example. Its scripted agent fails before it succeeds; needs no
//! account, key or network.

use crate::dashboard::Dashboard;
use crate::demo_repo::{BUG, DemoRun, FEATURE, fresh_folder, make, on_its_own, request};
use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use crate::process::server_env;
use ralph_loop_app::{App, RunRequest};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph demo                           watch an agent bluff, cheat and then earn its proof
  ralph demo --feature                 a feature with its own new tests
  ralph demo --web                     the same run in the dashboard
  ralph demo --dir /tmp/ralph-demo     keep the example in this folder")]
pub struct DemoArgs {
    /// Folder to create [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Don't pause between the agent's steps
    #[arg(long)]
    pub fast: bool,
    /// Add a feature with new tests instead of fixing failing ones
    #[arg(long)]
    pub feature: bool,
    /// Watch the run in the dashboard
    #[arg(long)]
    pub web: bool,
}

pub fn run(args: DemoArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let dir = match &args.dir {
        Some(dir) => folder.join(dir),
        None => fresh_folder(app.environment())?,
    };
    if dir.exists() && std::fs::read_dir(&dir).is_ok_and(|mut d| d.next().is_some()) {
        return Err(CommandError::usage(format!("`{}` exists and is not empty", dir.display()))
            .hint("name a new folder with `--dir`"));
    }
    let example = if args.feature { FEATURE } else { BUG };
    make(example, &dir, args.fast, app.environment().vars())?;
    let what = if args.feature { "whose tests pass" } else { "with failing tests" };
    out.say(format!("a small repo {what} is in {}", dir.display()));
    let (request, sandboxed) = request(app.environment(), &dir);
    if !sandboxed {
        out.say(
            "this machine can't sandbox agents (run `ralph doctor`); the demo's scripted agent is harmless",
        );
    }
    let own = on_its_own(app, &dir);
    own.asked(&RunRequest::in_folder(&dir))?.allow_file(".ralph/config.json")?;
    if args.web {
        let app = server_env::with_dotenv(app, folder, out)?;
        return Dashboard::of_demo(DemoRun { folder: dir, request }).serve(&app, folder, out);
    }
    // Shows steps even if stderr isn't a terminal.
    let mut out = *out;
    out.verbose = !out.quiet;
    let code = drive::start_or_report(&request, &own, &out);
    if !out.json && !out.quiet {
        out.say("try next:");
        if !args.feature {
            out.say("  ralph demo --feature              a feature with its own new tests");
        }
        out.say("  ralph demo --web                  the same run in the dashboard");
        out.say("  cd YOUR-REPO && ralph doctor      what ralph finds in your repo");
    }
    Ok(code)
}
