//! Writes the derived schemas and the table of signs and colors, or says which are stale: `schemas FOLDER [--check]`.
//! `scripts/generate` calls it.
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
    let schemas = ralph_loop_protocol::schema::all().into_iter().chain(ralph_loop_task::schema::all());
    let files = schemas.map(|published| (format!("{}.schema.json", published.name), published.schema));
    for (name, value) in files.chain([("looks.json".to_owned(), ralph_loop_protocol::display::look::table())])
    {
        let path = folder.join(&name);
        let text = match serde_json::to_string_pretty(&value) {
            Ok(text) => text + "\n",
            Err(error) => {
                eprintln!("{name}: {error}");
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
