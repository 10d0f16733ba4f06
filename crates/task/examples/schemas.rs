//! Writes the derived schemas, or says which are stale: `schemas FOLDER [--check]`. `scripts/generate` calls it.
#![allow(clippy::print_stderr, reason = "a tool of the scripts")]

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(folder) = args.next().map(PathBuf::from) else {
        eprintln!("usage: schemas FOLDER [--check]");
        return ExitCode::from(2);
    };
    let check = args.next().as_deref() == Some("--check");
    let mut code = ExitCode::SUCCESS;
    for published in ralph_protocol::schema::all().into_iter().chain(ralph_task::schema::all()) {
        let path = folder.join(format!("{}.schema.json", published.name));
        let text = match serde_json::to_string_pretty(&published.schema) {
            Ok(text) => text + "\n",
            Err(error) => {
                eprintln!("{}: {error}", published.name);
                return ExitCode::FAILURE;
            }
        };
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        if old == text {
            continue;
        }
        if check {
            eprintln!("{} is stale", path.display());
            code = ExitCode::FAILURE;
        } else if let Err(error) = std::fs::write(&path, text) {
            eprintln!("cannot write {}: {error}", path.display());
            return ExitCode::FAILURE;
        } else {
            eprintln!("wrote {}", path.display());
        }
    }
    code
}
