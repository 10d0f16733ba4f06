//! Effects on runs of a server. What needs a local folder is refused.

use super::perform::World;
use super::{runs, tabs};
use crate::data::{RunRow, ToneLine};
use crate::log::Kind;
use crate::msg::{Details, Effect, Live, Msg};
use crate::remote::Server;
use jiff::Timestamp;
use ralph_loop_app::AppError;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::money::Cost;
use ralph_loop_protocol::money::receipt::Receipt;
use serde::Deserialize as _;
use serde_json::Value;
use std::path::PathBuf;

/// Runs listed.
const RUNS_MAX: usize = 200;

/// Performs an effect.
pub fn perform(world: &World, server: &Server, effect: Effect) -> Result<(), AppError> {
    match effect {
        Effect::ListRuns => world.tell(Msg::Runs(list(server)?)),
        Effect::Send { run, control, .. } => send(world, server, &run, &control)?,
        Effect::Resume(run) => send(world, server, &run, &Control::Resume)?,
        Effect::End { run, now } => {
            send(world, server, &run, if now { &Control::Cancel } else { &Control::Stop })?;
        }
        Effect::LoadTab { run, tab } => world.tell(Msg::Tab(tab, load(server, &run, tab)?)),
        Effect::LoadDetails { run, from, iteration } => {
            world.tell(Msg::Details(Box::new(details(server, &run, from, iteration)?)));
        }
        Effect::ShowDiff(run) => {
            let answer = server.get(&["runs", &run, "diff"], &[])?;
            let patch = answer["patch"].as_str().unwrap_or_default();
            world.page(match patch.is_empty() {
                true => "This run has changed no file.\n".to_owned(),
                false => sanitize::block(patch).into_owned(),
            });
        }
        Effect::SaveText { name, text } => return runs::save(world, &name, &text),
        Effect::Command { words, .. } if words.first().is_some_and(|word| word == "open") => {
            let view = words.get(1).map(|run| server.view(run)).transpose()?.flatten();
            let url = view.and_then(|view| view.pr).map(|pr| one_line(&pr.url, 300));
            world.tell(Msg::Done(url.unwrap_or_else(|| "there is no pull request".to_owned())));
        }
        Effect::LookAround => {}
        _ => {
            let at = server.address().shown();
            return Err(AppError::usage(format!("that needs the folder of the run, which is on {at}"))
                .hint("do it there, or take its branch or pull request from the code host"));
        }
    }
    Ok(())
}

fn send(world: &World, server: &Server, run: &str, control: &Control) -> Result<(), AppError> {
    let name = control.name();
    let words = match server.control(run, control)?.as_str() {
        "received" => format!("{name}: accepted by run {run}"),
        "saved" => format!("{name}: sent; run {run} applies it at its next step"),
        "started" => format!("{name}: accepted, the run continues"),
        "ended" => format!("run {run} is ended"),
        other => format!("{name}: {other}"),
    };
    world.tell(Msg::Done(words));
    Ok(())
}

fn list(server: &Server) -> Result<Vec<RunRow>, AppError> {
    let page = server.get(&["runs"], &[("limit", RUNS_MAX.to_string())])?;
    let rows = page["runs"].as_array().into_iter().flatten().take(RUNS_MAX).map(row);
    Ok(rows.collect())
}

fn row(run: &Value) -> RunRow {
    let text = |key: &str, max: usize| one_line(run[key].as_str().unwrap_or_default(), max);
    let whole = |key: &str| run[key].as_u64().unwrap_or_default();
    let at = run["updated_at"].as_str().and_then(|at| at.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH);
    RunRow {
        id: text("id", 100),
        title: text("title", 200),
        status: text("status", 20),
        driven: run["driven"].as_bool().unwrap_or_default(),
        iteration: match whole("max_iterations") {
            0 => "–".to_owned(),
            most => format!("{}/{most}", whole("iteration")),
        },
        // Older servers don't say how the cost is known.
        cost: Cost::deserialize(run).unwrap_or(Cost::UNKNOWN).to_string(),
        at,
        folder: PathBuf::from(text("repo", 300)),
        here: true,
        waits: false,
    }
}

/// An iteration without its prompt and output, which only the run's machine has as text.
fn details(server: &Server, run: &str, from: Option<u32>, iteration: u32) -> Result<Details, AppError> {
    let asked = [("iteration", iteration.to_string())].into_iter();
    let asked: Vec<_> = asked.chain(from.map(|from| ("against", from.to_string()))).collect();
    let diff = changes(&server.get(&["runs", run, "diff"], &asked)?);
    let rows = server.get(&["runs", run, "iterations"], &[])?;
    let receipt = |number: u32| {
        let rows = rows["iterations"].as_array()?;
        let row = rows.iter().find(|row| row["iteration"] == number)?;
        serde_json::from_value::<Receipt>(row["receipt"].clone()).ok()
    };
    let checks = match from {
        Some(from) => tabs::tests_between(receipt(from).as_ref(), receipt(iteration).as_ref()),
        None => receipt(iteration).map(|receipt| tabs::receipt(iteration, &receipt)).unwrap_or_default(),
    };
    let note =
        format!("`ralph logs -o --iteration {iteration}` and `ralph show` on the run's machine show this");
    let prompt = vec![ToneLine::new(Tone::Muted, &note)];
    let output = vec![Live::Line(Kind::Note, note)];
    Ok(Details { from, iteration, output, prompt, diff, checks })
}

/// The files and the patch of an answer.
fn changes(answer: &Value) -> Vec<ToneLine> {
    let files: Vec<ToneLine> = answer["files"].as_array().into_iter().flatten().map(file).collect();
    let patch = answer["patch"].as_str().unwrap_or_default();
    match files.is_empty() && patch.is_empty() {
        true => Vec::new(),
        false => tabs::changes(files, patch, answer["cut"].as_bool().unwrap_or_default()),
    }
}

fn load(server: &Server, run: &str, tab: u8) -> Result<Vec<ToneLine>, AppError> {
    if tab == 3 {
        return Ok(changes(&server.get(&["runs", run, "diff"], &[])?));
    }
    let mut answer = server.get(&["runs", run, "iterations"], &[])?;
    let Value::Array(rows) = answer["iterations"].take() else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    for mut row in rows.into_iter().rev().take(RUNS_MAX) {
        let number = row["iteration"].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
        let Ok(receipt) = serde_json::from_value::<Receipt>(row["receipt"].take()) else { continue };
        match tab {
            4 => lines.extend(changelog(number, &receipt)),
            _ => lines.extend(tabs::receipt(number, &receipt)),
        }
    }
    Ok(lines)
}

fn file(file: &Value) -> ToneLine {
    let lines = file["added"].as_u64().zip(file["removed"].as_u64());
    let text = |key: &str| file[key].as_str().unwrap_or_default();
    tabs::file(text("status"), lines, text("path"))
}

/// An iteration's summary.
fn changelog(number: u32, receipt: &Receipt) -> Vec<ToneLine> {
    let mut lines =
        vec![ToneLine::new(Tone::Attention, format!("## Iteration {number} ({})", receipt.agent))];
    lines.extend(
        sanitize::block(&receipt.message).lines().take(40).map(|line| ToneLine::new(Tone::Plain, line)),
    );
    lines.push(ToneLine::new(Tone::Plain, ""));
    lines
}
