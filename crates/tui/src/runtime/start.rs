//! Starts a run: asks for permissions first, then spawns a process.

use super::perform::World;
use crate::data::StartWish;
use crate::msg::Msg;
use ralph_loop_app::race::RaceBy;
use ralph_loop_app::{
    AppError, ErrorKind, Overrides, RaceRequest, RunRequest, SilentReporter, TaskInput, TrustRequest,
    Unfinished, Workplace,
};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::dialect::Publish;
use std::path::PathBuf;

/// Length limit of a question.
const LINES_MAX: usize = 24;

/// Starts a run, or says what prevents it.
pub fn start(world: &World, wish: StartWish) -> Result<(), AppError> {
    let request = request(world, &wish)?;
    if let Some(asked) = world.app.asked_for_source(&request)?
        && let Some(lines) = open_question(world, &asked)?
    {
        world.tell(Msg::Consent(Box::new(wish), lines));
        return Ok(());
    }
    let settled = world.app.settle(&request)?;
    // The run reports configuration problems.
    if let Ok(asked) = world.app.asked(&settled)
        && let Some(lines) = open_question(world, &asked)?
    {
        world.tell(Msg::Consent(Box::new(wish), lines));
        return Ok(());
    }
    match world.app.prepare(&settled, &SilentReporter) {
        Err(error) if error.kind == ErrorKind::NothingChecks => {
            world.tell(Msg::NothingChecks(error.into()));
            return Ok(());
        }
        Err(error) => return Err(error),
        Ok(plan) => drop(plan),
    }
    let run = world.app.spawn(&settled)?;
    world.tell(Msg::Started(run.to_string()));
    Ok(())
}

/// Allows the requests, then starts.
pub fn allow(world: &World, wish: StartWish) -> Result<(), AppError> {
    let request = request(world, &wish)?;
    if let Some(asked) = world.app.asked_for_source(&request)?
        && open_question(world, &asked)?.is_some()
    {
        asked.allow()?;
        return start(world, wish);
    }
    let settled = world.app.settle(&request)?;
    if let Ok(asked) = world.app.asked(&settled) {
        asked.allow()?;
    }
    start(world, wish)
}

/// Requests not allowed yet, one per line.
fn open_question(world: &World, asked: &TrustRequest) -> Result<Option<Vec<String>>, AppError> {
    let difference = asked.difference()?;
    if difference.new.is_empty() || asked.is_in_variable(world.env()) {
        return Ok(None);
    }
    let mut lines: Vec<String> = difference.lines().iter().map(|line| one_line(line, 300)).collect();
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("  and {more} more: `ralph trust` shows all of them"));
    }
    Ok(Some(lines))
}

fn request(world: &World, wish: &StartWish) -> Result<RunRequest, AppError> {
    let number = |what: &str, text: &str| match text.trim() {
        "" => Ok(None),
        text => text.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0).map(Some).ok_or_else(|| {
            AppError::usage(format!("`{text}` isn't a valid number of {what}"))
                .hint("give a number above 0, or leave it empty for what is configured")
        }),
    };
    let iterations = number("iterations", &wish.iterations)?.map(|n| n as u32);
    let task = match (&wish.text, &wish.file) {
        (Some(text), _) => TaskInput::Text(format!("{}\n", text.trim_end())),
        (None, Some(file)) => TaskInput::File(PathBuf::from(file)),
        (None, None) => TaskInput::Found,
    };
    let list = |text: &str| -> Vec<String> {
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let who = list(&wish.race);
    let by = match wish.best.as_str() {
        "" => RaceBy::First,
        best => RaceBy::parse(best).map_err(AppError::usage)?,
    };
    let race = (!who.is_empty()).then(|| RaceRequest { who, by, runs: Vec::new() });
    Ok(RunRequest {
        task,
        unfinished: if wish.start_new { Unfinished::StartAnew } else { Unfinished::GoOn },
        overrides: Overrides {
            max_iterations: iterations.map(|n| n.max(1)),
            max_seconds: number("minutes", &wish.minutes)?.map(|minutes| (minutes * 60.0) as u64),
            max_cost: number("dollars", &wish.cost)?,
            agents: list(&wish.agents),
            verify: (!wish.verify.is_empty()).then(|| wish.verify.clone()).into_iter().collect(),
            ..Overrides::default()
        },
        place: if wish.worktree { Workplace::Worktree } else { Workplace::InPlace },
        // Runs of a race get separate branches.
        branch: (!wish.branch.is_empty() && race.is_none()).then(|| wish.branch.clone()),
        publish: match wish.publish.as_str() {
            "push" => Some(Publish::Push),
            "pr" => Some(Publish::Pr),
            "none" => Some(Publish::None),
            _ => None,
        },
        yes: wish.allowed,
        race,
        ..RunRequest::in_folder(world.top())
    })
}
