//! `ralph run --race`: this process only starts those that race, shows a table and says who won.

use super::RunArgs;
use crate::consent;
use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::signals;
use crate::table;
use ralph_app::App;
use ralph_app::race::{Lane, Race, RaceBy};
use ralph_core::clock::SystemClock;
use ralph_domain::describe::Tone;
use ralph_domain::money::Usd;
use ralph_domain::ports::Clock as _;
use ralph_domain::text::{clock, one_line};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(200);

/// What the best of several proven results is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Best {
    /// The best number of the task.
    Metric,
    /// The smallest diff.
    Diff,
    /// The lowest cost.
    Cost,
}

/// Races.
pub fn run(args: &RunArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if args.tasks.len() > 1 {
        return Err(CommandError::usage("`--race` is about one task, but several are named")
            .hint("race them one after the other"));
    }
    let by = match args.best {
        None => RaceBy::First,
        Some(Best::Metric) => RaceBy::Metric,
        Some(Best::Diff) => RaceBy::Diff,
        Some(Best::Cost) => RaceBy::Cost,
    };
    let request = consent::settle(&args.request(folder, super::what::task(args, folder)?), app, out)?;
    let mut race = Race::new(app.environment(), &request, &args.race, by)?;
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

/// How one stands, in a word and a few more.
fn standing(lane: &Lane<'_>) -> (String, String) {
    let text = |key: &str| lane.run.result().and_then(|r| r[key].as_str()).unwrap_or_default().to_owned();
    match (lane.run.code(), &lane.state) {
        (Some(0), _) => ("done".into(), text("summary")),
        (Some(130), _) => ("stopped".into(), text("summary")),
        (Some(3), _) => ("needs you".into(), text("summary")),
        (Some(_), _) => ("failed".into(), text("summary")),
        (None, Some(state)) => {
            let number = state.iterations.current.as_ref().map_or(state.iterations.count, |c| c.iteration);
            let most = state.spec.settings.budgets.max_iterations;
            let best = ralph_domain::best::best(state)
                .map_or_else(String::new, |best| format!(", best {}", best.value));
            (state.status().to_string(), format!("iteration {number}/{most}{best}"))
        }
        (None, None) => ("preparing".into(), String::new()),
    }
}

/// One line for each; returns how many were drawn.
fn draw(out: &Out, race: &Race, now: Duration, before: usize) -> usize {
    let lanes = race.lanes();
    let room = table::columns().saturating_sub(3);
    let wide = lanes.iter().map(|lane| table::width(lane.name)).max().unwrap_or(8).min(room / 3);
    let mut lines = Vec::new();
    for lane in &lanes {
        let (status, detail) = standing(lane);
        let name = table::fit(lane.name, wide);
        let pad = " ".repeat(wide.saturating_sub(table::width(&name)));
        let age =
            if lane.run.is_running() { clock(now.saturating_sub(lane.run.since())) } else { String::new() };
        let cost = lane.cost_words();
        let line = format!("{status:<9} {name}{pad} {cost:>8} {age:>6}  {}", one_line(&detail, 120));
        lines.push(format!("{} {}", out.status_sign(&status), table::fit(&line, room)));
    }
    out.redraw_lines(before, &lines);
    lines.len()
}

/// Who won, who cost what, and where everything is.
fn summary(race: &Race, cancelled: bool, out: &Out) -> u8 {
    let lanes = race.lanes();
    let all = lanes.iter().fold(Usd::ZERO, |sum, lane| sum + lane.cost());
    let id = |lane: &Lane<'_>| lane.run.result().and_then(|r| r["run_id"].as_str()).map(str::to_owned);
    let worst = lanes.iter().filter_map(|lane| lane.run.code()).find(|code| *code != 0).unwrap_or(1);
    let code = match (race.winner(), cancelled) {
        (Some(_), _) => 0,
        (None, true) => 130,
        (None, false) => u8::try_from(worst).unwrap_or(1),
    };
    match race.winner().map(|at| &lanes[at]) {
        Some(lane) => out.say(format!("{} {} wins", out.err(Tone::Good, out.sign(Sign::Good)), lane.name)),
        None => out.say("nobody wins: no result is proven"),
    }
    if let Some(why) = race.ended() {
        out.say(format!("  the others were ended: {why}"));
    }
    for lane in &lanes {
        let (status, detail) = standing(lane);
        out.say(format!("  {status:<9} {} {}: {}", lane.name, lane.cost_words(), one_line(&detail, 160)));
    }
    let together = match lanes.iter().any(Lane::is_cost_unknown) {
        true if all == Usd::ZERO => "cost unknown".to_owned(),
        true => format!("at least {all}"),
        false => all.to_string(),
    };
    out.say(format!("  together {together} of {}", race.budget()));
    if let Some(run) = race.winner().and_then(|at| id(&lanes[at])) {
        out.say(format!(
            "{} `ralph apply {run}` brings it into your own folder; `ralph diff {run}` shows it",
            out.err(Tone::Plain, "next:")
        ));
    }
    if out.json {
        let told: Vec<Value> = lanes
            .iter()
            .map(|lane| {
                json!({
                    "name": lane.name, "run_id": id(lane), "exit_code": lane.run.code(),
                    "cost_usd": lane.cost(), "result": lane.run.result(),
                })
            })
            .collect();
        let winner = race.winner().map(|at| json!({ "name": lanes[at].name, "run_id": id(&lanes[at]) }));
        out.value(&json!({ "success": code == 0, "winner": winner, "cost_usd": all, "runs": told }));
    }
    code
}
