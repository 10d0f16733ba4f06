//! Runs several tasks in parallel: starts the processes, shows a table, adds up results.

use super::RunArgs;
use crate::consent;
use crate::error::CommandError;
use crate::output::Out;
use crate::process::signals;
use crate::text::table;
use ralph_loop_app::race::side_by_side::{Batch, BatchRun};
use ralph_loop_app::{App, RunRequest, TaskInput};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_protocol::display::text::{clock, one_line};
use ralph_loop_protocol::proof::level::ProofLevel;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(200);

/// Runs every file of `args`, at most `jobs` at a time.
pub fn run(args: &RunArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let files = super::what::files(args, folder)?.into_iter();
    let requests: Vec<RunRequest> = files
        .map(|file| consent::settle(&args.request(folder, TaskInput::File(file)), app, out))
        .collect::<Result<_, _>>()?;
    let mut batch = Batch::new(app.environment(), requests, args.jobs.unwrap_or(2))?;
    for run in batch.runs() {
        if let Some(id) = run.resumes() {
            out.say(format!(
                "continuing unfinished run {id} of {} (pass `--new` to start another)",
                name(run)
            ));
        }
    }
    let cancel = signals::install();
    let time = SystemClock::default();
    let mut drawn = 0;
    let mut told = false;
    let mut stands = vec![String::new(); batch.runs().len()];
    while !batch.is_over() {
        if cancel.get().is_some() && !told {
            told = true;
            batch.cancel();
        }
        batch.step(time.elapsed())?;
        if out.live {
            drawn = draw(out, &batch, time.elapsed(), drawn);
        } else {
            report_changes(out, &batch, &mut stands);
        }
        time.pause(TICK);
    }
    if out.live {
        draw(out, &batch, time.elapsed(), drawn);
    }
    Ok(summary(batch.runs(), out))
}

/// Status and message of a task from its process alone.
fn words(run: &BatchRun) -> (&'static str, String) {
    let text = |key: &str| run.result().and_then(|r| r[key].as_str()).unwrap_or_default().to_owned();
    let summary = || text("summary");
    match run.code() {
        Some(0) => ("done", summary()),
        // The message names the command that resumes it.
        Some(130) if text("reason") == "suspended" => ("paused", summary()),
        Some(130) if run.result().is_none() => ("stopped", "not started".into()),
        Some(130) => ("stopped", summary()),
        Some(3) => ("needs you", summary()),
        Some(_) => ("failed", summary()),
        None if run.is_running() => ("preparing", String::new()),
        None => ("queued", String::new()),
    }
}

fn name(run: &BatchRun) -> String {
    run.request().file().map_or_else(String::new, |file| file.display().to_string())
}

/// Status and message of a task, from its run if there is one.
fn standing(batch: &Batch, run: &BatchRun) -> (String, String) {
    let (status, detail) = words(run);
    let Some(state) = batch.state(run) else { return (status.to_owned(), detail) };
    let number = state.iterations.current.as_ref().map_or(state.iterations.count, |c| c.iteration);
    (state.status().to_string(), format!("iteration {number}/{}", state.spec.settings.budgets.max_iterations))
}

/// Without a terminal: one line per status change. The summary reports ends.
fn report_changes(out: &Out, batch: &Batch, stands: &mut [String]) {
    for (run, before) in batch.runs().iter().zip(stands) {
        let (status, detail) = standing(batch, run);
        let now = format!("{status} {detail}");
        if run.is_running() && *before != now {
            out.say(format!("  {status:<9} {}: {}", name(run), one_line(&detail, 120)));
            *before = now;
        }
    }
}

/// One line per task; returns the number of lines.
fn draw(out: &Out, batch: &Batch, now: Duration, before: usize) -> usize {
    let mut lines = Vec::new();
    for run in batch.runs() {
        let (status, detail) = standing(batch, run);
        let age = if run.is_running() { clock(now.saturating_sub(run.since())) } else { String::new() };
        // Wrapped lines couldn't be redrawn.
        let room = table::columns().saturating_sub(3);
        let name = table::fit(&name(run), (room / 3).clamp(8, 28));
        let pad = " ".repeat((room / 3).clamp(8, 28).saturating_sub(table::width(&name)));
        let line = format!("{status:<9} {name}{pad} {age:>6}  {}", one_line(&detail, 120));
        let line = table::fit(&line, room);
        lines.push(format!("{} {line}", out.status_sign(&status)));
    }
    out.redraw_lines(before, &lines);
    batch.runs().len()
}

/// The combined result: success only if every run succeeded.
fn summary(runs: &[BatchRun], out: &Out) -> u8 {
    let code = |run: &BatchRun| run.code().unwrap_or(1);
    let worst = [130, 4, 3, 2, 1].into_iter().find(|c| runs.iter().any(|l| code(l) == *c)).unwrap_or(0);
    let level = |run: &BatchRun| {
        let level = run.result().map(|result| result["level"].clone()).filter(|_| code(run) == 0)?;
        serde_json::from_value::<ProofLevel>(level).ok()
    };
    let done = runs.iter().filter(|run| code(run) == 0).count();
    let proven = runs.iter().filter(|run| level(run).is_some_and(ProofLevel::is_proven)).count();
    let more = if done > proven { format!(", {} done, unverified", done - proven) } else { String::new() };
    out.say(format!("{proven} of {} proven{more}", runs.len()));
    for run in runs {
        let (status, detail) = words(run);
        out.say(format!("  {status:<9} {}: {}", name(run), one_line(&detail, 200)));
        if let Some(branch) = run.result().and_then(|r| r["branch"].as_str()) {
            let folder = run.result().and_then(|r| r["workspace"].as_str()).unwrap_or_default();
            out.say(format!("            branch {branch} in {folder}"));
        }
        if let Some(id) = run.result().and_then(|r| r["run_id"].as_str()).filter(|_| code(run) == 0) {
            out.say(format!("            `ralph apply {id}` copies it into your own folder"));
        }
    }
    if out.json {
        let runs: Vec<Value> = runs
            .iter()
            .map(|l| serde_json::json!({ "file": l.request().file(), "exit_code": code(l), "result": l.result() }))
            .collect();
        out.value(
            &serde_json::json!({ "success": worst == 0, "proven": proven, "unverified": done - proven, "runs": runs }),
        );
    }
    u8::try_from(worst).unwrap_or(1)
}
