//! `ralph show`: a run with spec, iterations and proof, or one iteration with receipt and files.

mod checks;
mod iteration;
mod proof;
mod whole;

use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::App;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::timeline::RunTimeline;
use ralph_loop_app::trust::repo_file;
use ralph_loop_protocol::display::text::count;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph show                      show the latest run
  ralph show k3f9 3 --diff        print what iteration 3 changed
  ralph show --proof              print the final check's evidence")]
pub struct ShowArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Iteration
    pub iteration: Option<u32>,
    /// Print the iteration's patch
    #[arg(long, group = "artifact")]
    pub diff: bool,
    /// Print its prompt
    #[arg(long, group = "artifact")]
    pub prompt: bool,
    /// Print the agent's output
    #[arg(long, group = "artifact")]
    pub output: bool,
    /// Print its receipt
    #[arg(long, group = "artifact")]
    pub receipt: bool,
    /// Print the run's proof
    #[arg(long, group = "artifact", conflicts_with = "iteration")]
    pub proof: bool,
    /// Print every check and its last result
    #[arg(long, group = "artifact", conflicts_with = "iteration")]
    pub checks: bool,
    /// Print the file byte by byte
    #[arg(long, requires = "artifact", conflicts_with_all = ["proof", "checks"])]
    pub raw: bool,
}

pub fn run(args: ShowArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let ShowArgs { run, iteration, diff, prompt, output, receipt, proof, checks, raw } = args;
    let facts = app.facts(folder, run.as_deref())?;
    if !out.json {
        facts.mark_seen();
    }
    if proof {
        return self::proof::show(&facts, out);
    }
    if checks {
        return Ok(self::checks::show(&facts, out));
    }
    let file =
        [(diff, "git_diff.patch"), (prompt, "prompt.md"), (output, "output.log"), (receipt, "receipt.json")];
    if let Some((_, name)) = file.into_iter().find(|(wanted, _)| *wanted) {
        return artifact(&facts, iteration, name, raw, out);
    }
    let story = RunTimeline::read(app.environment(), &facts, iteration)?;
    match iteration {
        Some(number) => self::iteration::show(&facts, number, &story, out),
        None => whole::show(&facts, &story, out),
    }
    .map(|()| 0)
}

/// Prints one file of an iteration.
fn artifact(
    facts: &RunSnapshot,
    wanted: Option<u32>,
    name: &str,
    raw: bool,
    out: &Out,
) -> Result<u8, CommandError> {
    let number = wanted.unwrap_or_else(|| facts.iteration().max(1));
    let path = facts.entry.run_dir().iteration(number).join(name);
    let bytes = match repo_file::read_record(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            require_iteration(facts, number)?;
            return Err(CommandError::usage(format!(
                "iteration {number} of run {} has no `{name}` (yet)",
                facts.entry.run_id
            ))
            .hint(format!("`ralph show {} {number}` lists its files", facts.entry.run_id)));
        }
        Err(e) => return Err(CommandError::environment(format!("cannot read `{}`: {e}", path.display()))),
    };
    if out.json {
        let text = String::from_utf8_lossy(&bytes);
        let id = &facts.entry.run_id;
        out.value(&serde_json::json!({ "run_id": id, "iteration": number, "file": name, "path": path, "text": text }));
    } else if raw {
        out.raw(&bytes);
    } else {
        out.text(&String::from_utf8_lossy(&bytes));
    }
    Ok(0)
}

/// Fails unless the iteration exists, at least in part.
fn require_iteration(facts: &RunSnapshot, number: u32) -> Result<(), CommandError> {
    if facts.entry.run_dir().iteration(number).is_dir() {
        return Ok(());
    }
    let id = &facts.entry.run_id;
    let hint = match facts.iteration() {
        0 => "no session has started yet".to_owned(),
        last => format!("it has {}; `ralph show {id}` lists them", count(last as usize, "iteration")),
    };
    Err(CommandError::usage(format!("run {id} has no iteration {number}")).hint(hint))
}
