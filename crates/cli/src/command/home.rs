//! `ralph` alone: where things stand, and the one next step.

use crate::error::CommandError;
use crate::output::Out;
use ralph_app::{App, Environment, find, settings, task_source};
use ralph_domain::describe::Tone;
use ralph_journal::layout::RalphDir;
use std::path::Path;

/// Says where things stand.
pub fn run(app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let top = find::top(folder);
    let home = app.environment().state_home()?;
    let runs = find::runs_of(&home, &top);
    let (stands, next) = standing(app.environment(), &top, &runs);
    if out.json {
        out.value(&serde_json::json!({ "folder": top, "stands": stands, "next": next, "runs": runs.len() }));
        return Ok(0);
    }
    out.line(format!("{}  {}", top.display(), stands));
    out.line(format!("{} {next}", out.out(Tone::Plain, "next:")));
    out.line(out.out(Tone::Muted, "`ralph --help` lists every command, `ralph demo` shows a whole run."));
    Ok(0)
}

fn standing(
    env: &Environment,
    top: &Path,
    runs: &[ralph_journal::registry::Registration],
) -> (String, String) {
    if !top.join(".git").exists() {
        return (
            "not a git repository".into(),
            "`git init`, commit what is there, then `ralph init`; or `ralph demo` to see a run first".into(),
        );
    }
    if let Some(run) = runs.last()
        && let Ok(state) = find::handle(env, run).state()
    {
        let id = &run.run_id;
        let driven = find::handle(env, run).is_driven();
        let stands = format!(
            "run {id}: {}, iteration {} of {}",
            state.status(),
            state.iterations.count,
            state.spec.settings.budgets.max_iterations
        );
        let next = match (&state.result.finished, &state.people.needs_human, driven) {
            (Some(end), _, _) if end.reason == ralph_domain::outcome::EndReason::Completed => {
                format!("`ralph show {id}` shows the proof; `ralph run` starts the next task")
            }
            (Some(_), _, _) => format!("`ralph show {id}` shows why it ended; `ralph run` starts again"),
            (None, Some(need), _) if need.reason.needs_approval() => {
                format!("{}: look at it, then `ralph approve {id}` and `ralph resume {id}`", need.message)
            }
            (None, Some(need), _) => {
                format!("{}: `ralph nudge \"…\"`, then `ralph resume {id}`", need.message)
            }
            (None, None, true) => format!("`ralph logs -f {id}` follows it, `ralph status` shows more"),
            (None, None, false) => format!("not running: `ralph resume {id}` goes on"),
        };
        return (stands, next);
    }
    if !RalphDir::of(top).config().is_file() {
        return match settings::detected_agents(env).as_slice() {
            [] => (
                "not set up; no agent CLI found".into(),
                "`ralph doctor` shows what is missing; `ralph demo` needs nothing".into(),
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
