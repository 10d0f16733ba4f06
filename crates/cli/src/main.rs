//! The binary `ralph`.
//!
//! stdout carries only the requested output; with `--json` its last line is exactly one JSON value. Progress,
//! hints and errors go to stderr. Exit codes: 0 proven or done, 1 ended without success, 2 usage error, 3
//! needs the user, 4 environment problem, 130 suspended or canceled.

mod args;
mod command;
mod confirm;
mod consent;
mod dashboard;
mod demo_repo;
mod dispatch;
mod drive;
mod error;
mod output;
mod parse;
mod process;
mod progress;
mod question;
mod task_files;
mod terminal_ui;
mod text;

use ralph_loop_app::{App, Environment};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Guard and sandbox are this binary too; they start before any setup, so that they stay small.
    if let Some(code) = ralph_loop_sandbox::helper(std::env::args_os().skip(1)) {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    // Shell prompts and editors ask at every start, so skip building the command line.
    if let Some(asked) = text::version::requested(std::env::args_os().skip(1)) {
        return output::version(asked);
    }
    // A hook runs at every tool call, so nothing may delay it.
    if let Some(code) = command::serving::hook::quick(std::env::args_os().skip(1)) {
        return code;
    }
    // Only for the two that live as long as a run. Unoptimized code is so large that many small mappings are
    // slow.
    if cfg!(not(debug_assertions))
        && std::env::args_os().nth(1).is_some_and(|word| word == "run" || word == "resume")
    {
        process::own_code::in_small_blocks();
    }
    let args = match args::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(error) => return output::usage(&error, |name| args::parser().find_subcommand(name).is_some()),
    };
    let env = Environment::capture();
    process::terminal::learn(&env);
    let out = output::Out::new(args.style(), &env);
    let app = App::new(env);
    if args.verbose > 1
        || matches!(
            args.command,
            Some(args::Command::Run(_) | args::Command::Resume(_) | args::Command::Worker(_))
        )
    {
        process::log::begin(&app, args.verbose > 1);
    }
    // Adopts and reaps what a killed guard leaves behind. A server's runs aren't its children.
    let adopts = match args.command {
        Some(args::Command::Serve(_)) => Ok(()),
        // A worker's runs survive it and reap their own processes.
        Some(args::Command::Worker(ref worker)) if worker.once.is_none() => Ok(()),
        _ => ralph_loop_sandbox::become_subreaper().map_err(error::CommandError::from),
    };
    match adopts.and_then(|()| dispatch::dispatch(args, &app, &out)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(out.fail(&error)),
    }
}
