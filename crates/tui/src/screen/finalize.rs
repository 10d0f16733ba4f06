//! Finalize: lint findings with links to their place, the checks before any work, then writing the task.

use super::problem;
use crate::data::{LintLine, Screen};
use crate::keys::Action;
use crate::model::{BaselineState, DIALECTS, Model, Notice, SPECS};
use crate::msg::Effect;
use crate::widget::draw::{Canvas, beside, list_top, rows, without};
use crate::widget::editor::{Editor, Move};
use crate::widget::text::{pad, wrap};
use crate::widget::theme::{Role, Sign};
use ralph_loop_app::read::phrases::since;
use ralph_loop_app::task::lint::probe::ProbeEnd;
use ralph_loop_protocol::display::text::{clock, count};
use ratatui::layout::Rect;

/// Opens it with the promise added, and lints the task.
pub fn open(model: &mut Model) -> Vec<Effect> {
    if model.studio.draft.is_empty() {
        model.notice = Some(Notice::Done("no draft yet: describe the task first".into()));
        return Vec::new();
    }
    let promise = if model.repo.promise.is_empty() { "COMPLETE" } else { &model.repo.promise };
    let draft = model.studio.draft.with_promise(promise);
    model.studio.change(draft);
    model.finalize.lint = None;
    model.finalize.baseline = BaselineState::NotYet;
    model.finalize.at = 0;
    model.go(Screen::Finalize);
    vec![Effect::Lint(model.studio.draft.text().to_owned())]
}

/// Shows the linter's result and tries the checks that it found.
pub fn linted(model: &mut Model, found: Vec<LintLine>, checks: Vec<String>) -> Vec<Effect> {
    model.finalize.lint = Some(found);
    model.finalize.checks = checks;
    baseline(model).into_iter().collect()
}

fn baseline(model: &mut Model) -> Option<Effect> {
    if model.finalize.checks.is_empty() || matches!(model.finalize.baseline, BaselineState::Running(_)) {
        return None;
    }
    model.finalize.baseline = BaselineState::Running(model.now);
    Some(Effect::TryChecks(model.studio.draft.text().to_owned()))
}

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    let count = model.finalize.lint.as_ref().map_or(0, Vec::len);
    match action {
        Action::Up => model.finalize.at = model.finalize.at.saturating_sub(1),
        Action::Down => model.finalize.at = (model.finalize.at + 1).min(count.saturating_sub(1)),
        Action::Row(at) => {
            model.finalize.at = at;
            jump(model);
        }
        Action::Enter if count == 0 => return write(model),
        Action::Enter | Action::EditDraft => jump(model),
        Action::Baseline => return baseline(model).into_iter().collect(),
        Action::ToggleSpec => model.finalize.spec = (model.finalize.spec + 1) % SPECS.len(),
        Action::NextDialect => model.finalize.dialect = (model.finalize.dialect + 1) % DIALECTS.len(),
        Action::WriteTask => return write(model),
        _ => {}
    }
    Vec::new()
}

/// Opens the draft at the line to fix.
fn jump(model: &mut Model) {
    let line = model
        .finalize
        .lint
        .as_ref()
        .and_then(|lint| lint.get(model.finalize.at))
        .map_or(1, |found| found.line);
    let mut hand = Editor::with(model.studio.draft.text());
    hand.go(Move::Start);
    (1..line).for_each(|_| hand.go(Move::Down));
    model.studio.hand = Some(hand);
    model.go(Screen::Studio);
}

/// Why the task can't be written yet.
fn blocker(model: &Model) -> Option<String> {
    let errors = model.finalize.lint.iter().flatten().filter(|found| found.error).count();
    if errors > 0 {
        return Some(format!("{} to fix first; Enter goes to the line", count(errors, "error")));
    }
    let red = sections(model).into_iter().find(|(held, ..)| !held);
    let running = matches!(model.finalize.baseline, BaselineState::Running(_));
    red.map(|(_, name, _)| format!("missing: {name}; e edits the draft"))
        .or_else(|| running.then(|| "the checks are still running".to_owned()))
}

fn write(model: &mut Model) -> Vec<Effect> {
    if model.finalize.lint.is_none() {
        return Vec::new();
    }
    if let Some(words) = blocker(model) {
        model.notice = Some(Notice::Done(words));
        return Vec::new();
    }
    let spec = (model.finalize.spec > 0).then(|| SPECS[model.finalize.spec].to_owned());
    let dialect = DIALECTS[model.finalize.dialect].to_owned();
    vec![Effect::WriteTask { draft: model.studio.draft.text().to_owned(), dialect, spec }]
}

pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let (top, bottom) = (without(area, 0, 3), rows(area, area.height.saturating_sub(3), 3));
    let (left, right) = if area.width >= 90 { beside(top, area.width / 2) } else { (top, Rect::default()) };
    let used = preflight(model, canvas, left);
    let used = used.max(lint(model, canvas, without(left, used + 1, 0)) + used + 1);
    let place = if right.width > 0 { right } else { without(left, used + 1, 0) };
    if right.width > 0 {
        canvas.bar_down(right.x.saturating_sub(1), right);
    }
    let indent = u16::from(right.width > 0);
    tried(model, canvas, Rect { x: place.x + indent, width: place.width.saturating_sub(indent), ..place });
    let to = DIALECTS[model.finalize.dialect];
    let label = |text: &str| (Role::Muted, pad(text, 12));
    canvas.line(
        bottom,
        0,
        &[label("writes"), (Role::Text, format!("{to}, and a snapshot in .ralph/spec/drafts"))],
    );
    canvas.line(bottom, 1, &[label("SPEC.md"), (Role::Text, SPECS[model.finalize.spec].to_owned())]);
    match (&model.finalize.lint, blocker(model)) {
        (None, _) => {}
        (Some(_), Some(words)) => canvas.line(bottom, 2, &[(Role::Bad, words)]),
        (Some(_), None) => {
            let arrow = canvas.theme.sign(Sign::Arrow);
            canvas.line(bottom, 2, &[(Role::Accent, format!("{arrow} w writes it and goes to Start"))]);
            canvas.hit(bottom, 2, Action::WriteTask);
        }
    }
}

/// What a task needs before it is written: whether it is there, its name, and details.
fn sections(model: &Model) -> [(bool, &'static str, String); 7] {
    let draft = &model.studio.draft;
    let (iterations, minutes, cost) = &model.repo.limits;
    let limits = format!("{iterations} iterations, {minutes} min, {cost}; Start can change them");
    let (promise, checks) = (draft.promise().unwrap_or_default(), &model.finalize.checks);
    [
        (draft.title().is_some(), "a title", String::new()),
        (draft.has_task(), "Task", String::new()),
        (draft.has(|parts| parts.acceptance), "Acceptance", String::new()),
        (draft.has(|parts| parts.constraints), "Constraints", String::new()),
        (!checks.is_empty(), "a command that shows that it is done", checks.join(" · ")),
        (!promise.is_empty(), "a promise", promise.to_owned()),
        (true, "limits", limits),
    ]
}

fn preflight(model: &Model, canvas: &mut Canvas<'_>, area: Rect) -> u16 {
    for (row, (held, name, more)) in (0..).zip(sections(model)) {
        let (sign, role) = if held { (Sign::Good, Role::Good) } else { (Sign::Bad, Role::Bad) };
        let sign = canvas.theme.sign(sign);
        canvas.line(
            area,
            row,
            &[(role, format!("{sign} ")), (Role::Text, name.into()), (Role::Muted, format!("  {more}"))],
        );
    }
    7
}

fn lint(model: &Model, canvas: &mut Canvas<'_>, area: Rect) -> u16 {
    let Some(found) = &model.finalize.lint else {
        canvas.line(area, 0, &[(Role::Accent, "reading the task …".into())]);
        return 1;
    };
    if found.is_empty() {
        canvas.line(area, 0, &[(Role::Good, format!("{} no problems", canvas.theme.sign(Sign::Good)))]);
        return 1;
    }
    let top = list_top(model.finalize.at, (area.height / 3).max(1), found.len());
    let mut row = 0;
    for (at, one) in found.iter().enumerate().skip(top) {
        let (role, word) = if one.error { (Role::Bad, "error") } else { (Role::Attention, "warning") };
        let mark = if at == model.finalize.at { canvas.theme.sign(Sign::Point) } else { " " };
        let cells = usize::from(area.width).saturating_sub(12);
        for (n, piece) in wrap(&format!("line {}: {}", one.line, one.message), cells).iter().enumerate() {
            let lead = if n == 0 { format!("{mark} {word}") } else { String::new() };
            canvas.line(area, row, &[(role, pad(&lead, 12)), (Role::Text, (*piece).to_owned())]);
            canvas.hit(area, row, Action::Row(at));
            row += 1;
        }
        if at == model.finalize.at {
            for piece in wrap(&format!("fix: {}", one.fix), cells) {
                canvas.line(area, row, &[(Role::Text, " ".repeat(12)), (Role::Accent, piece.to_owned())]);
                row += 1;
            }
        }
        if row >= area.height {
            break;
        }
    }
    row
}

fn tried(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    canvas.line(area, 0, &[(Role::Strong, "The checks before any work".into())]);
    let below = without(area, 1, 0);
    match &model.finalize.baseline {
        BaselineState::NotYet => canvas.line(below, 0, &[(Role::Muted, "b runs them, sandboxed".into())]),
        BaselineState::Running(at) => {
            let words =
                format!("{} running for {}", canvas.theme.sign(Sign::Half), clock(since(*at, model.now)));
            canvas.line(below, 0, &[(Role::Accent, words)]);
        }
        BaselineState::Failed(wrong) => {
            problem(canvas, below, 0, wrong);
        }
        BaselineState::Over(over) => {
            let mut row = 0;
            for (command, end, lines) in &over.checks {
                let (role, words) = match end {
                    ProbeEnd::Passes => {
                        (Role::Attention, "passes already: it cannot show that the work is done")
                    }
                    ProbeEnd::Fails => (Role::Good, "fails now, as it should before the work"),
                    ProbeEnd::NotFound => (Role::Bad, "can't start: command not found"),
                    ProbeEnd::NoEnd(_) => (Role::Bad, "didn't end in time"),
                };
                canvas.line(below, row, &[(Role::Text, format!("$ {command}"))]);
                row = canvas.text(below, row + 1, role, words);
                for line in lines {
                    canvas.line(below, row, &[(Role::Muted, format!("  {line}"))]);
                    row += 1;
                }
                row += 1;
            }
        }
    }
}
