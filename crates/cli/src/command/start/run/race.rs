//! `ralph run --race`: starts the contenders, shows a table, reports the winner.

use super::RunArgs;
use crate::consent;
use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::process::signals;
use crate::text::table;
use ralph_loop_app::race::{Race, RaceBy, RaceRun, RaceView};
use ralph_loop_app::{App, RaceRequest, RunRequest};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{clock, one_line};
use ralph_loop_task::dialect::Publish;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(200);

/// How to choose the best proven result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Best {
    /// The best number of the task.
    Metric,
    /// The smallest diff.
    Diff,
    /// The lowest cost.
    Cost,
}

impl From<Best> for RaceBy {
    fn from(best: Best) -> Self {
        match best {
            Best::Metric => Self::Metric,
            Best::Diff => Self::Diff,
            Best::Cost => Self::Cost,
        }
    }
}

/// Starts a race from flags.
pub fn run(args: &RunArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if args.tasks.len() > 1 {
        return Err(CommandError::usage("`--race` is about one task, but several are named")
            .hint("race them one after the other"));
    }
    let mut request = args.request(folder, super::what::task(args, folder)?);
    let by = args.best.map_or(RaceBy::First, RaceBy::from);
    request.race = Some(RaceRequest { who: args.race.clone(), by, runs: Vec::new() });
    if args.detach {
        return super::detach(&request, app, out);
    }
    look_after(&request, app, out)
}

/// Supervises a race until it is over.
pub fn look_after(request: &RunRequest, app: &App, out: &Out) -> Result<u8, CommandError> {
    let request = consent::settle(request, app, out)?;
    let mut race = Race::new(app.environment(), &request)?;
    let cancel = signals::install();
    let time = SystemClock::default();
    let (mut drawn, mut told) = (0, false);
    while !race.is_over() {
        if cancel.get().is_some() && !told {
            told = true;
            race.cancel();
        }
        race.step(time.elapsed())?;
        if out.live {
            drawn = draw(out, &race, time.elapsed(), drawn);
        }
        time.pause(TICK);
    }
    race.step(time.elapsed())?;
    if out.live {
        draw(out, &race, time.elapsed(), drawn);
    }
    Ok(summary(&race, told, out))
}

/// One line each; returns the number of lines.
fn draw(out: &Out, race: &Race, now: Duration, before: usize) -> usize {
    let view = race.view();
    let room = table::columns().saturating_sub(3);
    let wide = view.runs.iter().map(|run| table::width(&run.name)).max().unwrap_or(8).min(room / 3);
    let mut lines = Vec::new();
    for (run, lane) in view.runs.iter().zip(race.lanes()) {
        let name = table::fit(&run.name, wide);
        let pad = " ".repeat(wide.saturating_sub(table::width(&name)));
        let age =
            if lane.run.is_running() { clock(now.saturating_sub(lane.run.since())) } else { String::new() };
        let (status, cost) = (&run.status, run.cost.alone());
        let line = format!("{status:<9} {name}{pad} {cost:>8} {age:>6}  {}", one_line(&run.detail, 120));
        lines.push(format!("{} {}", out.status_sign(status), table::fit(&line, room)));
    }
    out.redraw_lines(before, &lines);
    lines.len()
}

/// Winner, costs and locations.
fn summary(race: &Race, cancelled: bool, out: &Out) -> u8 {
    let view = race.view();
    let worst = view.runs.iter().filter_map(|run| run.exit_code).find(|code| *code != 0).unwrap_or(1);
    let code = match (view.winning(), cancelled) {
        (Some(_), _) => 0,
        (None, true) => 130,
        (None, false) => u8::try_from(worst).unwrap_or(1),
    };
    let sign = match view.winning() {
        Some(_) => format!("{} ", out.err(Tone::Good, out.sign(Sign::Good))),
        None => String::new(),
    };
    out.say(format!("{sign}{}", view.verdict()));
    if let Some(why) = race.ended() {
        let who = if race.winner().is_some() { "the others" } else { "they" };
        out.say(format!("  {who} were ended: {why}"));
    }
    for run in &view.runs {
        let (status, cost) = (&run.status, run.cost.alone());
        out.say(format!("  {status:<9} {}, {cost}: {}", run.name, one_line(&run.detail, 160)));
    }
    out.say(format!("  together: {}, {} at most", view.cost.alone(), view.budget_usd));
    if let Some(RaceRun { run_id: run, .. }) = view.winning() {
        out.say(format!(
            "{} `ralph apply {run}` copies it into your own folder; `ralph diff {run}` shows it",
            out.err(Tone::Plain, "next:")
        ));
        if race.wanted() != Publish::None {
            out.say("  nothing was pushed, although `publish` is set: a race leaves that to you");
        }
    } else if let Some(run) = view.runs.iter().find(|run| run.proven) {
        let next = out.err(Tone::Plain, "next:");
        out.say(format!(
            "{next} choose a proven result; `ralph apply {}` takes that of {}",
            run.run_id, run.name
        ));
    }
    if out.json {
        out.value(&object(race, &view, code));
    }
    code
}

/// The race as JSON.
fn object(race: &Race, view: &RaceView, code: u8) -> Value {
    let runs: Vec<Value> = view
        .runs
        .iter()
        .zip(race.lanes())
        .map(|(run, lane)| {
            json!({
                "name": run.name, "run_id": run.begun.then_some(&run.run_id), "exit_code": run.exit_code,
                "cost_usd": run.cost.known(), "cost_basis": run.cost.basis(), "result": lane.run.result(),
            })
        })
        .collect();
    let winner = view.winning().map(|run| json!({ "name": run.name, "run_id": run.run_id }));
    json!({
        "success": code == 0, "race": view.id, "winner": winner,
        "cost_usd": view.cost.known(), "cost_basis": view.cost.basis(), "runs": runs,
    })
}
