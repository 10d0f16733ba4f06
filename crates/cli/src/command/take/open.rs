//! `ralph open`: opens a run's pull request or folder.
#![allow(clippy::disallowed_methods, reason = "starts the user's own browser or file manager")]

use crate::error::CommandError;
use crate::output::Out;
use crate::text::words::home_path;
use ralph_loop_agents::presets::find_program;
use ralph_loop_app::{App, Environment};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph open              open the latest run's pull request or files
  ralph open k3f9 --print")]
pub struct OpenArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Open the folder, even if there is a pull request
    #[arg(long)]
    pub files: bool,
    /// Print the URL or path instead of opening it
    #[arg(long)]
    pub print: bool,
}

pub fn run(args: OpenArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let facts = app.facts(folder, args.run.as_deref())?;
    let pr = facts.state.handover.pr.as_ref().filter(|_| !args.files).map(|pr| pr.url.clone());
    let (kind, target) = match pr {
        Some(url) => ("pull_request", url),
        None => {
            let home = facts.state.spec.home();
            if !home.is_dir() {
                return Err(CommandError::usage(format!(
                    "the folder of run {} is gone: `{}`",
                    facts.entry.run_id,
                    home.display()
                ))
                .hint(format!("`ralph diff {}` shows its changes", facts.entry.run_id)));
            }
            ("folder", home.display().to_string())
        }
    };
    let may_open = kind == "folder" || is_web_address(&target);
    let opened = !args.print && !out.json && may_open && start(app.environment(), &target);
    if out.json {
        out.value(&json!({ "run_id": facts.entry.run_id, "kind": kind, "target": target, "opened": opened }));
    } else if opened {
        out.say(format!("opened {}", home_path(Path::new(&target))));
    } else {
        out.line(&target);
    }
    Ok(0)
}

/// Only web URLs are opened: a code host or fetched state could name a file, which a desktop would run.
fn is_web_address(target: &str) -> bool {
    let rest = ["https://", "http://"].into_iter().find_map(|scheme| target.strip_prefix(scheme));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['))
        && target.chars().all(|c| !c.is_control() && !c.is_whitespace())
}

/// Opens a URL on the desktop; returns whether there is one.
fn start(env: &Environment, target: &str) -> bool {
    let vars = env.vars();
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(|name| vars.is_filled(name));
    let named = vars.filled("BROWSER").filter(|_| !target.starts_with('/'));
    let program = match named {
        Some(named) => find_program(&named, &env.path()),
        None => ["xdg-open", "open"]
            .into_iter()
            .filter(|_| desktop)
            .find_map(|name| find_program(name, &env.path())),
    };
    let Some(program) = program else { return false };
    let mut command = Command::new(program);
    command.arg(target).env_clear().envs(vars.iter());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
