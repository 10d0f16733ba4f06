//! Run: current activity, progress, questions, cost, and every way to steer.

use super::{details, problem, run_race, run_tabs};
use crate::data::{Happened, Screen, ToneLine};
use crate::keys::{Action, Binding};
use crate::log::{Kind, Log};
use crate::model::{HAPPENED_MAX, Model, Notice, Overlay, Purpose, RACE_TAB, RunScreen, TABS};
use crate::msg::{Effect, Live};
use crate::widget::draw::{Canvas, beside, rows, share_role, without};
use crate::widget::editor::Editor;
use crate::widget::text::{contains, pad, width};
use crate::widget::theme::{Role, Sign, of_tone};
use ralph_loop_app::read::phrases::{ago, left};
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::display::look::agent_color;
use ralph_loop_protocol::display::text::{clock, one_line};
use ralph_loop_protocol::display::view::{AgentStanding, NeedsView, RunView};
use ralph_loop_protocol::money::in_session::SessionCost;
use ralph_loop_protocol::money::{Cost, Usd};
use ralph_loop_protocol::status::Status;
use ralph_loop_task::budget::BudgetKind;
use ratatui::layout::Rect;
use std::time::Duration;

/// The hint that rejects changed tests, for the user to edit.
const KEEP_TESTS: &str = "Keep the original tests. Change the product code until they pass.";

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
    let dropped = run.output.log.dropped;
    if let Some(cost) = add_live(&mut run.output.log, live) {
        run.session_cost = cost;
    }
    // Keeps the view in place while older lines are dropped.
    let gone = run.output.log.dropped - dropped;
    run.output.at = run.output.at.map(|at| at.saturating_sub(gone));
}

/// Adds output to a log; returns the latest estimate of its cost.
pub fn add_live(log: &mut Log, live: Vec<Live>) -> Option<Option<SessionCost>> {
    let mut spent = None;
    for item in live {
        match item {
            Live::Piece(kind, text) => log.piece(kind, &text),
            Live::Line(kind, text) => log.line(kind, &text),
            Live::Result(ok, text) => log.result(ok, &text),
            Live::Spent(cost) => spent = Some(cost),
        }
    }
    spent
}

/// Whether an action has an effect in the run's state. Key bar, help and palette show only these.
pub fn offers(model: &Model, action: Action) -> bool {
    let run = &model.run;
    let Some(view) = &run.view else { return true };
    let (over, works) = (view.status.is_over(), view.driven && view.current.is_some());
    let transcript = run.tab == 1 || run.inside().is_some_and(|opened| opened.part() == "Output");
    let list = run.tab == 0 && run.opened.is_none();
    match action {
        Action::Approve if run_race::winner(model).is_some() => true,
        Action::Approve => !over && view.needs.as_ref().is_some_and(|needs| needs.reason.needs_approval()),
        Action::PauseResume | Action::Cancel => !over,
        Action::Note | Action::Nudge | Action::Guardrail | Action::Diagnose => !over,
        Action::Stop | Action::Rotate => works,
        Action::Skip => works && view.agents.len() > 1,
        Action::CoolDown => !over && view.driven && view.agents.len() > 1,
        Action::Summary => over,
        Action::Mark | Action::Compare => list && view.history.len() > 1,
        Action::FoldAll | Action::SaveBuffer | Action::Follow => transcript,
        Action::Tab(RACE_TAB) => run.race.is_some(),
        Action::Enter => transcript || list || run.tab == RACE_TAB,
        _ => true,
    }
}

/// The word for an action in the key bar; `None` leaves it out.
pub fn short(model: &Model, binding: &Binding) -> Option<&'static str> {
    let view = model.run.view.as_deref();
    let asks = view.is_some_and(|view| view.needs.is_some());
    let stands = view.is_some_and(|view| !view.driven || view.status == Status::Paused);
    match binding.action {
        Action::Enter if model.run.hinting => Some("send"),
        // The answers to a question, and nothing else.
        Action::Note | Action::Runs | Action::Search | Action::Mark | Action::Compare | Action::Enter
            if asks =>
        {
            None
        }
        Action::Approve if run_race::winner(model).is_some() => Some("take the result"),
        Action::Nudge if asks => Some(no(view)),
        Action::Nudge => None,
        Action::PauseResume if asks && view.is_some_and(must_approve) => None,
        Action::PauseResume if stands => Some("resume"),
        Action::Cancel if asks => Some("end the run"),
        Action::Enter if offers(model, Action::FoldAll) => Some("unfold"),
        Action::Diff | Action::Cancel if model.run.inside().is_some() => None,
        _ => binding.short,
    }
}

fn must_approve(view: &RunView) -> bool {
    view.needs.as_ref().is_some_and(|needs| needs.reason.needs_approval())
}

/// The word for answering with a message.
fn no(view: Option<&RunView>) -> &'static str {
    let rejects =
        view.and_then(|view| view.needs.as_ref()).is_some_and(|needs| needs.reason.can_be_rejected());
    if rejects { "reject" } else { "give a hint" }
}

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    if model.run.hinting {
        return hint(model, action);
    }
    let (run, at) = (model.run.id.clone(), model.run.tab);
    let (count, page) = (model.run.tabs(), i32::from(model.run.height.max(2)) - 1);
    let send = |control| vec![Effect::Send { run: run.clone(), control, then_resume: false }];
    if !offers(model, action) {
        let over = model.run.view.as_ref().is_some_and(|view| view.status.is_over());
        let words = if over { "this run is over: v shows its summary" } else { "not possible right now" };
        model.notice = Some(Notice::Done(words.into()));
        return Vec::new();
    }
    match action {
        Action::NextTab => return turn(model, 1, count),
        Action::PrevTab => return turn(model, -1, count),
        Action::Tab(to) => return tab(model, to),
        Action::Back if model.run.inside().is_some() => model.run.opened = None,
        Action::Enter if at == RACE_TAB => return run_race::enter(model),
        Action::Enter => return enter(model),
        Action::Row(row) if at == RACE_TAB => model.run.top = row,
        Action::Row(row) => {
            model.run.top = row;
            return enter(model);
        }
        Action::Mark => {
            let chosen = chosen(model);
            model.run.marked = chosen.filter(|_| chosen != model.run.marked);
        }
        Action::Compare => return compare(model),
        Action::FoldAll => {
            if let Some(shown) = model.run.transcript() {
                shown.log.turn_all();
            }
        }
        Action::Up => scroll(model, -1),
        Action::Down => scroll(model, 1),
        Action::PageUp => scroll(model, -page),
        Action::PageDown => scroll(model, page),
        Action::Top | Action::Follow | Action::Bottom => {
            let end = action != Action::Top;
            match (model.run.transcript(), end) {
                (Some(shown), true) => shown.at = None,
                (Some(shown), false) => shown.top(),
                (None, _) => scroll(model, if end { i32::MAX } else { i32::MIN }),
            }
        }
        Action::Search => return ask(model, "search", "in this tab", Purpose::Search),
        Action::SearchNext => find(model, false),
        Action::SearchPrev => find(model, true),
        Action::SaveBuffer => return ask(model, "save to", "a file in this folder", Purpose::SaveTo),
        Action::Diff => return vec![Effect::ShowDiff(run)],
        Action::Summary => model.go(Screen::Summary),
        Action::PauseResume => {
            let waits = model.run.view.as_ref().is_some_and(|view| !view.driven);
            let paused = model.run.view.as_ref().is_some_and(|view| view.status == Status::Paused);
            return match (waits, paused) {
                (true, _) => vec![Effect::Resume(run)],
                (false, true) => send(Control::Resume),
                (false, false) => send(Control::Pause),
            };
        }
        Action::Approve if run_race::winner(model).is_some() => run_race::take(model),
        Action::Approve => {
            return vec![Effect::Send { run, control: Control::Approve, then_resume: true }];
        }
        Action::Rotate => return send(Control::Rotate),
        Action::Skip => return send(Control::Skip { agent: None }),
        Action::Diagnose => return send(Control::Diagnose),
        Action::Note => return ask(model, "note", "goes into all later prompts", Purpose::Note),
        Action::Nudge if model.run.view.as_ref().is_some_and(|view| view.needs.is_some()) => {
            model.run.hinting = true;
            if no(model.run.view.as_deref()) == "reject" && model.run.hint.is_empty() {
                model.run.hint.insert(KEEP_TESTS);
            }
        }
        Action::Nudge => return ask(model, "hint", "for the next session only", Purpose::Nudge),
        Action::Guardrail => {
            return ask(model, "rule", "for every session in this repo", Purpose::Guardrail);
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

/// A key while the hint in the banner is typed. Leaving keeps the text.
fn hint(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::Back => model.run.hinting = false,
        Action::Enter if model.run.hint.text().trim().is_empty() => {
            model.notice = Some(Notice::Done("nothing was sent: the hint is empty".into()));
        }
        Action::Enter => {
            model.run.hinting = false;
            let text = model.run.hint.take().trim().to_owned();
            let then_resume = model.run.view.as_ref().is_some_and(|view| !view.driven);
            let (run, control) = (model.run.id.clone(), Control::Nudge { text });
            return vec![Effect::Send { run, control, then_resume }];
        }
        _ => {}
    }
    Vec::new()
}

/// The iteration under the cursor.
fn chosen(model: &Model) -> Option<u32> {
    model.run.rows().get(model.run.top).copied().flatten()
}

fn enter(model: &mut Model) -> Vec<Effect> {
    if let Some(shown) = model.run.transcript() {
        shown.turn();
        return Vec::new();
    }
    match model.run.rows().get(model.run.top).filter(|_| model.run.tab == 0) {
        Some(Some(iteration)) => details::open(model, None, *iteration),
        // The active session's output is live.
        Some(None) => tab(model, 1),
        None => Vec::new(),
    }
}

/// Compares the chosen iteration with the marked one, or with the one before.
fn compare(model: &mut Model) -> Vec<Effect> {
    let Some(chosen) = chosen(model) else { return Vec::new() };
    let other = model.run.marked.filter(|marked| *marked != chosen).unwrap_or(chosen.saturating_sub(1));
    details::open(model, Some(other.min(chosen)), other.max(chosen))
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

/// The next tab, or the next part of the open iteration.
fn turn(model: &mut Model, by: i8, count: u8) -> Vec<Effect> {
    match model.run.opened.as_mut().filter(|_| model.run.tab == 0) {
        Some(opened) => {
            opened.part = (opened.part as i8 + by).rem_euclid(opened.parts().len() as i8) as u8;
            opened.top = 0;
            Vec::new()
        }
        None => tab(model, (model.run.tab as i8 + by).rem_euclid(count as i8) as u8),
    }
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
    if let Some(shown) = run.transcript() {
        shown.scroll(lines);
        return;
    }
    let by = lines as isize;
    if let (Some(opened), 0) = (&mut run.opened, run.tab) {
        let lines = opened.lines.as_ref().and_then(|lines| lines.get(opened.part())).map_or(0, Vec::len);
        opened.top = opened.top.saturating_add_signed(by).min(lines.saturating_sub(1));
        return;
    }
    let most = match run.tab {
        0 => run.rows().len() + run.happened.len(),
        RACE_TAB => run.race.as_ref().map_or(0, |race| race.runs.len()),
        tab => run.tabs.get(&tab).map_or(usize::from(u16::MAX), Vec::len),
    };
    run.top = run.top.saturating_add_signed(by).min(most.saturating_sub(1));
}

/// Finds the next match in the visible lines; a tab without any searches the agent's output.
pub fn find(model: &mut Model, back: bool) {
    let run = &mut model.run;
    let word = run.search.clone();
    if run.inside().is_none() && !matches!(run.tab, 3..=5) {
        run.tab = 1;
    }
    let found = match (run.transcript().map(|shown| shown.find(&word, back)), &mut run.opened, run.tab) {
        (Some(found), ..) => found,
        (None, Some(opened), 0) => {
            let lines = opened.lines.as_ref().and_then(|lines| lines.get(opened.part()));
            find_line(lines, &mut opened.top, &word, back)
        }
        (None, _, tab) => find_line(run.tabs.get(&tab), &mut run.top, &word, back),
    };
    if !found {
        model.notice = Some(Notice::Done(format!("`{word}` not found")));
    }
}

fn find_line(lines: Option<&Vec<ToneLine>>, top: &mut usize, word: &str, back: bool) -> bool {
    let Some(lines) = lines else { return false };
    let has = |at: &usize| contains(&lines[*at].text, word);
    let (from, count) = ((*top).min(lines.len()), lines.len());
    let next = (from + 1).min(count);
    let found = match back {
        true => (0..from).rev().find(has).or_else(|| (from..count).rev().find(has)),
        false => (next..count).find(has).or_else(|| (0..next).find(has)),
    };
    *top = found.unwrap_or(*top);
    found.is_some()
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
        tail.push(muted(format!(
            "  stuck score {} {:.1}",
            canvas.steps(view.loop_score, 5),
            view.loop_score
        )));
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
    let row = match &view.needs {
        Some(needs) => question(model, view, needs, canvas, area),
        None => {
            now_line(model, view, canvas, area);
            1
        }
    };
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

/// The question for the user: headline, answers, hint, then as much evidence as fits.
fn question(model: &Model, view: &RunView, needs: &NeedsView, canvas: &mut Canvas<'_>, area: Rect) -> u16 {
    let inside = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let sign = canvas.theme.sign(Sign::NeedsYou);
    let headline = format!("{sign} {}", one_line(&needs.message, 500));
    let mut row = canvas.text(rows(inside, 0, 3), 0, Role::Attention, &headline);
    let resume = (Action::PauseResume, "p", "resume");
    let hint = (Action::Nudge, "u", no(Some(view)));
    let first = match needs.reason.needs_approval() {
        true => [(Action::Approve, "a", "approve"), hint],
        false => [hint, resume],
    };
    let more = [
        (Action::Diff, "g", "diff"),
        (Action::Diagnose, "d", "diagnose"),
        (Action::Cancel, "c", "end the run"),
    ];
    let mut x = inside.x;
    for (action, key, label) in first.into_iter().chain(more) {
        let cells = (width(key) + width(label) + 1) as u16;
        if x + cells > inside.right() {
            (x, row) = (inside.x, row + 1);
        }
        let place = Rect { x, width: cells, ..inside };
        canvas.line(place, row, &[(Role::Accent, key.into()), (Role::Text, format!(" {label}"))]);
        canvas.hit(place, row, action);
        x += cells + 3;
    }
    row += 1;
    if model.run.hinting || !model.run.hint.is_empty() {
        canvas.line(inside, row, &[(Role::Accent, "hint: ".into())]);
        let cells = inside.width.saturating_sub(6);
        let lines = 1 + u16::from(width(&model.run.hint.text()) >= usize::from(cells));
        let field = Rect { x: inside.x + 6, y: inside.y + row, width: cells, height: lines };
        canvas.editor(field, &model.run.hint);
        if !model.run.hinting {
            canvas.cursor = None;
        }
        row += lines;
    }
    // The tabs below stay usable.
    let room = area.height.saturating_sub(row + 8).min(needs.details.len() as u16);
    for line in needs.details.iter().take(usize::from(room)) {
        canvas.line(inside, row, &[(Role::Text, format!("  {}", one_line(line, 300)))]);
        row += 1;
    }
    row
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
        Kind::Result | Kind::Stderr | Kind::Check | Kind::Note => Role::Muted,
    }
}

/// Shows lines from one on, with matches of the search.
pub fn tone_lines(canvas: &mut Canvas<'_>, area: Rect, lines: &[ToneLine], top: usize, search: &str) {
    if lines.is_empty() {
        canvas.line(area, 0, &[(Role::Muted, "nothing here".into())]);
    }
    let top = top.min(lines.len().saturating_sub(1));
    for (row, line) in (0..area.height).zip(lines.iter().skip(top)) {
        let role = if contains(&line.text, search) { Role::Match } else { of_tone(line.tone) };
        canvas.line(area, row, &[(role, line.text.clone())]);
    }
}

pub fn age(model: &Model, at: jiff::Timestamp) -> String {
    ago(at, model.now)
}
