//! `ralph` without a command: the terminal UI in a repo; without a terminal, the status and the next step.

use crate::error::CommandError;
use crate::output::Out;
use crate::terminal_ui;
use ralph_loop_app::App;
use ralph_loop_app::config::settings;
use ralph_loop_app::read::find;
use ralph_loop_app::task::task_source;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::outcome::EndReason;
use std::path::Path;

/// Prints the status.
pub fn run(app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let top = find::top(folder);
    let is_repo = top.join(".git").exists();
    if is_repo && terminal_ui::fits(app, out) {
        terminal_ui::open(app, folder, None, out)?;
        return Ok(0);
    }
    let home = app.environment().state_home()?;
    let runs = find::runs_of(&home, &top);
    let (stands, next) = standing(app, folder, &top, is_repo, &runs);
    if out.json {
        out.value(&serde_json::json!({ "folder": top, "stands": stands, "next": next, "runs": runs.len() }));
        return Ok(0);
    }
    out.line(format!("{}  {}", top.display(), stands));
    out.line(format!("{} {next}", out.out(Tone::Plain, "next:")));
    out.line(out.out(Tone::Muted, "`ralph --help` lists every command, `ralph demo` shows a complete run."));
    Ok(0)
}

/// `ralph tui`: the terminal UI or an error.
pub fn tui(app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if !terminal_ui::fits(app, out) {
        return Err(CommandError::usage("the terminal UI needs a terminal")
            .hint("run it in a terminal, or run `ralph status`"));
    }
    terminal_ui::open(app, folder, None, out)?;
    Ok(0)
}

fn standing(app: &App, folder: &Path, top: &Path, is_repo: bool, runs: &[Registration]) -> (String, String) {
    if !is_repo {
        return (
            "not a git repository".into(),
            "run `git init`, commit your files, then run `ralph init`; or run `ralph demo` to see a run first".into(),
        );
    }
    // A run whose folder was moved is reported by `ralph list`.
    if !runs.is_empty()
        && let Ok(facts) = app.facts(folder, None)
    {
        let (view, id) = (facts.view(), &facts.entry.run_id);
        let stands = format!(
            "run {id}: {}, iteration {} of {}",
            view.status,
            facts.iteration(),
            facts.state.spec.settings.budgets.max_iterations
        );
        let next = match (&view.finished, &view.needs) {
            (Some(end), _) if end.reason == EndReason::Completed => {
                format!("`ralph show {id}` shows the proof; `ralph run` starts the next task")
            }
            (None, Some(needs)) => format!("{}: {}", needs.message, needs.next),
            (None, None) if view.driven => {
                format!("`ralph logs -f {id}` follows it, `ralph status` shows more")
            }
            // For a stopped run, this names the command.
            _ => view.next.unwrap_or(view.now),
        };
        return (stands, next);
    }
    if !RalphDir::of(top).config().is_file() {
        let own = settings::user_agents(app.environment());
        if !own.is_empty() {
            let names: Vec<&str> = own.iter().map(|agent| agent.name.as_str()).collect();
            return (
                format!("not set up; your own configuration has {}", names.join(", ")),
                "`ralph init` writes a configuration; `ralph run \"…\"` works without one".into(),
            );
        }
        return match settings::detected_agents(app.environment(), top).as_slice() {
            [] => (
                "not set up; no agent CLI found".into(),
                "run `ralph doctor` to see what's missing, or `ralph demo`, which needs no setup".into(),
            ),
            agents => {
                let names: Vec<&str> = agents.iter().map(|a| a.name.as_str()).collect();
                (
                    format!("not set up; found {}", names.join(", ")),
                    "`ralph init` writes a configuration".into(),
                )
            }
        };
    }
    match task_source::candidates(top).as_slice() {
        [] => (
            "set up, no task yet".into(),
            "`ralph init --task` writes one to fill in (or `--json-task`, `--plan`, `--prompt`)".into(),
        ),
        [task] => ("ready".into(), format!("`ralph run` starts the loop on {}", task.main_file())),
        several => {
            let names: Vec<&str> = several.iter().map(|task| task.main_file()).collect();
            (format!("ready, with {}", names.join(" and ")), format!("`ralph run {}`", names[0]))
        }
    }
}
