//! Setup: agents and checks with defaults. Each agent is probed, and each problem comes with its fix.

use super::start::form;
use super::{heading, problem, welcome};
use crate::data::{AgentState, Screen};
use crate::keys::Action;
use crate::model::{Model, Notice};
use crate::msg::Effect;
use crate::widget::draw::{Canvas, without};
use crate::widget::form::{Field, Form};
use crate::widget::text::pad;
use crate::widget::theme::{Role, Sign};
use ralph_loop_app::read::phrases::since;
use ralph_loop_protocol::display::look::agent_color;
use ratatui::layout::Rect;
use serde_json::json;

/// Range of the probe timeout in seconds.
const SECONDS: (u64, u64) = (60, 900);

pub fn open(model: &mut Model) -> Vec<Effect> {
    if !model.setup.ready {
        fill(model);
    }
    model.go(Screen::Setup);
    Vec::new()
}

fn fill(model: &mut Model) {
    let repo = &model.repo;
    model.setup.agents = repo.agents.iter().map(|agent| (agent.name.clone(), agent.state.clone())).collect();
    let (iterations, minutes, cost) = &repo.limits;
    let tests = repo.verifiers.first().or(repo.tests.first()).cloned().unwrap_or_default();
    let hint = match repo.tests.first() {
        Some(found) => format!("found here: {found}"),
        None => "a command that exits with 0 when the work is done, for example `make test`".to_owned(),
    };
    let priority = usize::from(repo.selection.contains("priority"));
    model.setup.form = Form::new(vec![
        Field::choice(
            "selection",
            "agents take turns",
            &["round_robin", "priority"],
            priority,
            "round_robin: each in turn; priority: the first that is free",
        ),
        Field::text("verify", "check", &tests, &hint),
        Field::text("iterations", "iterations", &iterations.to_string(), "most, for a run"),
        Field::text("minutes", "minutes", &minutes.to_string(), "most time at work"),
        Field::text("cost", "cost in $", cost.trim_start_matches('$'), "most, as far as it is known"),
        Field::text(
            "promise",
            "promise",
            if repo.promise.is_empty() { "COMPLETE" } else { &repo.promise },
            "agents end with it; then the checks decide",
        ),
    ]);
    model.setup.seconds = SECONDS.0;
    model.setup.ready = model.looked;
}

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    let setup = &mut model.setup;
    let (agents, fields) = (setup.agents.len(), setup.form.fields.len());
    match action {
        Action::Down | Action::NextTab => setup.at = (setup.at + 1) % (agents + fields).max(1),
        Action::Up | Action::PrevTab => {
            setup.at = (setup.at + agents + fields - 1) % (agents + fields).max(1)
        }
        Action::Row(at) => setup.at = at.min((agents + fields).saturating_sub(1)),
        Action::Toggle => {
            let known = |name: &str| model.repo.agents.iter().find(|agent| agent.name == name);
            if let Some((name, state)) = setup.agents.get_mut(setup.at) {
                *state = match state {
                    AgentState::Off => known(name).map_or(AgentState::Found, |agent| agent.state.clone()),
                    _ => AgentState::Off,
                };
            }
        }
        Action::ProbeAll => {
            let chosen = |state: &AgentState| {
                !matches!(state, AgentState::Missing | AgentState::Off | AgentState::Probing(_))
            };
            return probe(model, &chosen);
        }
        Action::LongerTimeout => {
            setup.seconds = (setup.seconds * 3).min(SECONDS.1);
            model.notice = Some(Notice::Done(format!("agents get {} s to answer", setup.seconds)));
            return probe(model, &|state| matches!(state, AgentState::Fails(_)));
        }
        Action::SaveConfig => return vec![Effect::SaveConfig(Box::new(config(model)))],
        _ => {}
    }
    model.setup.form.at = model.setup.at.saturating_sub(agents);
    Vec::new()
}

fn probe(model: &mut Model, chosen: &dyn Fn(&AgentState) -> bool) -> Vec<Effect> {
    let seconds = model.setup.seconds;
    let mut effects = Vec::new();
    for (name, state) in model.setup.agents.iter_mut().filter(|(_, state)| chosen(state)) {
        *state = AgentState::Probing(model.now);
        effects.push(Effect::Probe { agent: name.clone(), seconds });
    }
    if effects.is_empty() {
        model.notice = Some(Notice::Done("no agent to test".into()));
    }
    effects
}

/// Handles the end of a probe.
pub fn probed(model: &mut Model, name: &str, state: AgentState) {
    if let Some((_, old)) =
        model.setup.agents.iter_mut().find(|(of, old)| of == name && matches!(old, AgentState::Probing(_)))
    {
        *old = state.clone();
    }
    if let Some(agent) = model.repo.agents.iter_mut().find(|agent| agent.name == name) {
        agent.state = state;
    }
}

/// The choices to save; the runtime adds agent commands.
fn config(model: &Model) -> serde_json::Value {
    let form = &model.setup.form;
    let agents: Vec<&str> = model
        .setup
        .agents
        .iter()
        .filter(|(_, state)| !matches!(state, AgentState::Missing | AgentState::Off))
        .map(|(name, _)| name.as_str())
        .collect();
    json!({
        "agents": agents,
        "agent_selection": form.get("selection"),
        "verify": form.get("verify"),
        "max_iterations": form.get("iterations"),
        "max_wall_time_minutes": form.get("minutes"),
        "max_cost_usd_estimate": form.get("cost"),
        "completion_promise": form.get("promise"),
    })
}

pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let mut row = heading(canvas, area, 0, "Agents");
    for (at, (name, state)) in model.setup.agents.iter().enumerate() {
        let chosen = at == model.setup.at;
        let mark = if chosen { canvas.theme.sign(Sign::Point) } else { " " };
        let (role, words) = match state {
            AgentState::Probing(at) => {
                let (role, words) = welcome::agent_words(canvas, state);
                (role, format!("{words} {} of {} s", since(*at, model.now).as_secs(), model.setup.seconds))
            }
            _ => welcome::agent_words(canvas, state),
        };
        let detail = model.repo.agents.iter().find(|agent| agent.name == *name).map(|a| a.detail.clone());
        canvas.hit(area, row, Action::Row(at));
        canvas.line(
            area,
            row,
            &[
                (Role::Accent, format!("{mark} ")),
                (Role::Agent(agent_color(name)), pad(name, 12)),
                (role, pad(&words, 34)),
                (Role::Muted, detail.unwrap_or_default()),
            ],
        );
        row += 1;
        if let (AgentState::Fails(wrong), true) = (state, chosen) {
            let inside = Rect { x: area.x + 4, width: area.width.saturating_sub(4), ..area };
            row = problem(canvas, inside, row, wrong);
            row = canvas.text(inside, row, Role::Muted, "Space turns it off; Ctrl-G tests it again with more time; if it isn't logged in, log in with its own program in another terminal, then Ctrl-T.");
        }
    }
    row = heading(canvas, area, row + 1, "Settings");
    let mut shown = model.setup.form.clone();
    let typing = model.setup.at >= model.setup.agents.len();
    shown.at = if typing { model.setup.at - model.setup.agents.len() } else { usize::MAX };
    let used = form(canvas, without(area, row, 0), &shown);
    let first = model.setup.agents.len();
    // Form rows come after agent rows.
    for hit in canvas.hits.iter_mut().filter(|hit| hit.area.y >= area.y + row) {
        if let Action::Row(at) = hit.action {
            hit.action = Action::Row(at + first);
        }
    }
    let below = without(area, row + used + 1, 0);
    let arrow = canvas.theme.sign(Sign::Arrow);
    canvas.text(below, 0, Role::Accent, &format!("{arrow} Ctrl-T sends each agent a test prompt (it may cost a little); Ctrl-S saves .ralph/config.json"));
}
