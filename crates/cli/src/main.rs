//! The binary `ralph`.
//!
//! stdout carries what was asked for and nothing else: with `--json` exactly one JSON value as its last line. Everything
//! for people (progress, hints, errors) goes to stderr. The exit code says how it went: 0 proven or done, 1 ended without
//! success, 2 wrong use, 3 needs a person, 4 the environment cannot do it, 130 cancelled.

mod args;
mod command;
mod error;
mod fault;
mod fence;
mod find;
mod handover;
mod host;
mod models;
mod notify;
mod output;
mod present;
mod providers;
mod sandboxes;
mod settings;
mod signals;
mod state_files;
mod task_source;
mod wiring;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The guard and the fence are this binary again. They start before anything else is set up, so that they stay small.
    if let Some(code) = wiring::helper_entry() {
        return code;
    }
    let args = match args::Cli::try_parse() {
        Ok(args) => args,
        Err(error) => return output::usage(&error),
    };
    let out = output::Out::new(&args);
    // What a killed guard leaves behind comes to this process, which ends it.
    let adopts = ralph_sandbox::adopt_orphans().map_err(error::CommandError::from);
    match adopts.and_then(|()| command::run(args, &out)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(out.fail(&error)),
    }
}
