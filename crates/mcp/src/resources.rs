//! The resources of runs: `ralph://runs`, `ralph://runs/ID`, and the prompt, output, diff and receipt of each
//! iteration.

use crate::answers::{cut, text};
use ralph_loop_app::read::status;
use ralph_loop_app::{App, AppError};
use ralph_loop_journal::folder::plain;
use ralph_loop_protocol::display::text::{one_line, tail};
use rmcp::model::{Resource, ResourceTemplate};
use std::path::Path;

const FILE_MAX: u64 = 4 * 1024 * 1024;
const RUNS_MAX: usize = 50;
/// Parts of an iteration: URI segment, file, description.
const PARTS: &[(&str, &str, &str)] = &[
    ("prompt", "prompt.md", "text/markdown"),
    ("log", "output.log", "text/plain"),
    ("diff", "git_diff.patch", "text/x-diff"),
    ("receipt", "receipt.json", "application/json"),
    ("checks", "test_output.txt", "text/plain"),
];

/// The list of runs, and the newest ones.
pub(crate) fn list(app: &App, folder: &Path, everywhere: bool) -> Result<Vec<Resource>, AppError> {
    let mut found = vec![
        Resource::new("ralph://runs", "runs")
            .with_description(if everywhere { "The runs of this server" } else { "The runs of this folder" })
            .with_mime_type("application/json"),
    ];
    let runs = app.list(folder, everywhere)?;
    for run in runs.iter().rev().take(RUNS_MAX) {
        let title = one_line(&run.title, 120);
        found.push(
            Resource::new(format!("ralph://runs/{}", run.run_id), run.run_id.clone())
                .with_description(format!("{title} ({})", run.status))
                .with_mime_type("application/json"),
        );
    }
    Ok(found)
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let run = ResourceTemplate::new("ralph://runs/{run}", "run")
        .with_description("The state of a run")
        .with_mime_type("application/json");
    let events = ResourceTemplate::new("ralph://runs/{run}/events", "events")
        .with_description("What happened in a run, a line each")
        .with_mime_type("text/plain");
    let parts = PARTS.iter().map(|(name, _, mime)| {
        ResourceTemplate::new(
            format!("ralph://runs/{{run}}/iterations/{{n}}/{name}"),
            format!("iteration-{name}"),
        )
        .with_description(format!("The {name} of one iteration"))
        .with_mime_type(*mime)
    });
    [run, events].into_iter().chain(parts).collect()
}

/// A text and its type; `None` if the resource doesn't exist.
pub(crate) fn read(
    app: &App,
    folder: &Path,
    everywhere: bool,
    uri: &str,
) -> Result<Option<(String, &'static str)>, AppError> {
    let Some(path) = uri.strip_prefix("ralph://runs") else { return Ok(None) };
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let json = |value: serde_json::Value| Ok(Some((text(&value), "application/json")));
    match parts.as_slice() {
        [] => json(serde_json::to_value(app.list(folder, everywhere)?).unwrap_or_default()),
        [run] => json(status::with_race(app.environment(), &app.facts(folder, Some(run))?)),
        [run, "events"] => {
            let events =
                app.open(folder, Some(run))?.handle.follow(ralph_loop_protocol::id::Seq(0)).poll()?;
            let lines = events.iter().filter_map(|event| {
                let (_, words) = ralph_loop_protocol::describe::describe(event)?;
                Some(format!("{} {words}\n", event.at.strftime("%Y-%m-%dT%H:%M:%SZ")))
            });
            let whole: String = lines.collect();
            // The newest matter most.
            Ok(Some((tail(&whole, crate::answers::ANSWER_MAX).to_owned(), "text/plain")))
        }
        [run, "iterations", number, part] => {
            let Some((_, file, mime)) = PARTS.iter().find(|(name, _, _)| name == part) else {
                return Ok(None);
            };
            let Ok(number) = number.parse::<u32>() else { return Ok(None) };
            let record = app.open(folder, Some(run))?.entry.run_dir();
            let path = record.iteration(number).join(file);
            if !path.is_file() {
                return Ok(None);
            }
            Ok(Some((cut(plain::read_text(&path, FILE_MAX)), mime)))
        }
        _ => Ok(None),
    }
}
