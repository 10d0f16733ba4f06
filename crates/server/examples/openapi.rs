//! Writes the OpenAPI document, or says that it is stale: `openapi FILE [--check]`. `scripts/generate` calls it.
#![allow(clippy::print_stderr, reason = "a tool of the scripts")]

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next().map(PathBuf::from) else {
        eprintln!("usage: openapi FILE [--check]");
        return ExitCode::from(2);
    };
    let check = args.next().as_deref() == Some("--check");
    let text = match serde_json::to_string_pretty(&ralph_loop_server::openapi::document()) {
        Ok(text) => text + "\n",
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    };
    if std::fs::read_to_string(&path).unwrap_or_default() == text {
        return ExitCode::SUCCESS;
    }
    if check {
        eprintln!("{} is stale", path.display());
        return ExitCode::FAILURE;
    }
    match std::fs::write(&path, text) {
        Ok(()) => {
            eprintln!("wrote {}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}
