//! A run's race: lanes, winner, costs.

use super::run::open;
use crate::keys::Action;
use crate::model::{Model, Overlay, RACE_TAB};
use crate::msg::Effect;
use crate::widget::draw::Canvas;
use crate::widget::text::{pad, width};
use crate::widget::theme::{Role, Sign};
use ralph_loop_protocol::display::look::agent_color;
use ralph_loop_protocol::display::race::{RaceRun, RaceView};
use ralph_loop_protocol::display::text::one_line;
use ratatui::layout::Rect;

/// Column widths of status and cost.
const STATUS: usize = 11;
const COST: usize = 14;

/// The winner whose result can be taken here.
pub fn winner(model: &Model) -> Option<&RaceRun> {
    let here = model.run.race.as_ref().filter(|_| model.run.tab == RACE_TAB && model.server.is_none());
    here.and_then(|race| race.winning())
}

/// Takes the winner's result.
pub fn take(model: &mut Model) {
    let Some(run) = winner(model) else { return };
    let words = ["apply".to_owned(), run.run_id.to_string()].to_vec();
    let done = "the changes are in your checkout, not committed".to_owned();
    model.overlay = Some(Overlay::Confirm {
        question: format!("Apply the result of {} to your checkout?", one_line(&run.name, 40)),
        lines: vec!["As uncommitted changes. If one of your edits conflicts, nothing is changed.".into()],
        yes: vec![Effect::Command { words, done }],
        leave: false,
    });
}

/// Opens the selected run; the race stays its tab.
pub fn enter(model: &mut Model) -> Vec<Effect> {
    let chosen = model.run.race.as_ref().and_then(|race| race.runs.get(model.run.top));
    let Some(run) = chosen.filter(|run| run.begun && run.run_id.as_str() != model.run.id) else {
        return Vec::new();
    };
    let (id, race) = (run.run_id.to_string(), model.run.race.take());
    let effects = open(model, &id);
    model.run.race = race;
    effects
}

pub fn view(model: &Model, race: &RaceView, canvas: &mut Canvas<'_>, area: Rect) {
    let role = match (race.winning(), race.over) {
        (Some(run), _) if run.proven => Role::Good,
        (Some(_), _) => Role::Attention,
        (None, true) => Role::Bad,
        (None, false) => Role::Text,
    };
    canvas.line(area, 0, &[(role, race.verdict())]);
    let names = race.runs.iter().map(|run| width(&one_line(&run.name, 40))).max().unwrap_or(8).clamp(8, 24);
    for (row, (at, run)) in (2..area.height).zip(race.runs.iter().enumerate()) {
        canvas.line(area, row, &line(model, race, run, at, names, canvas));
        canvas.hit(area, row, Action::Row(at));
    }
    let below = u16::try_from(race.runs.len()).unwrap_or(u16::MAX).saturating_add(3);
    let spent = format!("together: {}, {} at most", race.cost.alone(), race.budget_usd);
    canvas.line(area, below, &[(Role::Muted, spent)]);
    if let Some(why) = &race.ended {
        canvas.line(
            area,
            below + 1,
            &[(Role::Muted, format!("the others were ended: {}", one_line(why, 200)))],
        );
    }
    let next = match race.winning() {
        Some(_) if model.server.is_none() => "a takes the winning result".to_owned(),
        Some(run) => format!("`ralph apply {}` on the run's machine takes the winning result", run.run_id),
        None => "↑ ↓ choose, Enter opens that run".to_owned(),
    };
    canvas.line(area, below + 3, &[(Role::Accent, next)]);
}

fn line(
    model: &Model,
    race: &RaceView,
    run: &RaceRun,
    at: usize,
    names: usize,
    canvas: &Canvas<'_>,
) -> Vec<(Role, String)> {
    let chosen = at == model.run.top.min(race.runs.len().saturating_sub(1));
    let mark = if chosen { canvas.theme.sign(Sign::Point) } else { " " };
    let won = race.winner.as_ref() == Some(&run.run_id);
    let status = match run.status.as_str() {
        _ if won && run.proven => (Role::Good, "wins".to_owned()),
        _ if won => (Role::Attention, "wins".to_owned()),
        "done" => (Role::Text, run.status.clone()),
        word => (canvas.theme.look(word).1, word.to_owned()),
    };
    let name = one_line(&run.name, 40);
    vec![
        (Role::Accent, format!("{mark} ")),
        (Role::Agent(agent_color(&name)), pad(&name, names + 2)),
        (status.0, pad(&one_line(&status.1, STATUS), STATUS)),
        (Role::Text, pad(&run.cost.alone(), COST)),
        (Role::Muted, one_line(&run.detail, 300)),
    ]
}
