//! `ralph hook`: handles an event of an agent's session. Started at every tool call, so `main` handles it
//! before building the command line.

use crate::error::CommandError;
use crate::output;
use clap::Args;
use ralph_loop_app::{App, Environment};
use ralph_loop_hooks::{Cli, HookContext, HookEvent, INPUT_MAX};
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  echo '{\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"rm -rf /\"}}' | RALPH_RUN=1 ralph hook pre-tool-use"
)]
pub struct HookArgs {
    /// Event
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(HookEvent::NAMES))]
    event: String,
    /// Agent CLI that calls the hook
    #[arg(long = "for", value_name = "CLI", default_value = "claude", value_parser = ["claude", "codex", "gemini", "qwen", "opencode"])]
    cli: String,
}

/// Handles hook arguments; leaves everything else, such as `--help`, to the command line.
pub fn quick(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let args: Vec<String> = args.map(|arg| arg.into_string().ok()).collect::<Option<_>>()?;
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (event, cli) = match words.as_slice() {
        ["hook", event] => (HookEvent::parse(event)?, Cli::default()),
        ["hook", event, "--for", cli] => (HookEvent::parse(event)?, Cli::parse(cli)?),
        _ => return None,
    };
    Some(output::hook(&answer(event, cli, &Environment::capture())))
}

/// From the command line.
pub fn run(args: &HookArgs, app: &App) -> Result<u8, CommandError> {
    let event = HookEvent::parse(&args.event);
    let cli = Cli::parse(&args.cli);
    let (Some(event), Some(cli)) = (event, cli) else {
        return Err(CommandError::usage(format!("unknown hook event `{}`", args.event)));
    };
    output::hook(&answer(event, cli, app.environment()));
    Ok(0)
}

fn answer(event: HookEvent, cli: Cli, env: &Environment) -> String {
    let context = HookContext {
        vars: env.vars().clone(),
        cwd: env.cwd().map(std::path::Path::to_path_buf).unwrap_or_default(),
        program: env.program().map(std::path::Path::to_path_buf),
    };
    let mut bytes = Vec::new();
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        // Judges whatever could be read.
        let _ = stdin.lock().take(INPUT_MAX).read_to_end(&mut bytes);
    }
    ralph_loop_hooks::answer(event, cli, &bytes, &context).stdout
}
