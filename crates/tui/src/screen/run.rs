//! Run: current activity, progress, questions, cost, and every way to steer.

use super::{problem, run_race, run_tabs};
use crate::data::{Happened, Screen};
use crate::keys::Action;
use crate::log::Kind;
use crate::model::{HAPPENED_MAX, Model, Notice, Overlay, Purpose, RACE_TAB, RunScreen, TABS};
use crate::msg::{Effect, Live};
use crate::widget::draw::{Canvas, beside, share_role, without};
use crate::widget::editor::Editor;
use crate::widget::text::{pad, width};
use crate::widget::theme::{Role, Sign};
use ralph_loop_app::read::phrases::{ago, left};
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::display::look::agent_color;
use ralph_loop_protocol::display::text::{clock, one_line};
use ralph_loop_protocol::display::view::{AgentStanding, RunView};
use ralph_loop_protocol::money::{Cost, Usd};
use ralph_loop_protocol::status::Status;
use ralph_loop_task::budget::BudgetKind;
use ratatui::layout::Rect;
use std::time::Duration;

/// Opens a run.
pub fn open(model: &mut Model, id: &str) -> Vec<Effect> {
    model.run = RunScreen { id: id.to_owned(), ..RunScreen::default() };
    model.go(Screen::Run);
    vec![Effect::Watch(id.to_owned())]
}

/// Adds a run's events and output.
pub fn told(run: &mut RunScreen, happened: Vec<Happened>, live: Vec<Live>) {
    run.happened.extend(happened);
    let extra = run.happened.len().saturating_sub(HAPPENED_MAX);
    run.happened.drain(..extra);
    let dropped = run.log.dropped;
    for item in live {
        match item {
            Live::Piece(kind, text) => run.log.piece(kind, &text),
            Live::Line(kind, text) => run.log.line(kind, &text),
            Live::Spent(cost) => run.session_cost = cost,
        }
    }
    // Keeps the view in place while older lines are dropped.
    let gone = run.log.dropped - dropped;
    run.last = run.last.map(|last| last.saturating_sub(gone));
}

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    let (run, at) = (model.run.id.clone(), model.run.tab);
    let (count, page) = (model.run.tabs(), i32::from(model.run.height.max(2)) - 1);
    let over = model.run.view.as_ref().is_some_and(|view| view.status.is_over());
    let send = |control| vec![Effect::Send { run: run.clone(), control, then_resume: false }];
    match action {
        Action::NextTab => return tab(model, (at + 1) % count),
        Action::PrevTab => return tab(model, (at + count - 1) % count),
        Action::Tab(to) => return tab(model, to),
        Action::Enter if at == RACE_TAB => return run_race::enter(model),
        Action::Enter => {}
        Action::Row(row) if at == RACE_TAB => model.run.top = row,
        Action::Up => scroll(model, -1),
        Action::Down => scroll(model, 1),
        Action::PageUp => scroll(model, -page),
        Action::PageDown => scroll(model, page),
        Action::Top => {
            model.run.top = 0;
            model.run.last = Some(usize::from(model.run.height).saturating_sub(1));
        }
        Action::Follow | Action::Bottom => {
            model.run.last = None;
            model.run.top = 0;
        }
        Action::Search => return ask(model, "search", "in what the agent printed", Purpose::Search),
        Action::SearchNext => find(model, false),
        Action::SearchPrev => find(model, true),
        Action::SaveBuffer => return ask(model, "save to", "a file in this folder", Purpose::SaveTo),
        Action::Diff => return vec![Effect::ShowDiff(run)],
        Action::Summary => model.go(Screen::Summary),
        _ if over => {
            model.notice = Some(Notice::Done("this run is over: v shows its summary".into()));
        }
        Action::PauseResume => {
            let waits = model.run.view.as_ref().is_some_and(|view| !view.driven);
            let paused = model.run.view.as_ref().is_some_and(|view| view.status == Status::Paused);
            return match (waits, paused) {
                (true, _) => vec![Effect::Resume(run)],
                (false, true) => send(Control::Resume),
                (false, false) => send(Control::Pause),
            };
        }
        Action::Approve => {
            return vec![Effect::Send { run, control: Control::Approve, then_resume: true }];
        }
        Action::Rotate => return send(Control::Rotate),
        Action::Skip => return send(Control::Skip { agent: None }),
        Action::Diagnose => return send(Control::Diagnose),
        Action::Note => return ask(model, "note", "a fact for every following prompt", Purpose::Note),
        Action::Nudge => return ask(model, "nudge", "a hint for the next session only", Purpose::Nudge),
        Action::Guardrail => {
            return ask(model, "guardrail", "a lasting rule, kept across runs", Purpose::Guardrail);
        }
        Action::CoolDown => {
            let names =
                model.run.view.iter().flat_map(|view| &view.agents).map(|a| a.name.to_string()).collect();
            model.overlay = Some(Overlay::Agents { names, at: 0 });
        }
        Action::Cancel => end(model, run, true),
        Action::Stop => end(model, run, false),
        _ => {}
    }
    Vec::new()
}

fn end(model: &mut Model, run: String, now: bool) {
    let (question, line) = match now {
        true => ("End this run now?", "Its session ends now. Commits are kept; you can't resume the run."),
        false => ("End this run after its session?", "The session under way still finishes and is checked."),
    };
    model.overlay = Some(Overlay::Confirm {
        question: question.into(),
        lines: vec![line.into()],
        yes: vec![Effect::End { run, now }],
        leave: false,
    });
}

fn ask(model: &mut Model, title: &'static str, hint: &'static str, purpose: Purpose) -> Vec<Effect> {
    let input = match purpose {
        Purpose::Search => Editor::with(&model.run.search),
        Purpose::SaveTo => Editor::with(&format!("{}-output.txt", model.run.id)),
        _ => Editor::default(),
    };
    model.overlay = Some(Overlay::Ask { title, hint, input, purpose });
    Vec::new()
}

fn tab(model: &mut Model, to: u8) -> Vec<Effect> {
    model.run.tab = to.min(model.run.tabs() - 1);
    model.run.top = 0;
    match model.run.tab {
        3..=5 => vec![Effect::LoadTab { run: model.run.id.clone(), tab: model.run.tab }],
        _ => Vec::new(),
    }
}

pub fn scroll(model: &mut Model, lines: i32) {
    let run = &mut model.run;
    if run.tab == 1 {
        let count = run.log.len();
        let last = run.last.unwrap_or(count.saturating_sub(1));
        let next = last.saturating_add_signed(lines as isize);
        run.last = (next + 1 < count).then(|| next.max(usize::from(run.height.saturating_sub(1)).min(count)));
    } else {
        run.top = run.top.saturating_add_signed(lines as isize);
        if run.tab == RACE_TAB {
            let last = run.race.as_ref().map_or(0, |race| race.runs.len().saturating_sub(1));
            run.top = run.top.min(last);
        }
    }
}

/// Finds the next match.
pub fn find(model: &mut Model, back: bool) {
    let run = &mut model.run;
    run.tab = 1;
    let from = run.last.unwrap_or(run.log.len());
    match run.log.find(&run.search, from, back) {
        Some(at) => run.last = Some(at),
        None => {
            model.notice = Some(Notice::Done(format!("`{}` does not stand there", model.run.search)));
        }
    }
}

/// The run in one line.
pub fn top_bar(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(view) = &model.run.view else {
        canvas.line(area, 0, &[(Role::Strong, name(model)), (Role::Text, one_line(&model.run.id, 100))]);
        return;
    };
    let (sign, role) = canvas.theme.look(view.status.as_str());
    let mut tail = vec![(role, format!("{sign} {}", view.status))];
    let muted = |text: String| (Role::Muted, text);
    tail.push(muted(format!("  iteration {}", iterations(view))));
    let wide = area.width >= 110;
    if wide {
        tail.push(muted(format!("  {} loop {:.1}", canvas.steps(view.loop_score, 5), view.loop_score)));
    }
    for kind in [BudgetKind::Cost, BudgetKind::Time] {
        let Some(budget) = view.budgets.iter().find(|budget| budget.budget == kind) else { continue };
        let words = match kind {
            BudgetKind::Cost => format!("  {}", cost(model, view)),
            _ => format!("  {}/{}", seconds(view.worked_until(model.now)), seconds(budget.limit)),
        };
        tail.push((share_role(budget.share), words));
    }
    if wide {
        let pr = view
            .pr
            .as_ref()
            .map_or_else(|| "–".into(), |pr| pr.number.map_or_else(|| "yes".into(), |n| format!("#{n}")));
        tail.push(muted(format!("  PR {pr} ")));
    }
    let room = usize::from(area.width)
        .saturating_sub(tail.iter().map(|(_, text)| width(text)).sum::<usize>() + width(&name(model)) + 2);
    canvas.line(
        area,
        0,
        &[(Role::Strong, name(model)), (Role::Strong, pad(&one_line(&view.title, 200), room))],
    );
    canvas.right(area, 0, &tail);
}

/// The title, with the run's server.
fn name(model: &Model) -> String {
    let host = model.server.as_deref().map(|at| at.rsplit("://").next().unwrap_or(at));
    host.map_or(" ralph  ".to_owned(), |host| format!(" ralph on {}  ", one_line(host, 30)))
}

/// `7/30`.
pub fn iterations(view: &RunView) -> String {
    let now = view.current.as_ref().map_or(view.iterations, |current| current.iteration);
    match view.budgets.iter().find(|budget| budget.budget == BudgetKind::Iterations) {
        Some(budget) => format!("{now}/{}", budget.limit),
        None => now.to_string(),
    }
}

/// `$1.34/$10`.
pub fn cost(model: &Model, view: &RunView) -> String {
    let limit = view.budgets.iter().find(|budget| budget.budget == BudgetKind::Cost);
    let used = view.cost_with(model.run.session_cost);
    match limit.filter(|_| used != Cost::UNKNOWN) {
        Some(limit) => format!("{used}/{}", Usd::from_dollars(limit.limit)),
        None => used.alone(),
    }
}

fn seconds(seconds: f64) -> String {
    clock(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
}

pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    if let Some(wrong) = &model.run.problem {
        problem(canvas, area, 0, wrong);
        return;
    }
    let Some(view) = &model.run.view else {
        canvas.line(area, 0, &[(Role::Muted, "reading the run …".into())]);
        return;
    };
    now_line(model, view, canvas, area);
    let mut row = 1;
    if let Some(needs) = &view.needs {
        row = question(canvas, area, row, needs);
    }
    canvas.rule(area, row);
    tabs(model, view, canvas, area, row + 1);
    let wide = area.width >= 100;
    if !wide {
        let line = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        run_tabs::closer(view, canvas, line, row + 2);
    }
    let body = without(area, row + if wide { 2 } else { 3 }, 0);
    let side = if wide && model.run.tab < 3 { (area.width / 3).clamp(34, 60) } else { 0 };
    let (main, right) = if side > 0 { beside(body, area.width - side - 2) } else { (body, Rect::default()) };
    let inside = Rect { x: main.x + 1, width: main.width.saturating_sub(1), ..main };
    match &model.run.race {
        Some(race) if model.run.tab == RACE_TAB => run_race::view(model, race, canvas, inside),
        _ => run_tabs::view(model, view, canvas, inside),
    }
    if side > 0 {
        canvas.bar_down(right.x.saturating_sub(1), right);
        run_tabs::side(
            model,
            view,
            canvas,
            Rect { x: right.x + 1, width: right.width.saturating_sub(2), ..right },
        );
    }
}

fn now_line(model: &Model, view: &RunView, canvas: &mut Canvas<'_>, area: Rect) {
    let role = match view.status {
        Status::Done => Role::Good,
        Status::Failed | Status::Stopped => Role::Bad,
        Status::NeedsYou | Status::Paused | Status::Interrupted | Status::Waiting => Role::Attention,
        _ => Role::Text,
    };
    let mut spans = vec![(role, format!(" {}", one_line(&view.now, 400)))];
    if let Some(until) = view.wait.as_ref().and_then(|wait| wait.until) {
        spans.push((Role::Attention, format!(" · continues in {}", left(until, model.now, &model.zone))));
    }
    let hint = match view.orphaned {
        true => "  p resumes it ",
        false if view.status.is_over() => "  v shows the summary ",
        false => "",
    };
    let room = area.width.saturating_sub(width(hint) as u16);
    canvas.line(Rect { width: room, ..area }, 0, &spans);
    canvas.right(area, 0, &[(Role::Accent, hint.into())]);
}

/// The question for the user: evidence, and answers as keys.
fn question(
    canvas: &mut Canvas<'_>,
    area: Rect,
    row: u16,
    needs: &ralph_loop_protocol::display::view::NeedsView,
) -> u16 {
    let inside = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    canvas.rule(area, row);
    let sign = canvas.theme.sign(Sign::NeedsYou);
    let mut row = canvas.text(
        inside,
        row + 1,
        Role::Attention,
        &format!("{sign} needs you: {}", one_line(&needs.message, 500)),
    );
    for line in needs.details.iter().take(8) {
        canvas.line(inside, row, &[(Role::Text, format!("  {}", one_line(line, 300)))]);
        row += 1;
    }
    row = canvas.text(inside, row, Role::Muted, &format!("  {}", one_line(&needs.next, 400)));
    let yes = if needs.reason.needs_approval() { ("a", "approve and continue") } else { ("p", "continue") };
    let no = if needs.reason.can_be_rejected() {
        "no: tell the next session what to keep"
    } else {
        "a hint, then continue"
    };
    let keys = [yes, ("u", no), ("g", "see the diff"), ("c", "end the run")];
    let spans: Vec<(Role, String)> = keys
        .iter()
        .flat_map(|(key, label)| [(Role::Accent, format!("  {key} ")), (Role::Text, format!("{label} "))])
        .collect();
    canvas.line(inside, row, &spans);
    canvas.hit(inside, row, Action::Approve);
    row + 1
}

fn tabs(model: &Model, view: &RunView, canvas: &mut Canvas<'_>, area: Rect, row: u16) {
    let mut x = area.x + 1;
    for (at, name) in (0..model.run.tabs()).zip(TABS) {
        let role = if at == model.run.tab { Role::Selected } else { Role::Muted };
        let from = x;
        x = canvas.put(x, area.y + row, area.right().saturating_sub(x), role, &format!(" {name} "));
        let place = Rect { x: from, y: area.y + row, width: x - from, height: 1 };
        canvas.hit(place, 0, Action::Tab(at));
        x += 1;
    }
    let resting = view.agents.iter().filter(|agent| agent.standing == AgentStanding::Resting);
    let spans: Vec<(Role, String)> = resting
        .map(|agent| {
            let until = agent
                .until
                .map_or_else(String::new, |until| format!(" {}", left(until, model.now, &model.zone)));
            (Role::Attention, format!("{} {}{until}  ", agent.name, canvas.theme.sign(Sign::Wait)))
        })
        .collect();
    if area.right().saturating_sub(x) as usize > spans.iter().map(|(_, text)| width(text)).sum::<usize>() {
        canvas.right(area, row, &spans);
    }
}

pub fn agent_tag(name: &str, cells: usize) -> (Role, String) {
    (Role::Agent(agent_color(name)), pad(name, cells))
}

pub fn kind_role(kind: Kind) -> Role {
    match kind {
        Kind::Said => Role::Text,
        Kind::Did => Role::Accent,
        Kind::Failed => Role::Bad,
        Kind::Stderr | Kind::Check | Kind::Note => Role::Muted,
    }
}

pub fn age(model: &Model, at: jiff::Timestamp) -> String {
    ago(at, model.now)
}
