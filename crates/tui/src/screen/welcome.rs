//! Welcome: the repo, agents, runs and the suggested next step. A sentence starts a task.

use super::{heading, problem, setup, start, studio};
use crate::data::{AgentState, NextStep, RunRow, Screen};
use crate::keys::Action;
use crate::model::Model;
use crate::msg::Effect;
use crate::widget::draw::{Canvas, beside, list_top, rows, without};
use crate::widget::text::{pad, width};
use crate::widget::theme::{Role, Sign};
use ralph_loop_app::read::phrases::ago;
use ralph_loop_protocol::display::look::agent_color;
use ralph_loop_protocol::display::text::count;
use ratatui::layout::Rect;

/// Runs listed.
const RUNS_MAX: usize = 50;

/// The suggested next step, and its text.
pub fn next_step(model: &Model) -> (NextStep, String) {
    let here = model.runs.iter().find(|run| run.here);
    if let Some(run) = here.filter(|run| run.status == "needs you") {
        return (NextStep::Watch, format!("`{}` needs your answer", run.title));
    }
    if let Some(run) = here.filter(|run| run.driven) {
        return (NextStep::Watch, format!("watch `{}`, which is {}", run.title, run.status));
    }
    if let Some(run) = here.filter(|run| run.waits) {
        return (NextStep::Take, format!("take the result of `{}`", run.title));
    }
    if !model.repo.has_commit {
        return (NextStep::FirstCommit, "make a first commit: a run starts from one".into());
    }
    // A proven run shows that agents and checks work, configured or not.
    let proven = model.runs.iter().any(|run| run.here && run.status == "done");
    if !model.repo.configured && !proven {
        return (NextStep::Setup, "set up: choose agents and how results are checked".into());
    }
    match model.repo.tasks.as_slice() {
        [task] => (NextStep::Start, format!("start a run of {task}, or describe a new task")),
        [] if proven => (NextStep::Describe, "describe the next task in a sentence".into()),
        [] => (NextStep::Describe, "describe the task in a sentence".into()),
        several => (NextStep::Describe, format!("describe the task ({} exist here)", several.join(", "))),
    }
}

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    // Unknown facts would look like "none".
    let needs_facts = match action {
        Action::Enter => model.welcome.at.is_none() || !model.welcome.input.is_empty(),
        Action::RunAtOnce | Action::OpenStudio => true,
        _ => false,
    };
    model.welcome.waits = (needs_facts && !model.looked).then_some(action);
    if model.welcome.waits.is_some() {
        return Vec::new();
    }
    let count = model.runs.iter().filter(|run| run.here).take(RUNS_MAX).count();
    match action {
        Action::Down => {
            let next = model.welcome.at.map_or(0, |at| at + 1);
            model.welcome.at = (count > 0).then(|| next.min(count - 1));
        }
        Action::Up => model.welcome.at = model.welcome.at.and_then(|at| at.checked_sub(1)),
        Action::Row(at) => {
            model.welcome.at = Some(at);
            return open(model, at);
        }
        Action::Enter => return enter(model),
        Action::RunAtOnce => {
            let text = written(model);
            return start::open(model, text);
        }
        Action::OpenSetup => return setup::open(model),
        Action::OpenStudio => {
            let text = written(model);
            // A sentence that is discussed already isn't asked about again.
            let known =
                model.studio.messages.iter().any(|message| Some(message.text.as_str()) == text.as_deref());
            return studio::open(model, text.filter(|_| !known));
        }
        Action::Refresh => return vec![Effect::LookAround, Effect::ListRuns],
        Action::Back => model.welcome.at = None,
        _ => {}
    }
    Vec::new()
}

/// Performs what waited for the repo facts.
pub fn looked(model: &mut Model) -> Vec<Effect> {
    match model.welcome.waits.take() {
        Some(action) if model.screen == Screen::Welcome => update(model, action),
        _ => Vec::new(),
    }
}

fn enter(model: &mut Model) -> Vec<Effect> {
    if let Some(text) = written(model) {
        start::open(model, Some(text));
        return start::update(model, Action::Enter);
    }
    if let Some(at) = model.welcome.at {
        return open(model, at);
    }
    match next_step(model).0 {
        NextStep::FirstCommit => vec![Effect::FirstCommit],
        NextStep::Setup => setup::open(model),
        NextStep::Describe => studio::open(model, None),
        NextStep::Start => start::open(model, None),
        NextStep::Watch | NextStep::Take => open(model, 0),
    }
}

/// The sentence; it stays in its field until a run or a task file holds it.
fn written(model: &Model) -> Option<String> {
    let text = model.welcome.input.text().trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn open(model: &mut Model, at: usize) -> Vec<Effect> {
    let Some(run) = model.runs.iter().filter(|run| run.here).nth(at) else { return Vec::new() };
    let id = run.id.clone();
    super::run::open(model, &id)
}

pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let wide = area.width >= 100;
    let (left, right) = if wide { beside(area, area.width * 11 / 20) } else { (area, Rect::default()) };
    let mut row = place(model, canvas, left, 0);
    row = agents(model, canvas, left, row + 1);
    if let Some(wrong) = &model.repo.problem {
        row = problem(canvas, left, row + 1, wrong);
    }
    row = next(model, canvas, left, row + 1);
    let lines = model.welcome.input.text().lines().count().clamp(1, if wide { 6 } else { 3 }) as u16;
    let input = rows(left, row + 1, lines + 2);
    write(model, canvas, Rect { width: left.width.saturating_sub(u16::from(wide)), ..input });
    let list = match wide {
        true => {
            canvas.bar_down(right.x.saturating_sub(1), right);
            Rect { x: right.x + 1, width: right.width.saturating_sub(1), ..right }
        }
        false => without(left, row + lines + 4, 0),
    };
    runs(model, canvas, list);
}

/// The input for a sentence.
fn write(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let inside = canvas.field(area, "Task", "Enter to run it · Ctrl-P to plan it");
    let prompt = canvas.theme.sign(Sign::Point);
    canvas.line(inside, 0, &[(Role::Accent, format!("{prompt} "))]);
    let text = Rect { x: inside.x + 2, width: inside.width.saturating_sub(2), ..inside };
    if model.welcome.input.is_empty() {
        canvas.line(text, 0, &[(Role::Muted, "What should be done?".into())]);
    }
    canvas.editor(text, &model.welcome.input);
}

fn place(model: &Model, canvas: &mut Canvas<'_>, area: Rect, row: u16) -> u16 {
    let repo = &model.repo;
    let label = |text: &str| (Role::Muted, pad(text, 11));
    canvas.line(area, row, &[label("repo"), (Role::Strong, repo.path.clone())]);
    let state = match (repo.has_commit, repo.changed) {
        _ if model.welcome.waits.is_some() => (Role::Accent, "checking; then it continues …".to_owned()),
        _ if !model.looked => (Role::Muted, "checking …".to_owned()),
        (false, _) => (Role::Attention, "no commit yet".to_owned()),
        (_, None) => (Role::Muted, String::new()),
        (_, Some(0)) => (Role::Good, "clean".to_owned()),
        (_, Some(n)) => (Role::Attention, format!("{} changed, not committed", count(n, "file"))),
    };
    let on = if repo.branch.is_empty() { String::new() } else { format!("{}  ", repo.branch) };
    canvas.line(area, row + 1, &[label("git"), (Role::Text, on), state]);
    let (role, sign) = match repo.sandboxed {
        true => (Role::Good, canvas.theme.sign(Sign::Good)),
        false => (Role::Attention, canvas.theme.sign(Sign::Note)),
    };
    if model.looked {
        canvas.line(area, row + 2, &[label("isolation"), (role, format!("{sign} {}", repo.isolation))]);
    }
    row + 3
}

/// Symbol, role and text of an agent's state.
pub fn agent_words(canvas: &Canvas<'_>, state: &AgentState) -> (Role, String) {
    let sign = |sign| canvas.theme.sign(sign);
    match state {
        AgentState::Found => (Role::Text, format!("{} found", sign(Sign::Open))),
        AgentState::Missing => (Role::Muted, format!("{} not installed", sign(Sign::Note))),
        AgentState::Probing(_) => (Role::Accent, format!("{} testing …", sign(Sign::Half))),
        AgentState::Works(said) => (Role::Good, format!("{} {said}", sign(Sign::Good))),
        AgentState::Fails(problem) => (Role::Bad, format!("{} {}", sign(Sign::Bad), problem.what)),
        AgentState::Off => (Role::Muted, format!("{} off", sign(Sign::Note))),
    }
}

fn agents(model: &Model, canvas: &mut Canvas<'_>, area: Rect, row: u16) -> u16 {
    let mut row = heading(canvas, area, row, "Agents");
    let few = area.height < 22;
    let shown: Vec<_> =
        model.repo.agents.iter().filter(|agent| !few || agent.state != AgentState::Missing).collect();
    let most = if few { 4 } else { usize::from(area.height / 3) };
    for agent in shown.iter().take(most) {
        let (role, words) = agent_words(canvas, &agent.state);
        let tag = (Role::Agent(agent_color(&agent.name)), pad(&agent.name, 11));
        canvas.line(area, row, &[tag, (role, pad(&words, 16)), (Role::Muted, format!("  {}", agent.detail))]);
        row += 1;
    }
    if shown.len() > most {
        let rest: Vec<&str> = shown[most..].iter().map(|agent| agent.name.as_str()).collect();
        canvas.line(area, row, &[(Role::Muted, format!("and {}", rest.join(", ")))]);
        row += 1;
    }
    if model.looked && model.repo.agents.iter().all(|agent| agent.state == AgentState::Missing) {
        row = canvas.text(
            area,
            row,
            Role::Attention,
            "No agent is installed. `ralph demo` shows a whole run without one.",
        );
    }
    row
}

fn next(model: &Model, canvas: &mut Canvas<'_>, area: Rect, row: u16) -> u16 {
    if !model.looked {
        return row;
    }
    let (_, words) = next_step(model);
    let arrow = canvas.theme.sign(Sign::Arrow);
    let role = if model.welcome.at.is_none() { Role::Accent } else { Role::Text };
    canvas.hit(area, row, Action::Enter);
    canvas.text(area, row, role, &format!("{arrow} next: {words}"))
}

fn runs(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    if area.height < 2 {
        return;
    }
    let here: Vec<&RunRow> = model.runs.iter().filter(|run| run.here).take(RUNS_MAX).collect();
    let row = heading(canvas, area, 0, "Runs of this repo");
    let list = without(area, row, 0);
    if here.is_empty() && model.looked {
        canvas.text(
            list,
            0,
            Role::Muted,
            "None yet. A run gives the task to fresh agent sessions until checks prove it done.",
        );
        return;
    }
    let top = list_top(model.welcome.at.unwrap_or(0), list.height, here.len());
    for (row, (at, run)) in (0..list.height).zip(here.iter().enumerate().skip(top)) {
        run_line(model, canvas, list, row, run, false, model.welcome.at == Some(at));
        canvas.hit(list, row, Action::Row(at));
    }
}

/// One run in a list, optionally with its repo.
pub fn run_line(
    model: &Model,
    canvas: &mut Canvas<'_>,
    area: Rect,
    row: u16,
    run: &RunRow,
    with_repo: bool,
    chosen: bool,
) {
    let (sign, role) = canvas.theme.look(&run.status);
    let narrow = with_repo && area.width < 70;
    let head = format!("{sign} {}", pad(&run.status, 10));
    let repo =
        if with_repo { format!(" {}", pad(&run.repo(), if narrow { 9 } else { 14 })) } else { String::new() };
    let tail = match narrow {
        true => format!(" {:>10}", ago(run.at, model.now)),
        false => format!(" {:>7} {:>7} {:>10}", run.iteration, run.cost, ago(run.at, model.now)),
    };
    let room = usize::from(area.width).saturating_sub(width(&head) + width(&repo) + width(&tail) + 1);
    let title = format!(" {}", pad(&run.title, room));
    let spans = [(role, head), (Role::Muted, repo), (Role::Text, title), (Role::Muted, tail)];
    let spans = spans.map(|(role, text)| (if chosen { Role::Selected } else { role }, text));
    canvas.line(area, row, &spans);
}

/// The screen to return to from a run.
pub fn home(model: &mut Model) {
    model.before.clear();
    model.screen = Screen::Welcome;
}
