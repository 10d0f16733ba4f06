//! The binary `ralph`.
//!
//! stdout carries what was asked for and nothing else: with `--json` exactly one JSON value as its last line. Everything
//! for people (progress, hints, errors) goes to stderr. The exit code says how it went: 0 proven or done, 1 ended without
//! success, 2 wrong use, 3 needs a person, 4 the environment cannot do it, 130 suspended or cancelled.

mod args;
mod command;
mod confirm;
mod consent;
mod dashboard;
mod demo_repo;
mod dispatch;
mod drive;
mod error;
mod fault;
mod follow;
mod live_text;
mod log;
mod output;
mod own_code;
mod parse;
mod present;
mod question;
mod report;
mod run_text;
mod server_env;
mod session_lines;
mod signals;
mod table;
mod task_files;
mod terminal;
mod terminal_ui;
mod version;
mod words;

use ralph_loop_app::{App, Environment};
use std::process::ExitCode;

fn main() -> ExitCode {
    // The guard and the sandbox are this binary again. They start before anything else is set up, so that they stay small.
    if let Some(code) = ralph_loop_sandbox::helper(std::env::args_os().skip(1)) {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    // Asked for at every start of a shell prompt or an editor: not worth building the whole command line for.
    if let Some(asked) = version::requested(std::env::args_os().skip(1)) {
        return output::version(asked);
    }
    // A hook is started at every tool call of an agent: nothing else may stand before its answer.
    if let Some(code) = command::hook::quick(std::env::args_os().skip(1)) {
        return code;
    }
    // The two that stay for as long as a run does. Without optimisation the code is so large that its many pieces cost time.
    if cfg!(not(debug_assertions))
        && std::env::args_os().nth(1).is_some_and(|word| word == "run" || word == "resume")
    {
        own_code::in_small_blocks();
    }
    let args = match args::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(error) => return output::usage(&error, |name| args::parser().find_subcommand(name).is_some()),
    };
    let env = Environment::capture();
    terminal::learn(&env);
    let out = output::Out::new(args.style(), &env);
    let app = App::new(env);
    if args.verbose > 1
        || matches!(
            args.command,
            Some(args::Command::Run(_) | args::Command::Resume(_) | args::Command::Worker(_))
        )
    {
        log::begin(&app, args.verbose > 1);
    }
    // What a killed guard leaves behind comes to this process, which ends it. A server has runs that are nobody's children.
    let adopts = match args.command {
        Some(args::Command::Serve(_)) => Ok(()),
        // A worker's runs go on where it is killed, and their own processes look after what they start.
        Some(args::Command::Worker(ref worker)) if worker.once.is_none() => Ok(()),
        _ => ralph_loop_sandbox::adopt_orphans().map_err(error::CommandError::from),
    };
    match adopts.and_then(|()| dispatch::dispatch(args, &app, &out)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(out.fail(&error)),
    }
}
