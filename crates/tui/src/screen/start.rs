//! Start: branch, limits, promise, agents; then starts the run or says what prevents it.

use super::problem;
use crate::data::{Problem, Screen, StartWish};
use crate::draft::Draft;
use crate::keys::Action;
use crate::model::Model;
use crate::msg::Effect;
use crate::widget::draw::{Canvas, without};
use crate::widget::form::{Field, Form, Value};
use crate::widget::text::{pad, width};
use crate::widget::theme::{Role, Sign};
use ralph_loop_task::dialect::verification;
use ratatui::layout::Rect;

/// Opens it for a text, or for the repo's task.
pub fn open(model: &mut Model, text: Option<String>) -> Vec<Effect> {
    let repo = &model.repo;
    let file = if text.is_none() { repo.tasks.first().cloned() } else { None };
    let title = match &text {
        Some(text) => Draft::new(text).title().map_or_else(|| first_line(text), str::to_owned),
        None => model.studio.draft.title().map(str::to_owned).or_else(|| file.clone()).unwrap_or_default(),
    };
    let agents: Vec<&str> = repo
        .agents
        .iter()
        .filter(|agent| {
            !matches!(agent.state, crate::data::AgentState::Missing | crate::data::AgentState::Off)
        })
        .map(|agent| agent.name.as_str())
        .collect();
    let commands = verification::commands(text.as_deref().unwrap_or(model.studio.draft.text()));
    let (verify, verify_hint) = match (repo.verifiers.as_slice(), commands.as_slice(), repo.tests.as_slice())
    {
        ([_, ..], ..) => {
            (String::new(), format!("empty: what is configured ({})", repo.verifiers.join(", ")))
        }
        (_, [_, ..], _) => (String::new(), "empty: the task's verification".to_owned()),
        (_, _, [first, ..]) => (first.clone(), "the test command found here".to_owned()),
        _ => (String::new(), "a command that passes when it's done, for example `make test`".to_owned()),
    };
    let (iterations, minutes, cost) = &repo.limits;
    let form = Form::new(vec![
        Field::text(
            "branch",
            "branch",
            &branch_name(&title),
            "each iteration is committed on it; empty: none",
        ),
        Field::text("verify", "check", &verify, &verify_hint),
        Field::text("agents", "agents", &agents.join(","), &format!("in this order, {}", repo.selection)),
        Field::text(
            "race",
            "race",
            "",
            "several at once: `claude,codex`, models, or `3` of the same; empty: one run",
        ),
        Field::choice(
            "best",
            "who wins a race",
            &["first proven", "the best number", "the smallest diff", "the lowest cost"],
            0,
            "",
        ),
        Field::text("iterations", "iterations", "", &format!("most; empty: {iterations}")),
        Field::text("minutes", "minutes", "", &format!("most time at work; empty: {minutes}")),
        Field::text("cost", "cost in $", "", &format!("most; empty: {cost}")),
        Field::choice(
            "place",
            "place",
            &["in your folder", "in a separate worktree"],
            0,
            "sandboxed agents work on a copy",
        ),
        Field::choice(
            "publish",
            "result",
            &["as configured", "stays here", "is pushed", "becomes a pull request"],
            0,
            "",
        ),
        Field::choice(
            "start_new",
            "unfinished run",
            &["resume it if there is one", "start a new run"],
            0,
            "",
        ),
        Field::fixed("promise", "promise", &repo.promise, "the words that start the final check"),
    ]);
    model.start = crate::model::Start { form, text, file, busy: false, problem: None };
    model.go(Screen::Start);
    Vec::new()
}

fn first_line(text: &str) -> String {
    ralph_loop_protocol::display::text::one_line(
        text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default(),
        60,
    )
}

/// `ralph/keep-the-order`.
pub fn branch_name(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    let slug: String = slug.chars().take(40).collect();
    match slug.trim_matches('-') {
        "" => "ralph/task".to_owned(),
        slug => format!("ralph/{slug}"),
    }
}

/// The form's values.
pub fn wish(model: &Model) -> StartWish {
    let (start, form) = (&model.start, &model.start.form);
    let publish = match form.get("publish").as_str() {
        "is pushed" => "push",
        "becomes a pull request" => "pr",
        "stays here" => "none",
        _ => "",
    };
    let best = match form.get("best").as_str() {
        "the best number" => "metric",
        "the smallest diff" => "diff",
        "the lowest cost" => "cost",
        _ => "",
    };
    StartWish {
        text: start.text.clone(),
        file: start.file.clone(),
        branch: form.get("branch"),
        iterations: form.get("iterations"),
        minutes: form.get("minutes"),
        cost: form.get("cost"),
        agents: form.get("agents"),
        verify: form.get("verify"),
        worktree: form.get("place").contains("worktree"),
        publish: publish.to_owned(),
        start_new: form.get("start_new").starts_with("start"),
        race: form.get("race"),
        best: best.to_owned(),
        allowed: false,
    }
}

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::Down | Action::NextTab => model.start.form.step(true),
        Action::Up | Action::PrevTab => model.start.form.step(false),
        Action::Row(at) => {
            model.start.form.at = at.min(model.start.form.fields.len().saturating_sub(1));
            model.start.form.turn(true);
        }
        Action::Enter if !model.start.busy => {
            if model.start.text.is_none() && model.start.file.is_none() {
                model.start.problem = Some(Problem::new(
                    "there is no task yet",
                    "Esc goes back: describe the task there, or finalize one in the Spec Studio",
                ));
                return Vec::new();
            }
            model.start.busy = true;
            model.start.problem = None;
            return vec![Effect::Start(Box::new(wish(model)))];
        }
        _ => {}
    }
    Vec::new()
}

pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let start = &model.start;
    let task = match (&start.text, &start.file) {
        (Some(text), _) => format!("“{}”", first_line(text)),
        (None, Some(file)) => file.clone(),
        (None, None) => "none yet".to_owned(),
    };
    canvas.line(area, 0, &[(Role::Muted, pad("task", 20)), (Role::Strong, task)]);
    let row = form(canvas, without(area, 2, 0), &start.form) + 3;
    let below = without(area, row, 0);
    if start.busy {
        let sign = canvas.theme.sign(Sign::Half);
        canvas.text(
            below,
            0,
            Role::Accent,
            &format!("{sign} starting: reading the repo, preparing the run's workspace …"),
        );
    } else if let Some(wrong) = &start.problem {
        problem(canvas, below, 0, wrong);
    } else {
        let arrow = canvas.theme.sign(Sign::Arrow);
        canvas.hit(below, 0, Action::Enter);
        let words = format!("{arrow} Enter starts the run. It continues if you close this terminal.");
        canvas.text(below, 0, Role::Accent, &words);
    }
}

/// Column widths of field names and values.
const LABEL: u16 = 20;
const VALUE_MAX: u16 = 44;
/// With less room, only the selected field's hint is shown.
const HINTS: u16 = 40;

/// Shows a form; returns its height. A hint that doesn't fit next to its field is shown below while selected.
pub fn form(canvas: &mut Canvas<'_>, area: Rect, form: &Form) -> u16 {
    let widest = form.fields.iter().map(|field| shown(canvas, field)).map(|text| width(&text)).max();
    let cells = u16::try_from(widest.unwrap_or_default() + 1).unwrap_or(VALUE_MAX).clamp(14, VALUE_MAX);
    let room = area.width.saturating_sub(LABEL + cells + 2);
    let mut below = None;
    for (row, (at, field)) in (0..area.height).zip(form.fields.iter().enumerate()) {
        let chosen = at == form.at;
        let mark = if chosen { canvas.theme.sign(Sign::Point) } else { " " };
        let role = if chosen { Role::Accent } else { Role::Muted };
        canvas.line(area, row, &[(role, format!("{mark} {}", pad(field.label, usize::from(LABEL) - 2)))]);
        let y = area.y + row;
        let value =
            Rect { x: area.x + LABEL, y, width: cells.min(area.width.saturating_sub(LABEL)), height: 1 };
        canvas.hit(area, row, Action::Row(at));
        match (&field.value, chosen) {
            (Value::Text(editor), true) => canvas.editor(value, editor),
            (Value::Choice(..), true) => canvas.line(value, 0, &[(Role::Strong, shown(canvas, field))]),
            (Value::Fixed(_), _) => canvas.line(value, 0, &[(Role::Muted, shown(canvas, field))]),
            _ => canvas.line(value, 0, &[(Role::Text, shown(canvas, field))]),
        }
        if room >= HINTS && width(&field.hint) <= usize::from(room) {
            let hint = Rect { x: value.right() + 2, y, width: room, height: 1 };
            canvas.line(hint, 0, &[(Role::Muted, field.hint.clone())]);
        } else if chosen {
            below = Some(field.hint.as_str());
        }
    }
    let used = u16::try_from(form.fields.len()).unwrap_or(u16::MAX).min(area.height);
    let inside = Rect { x: area.x + 2, width: area.width.saturating_sub(2), ..area };
    below.map_or(used, |hint| canvas.text(inside, used, Role::Muted, hint))
}

/// A field's value; choices are marked.
fn shown(canvas: &Canvas<'_>, field: &Field) -> String {
    match &field.value {
        Value::Choice(of, _) if of.len() > 1 && canvas.theme.unicode => format!("‹ {} ›", field.shown()),
        Value::Choice(of, _) if of.len() > 1 => format!("< {} >", field.shown()),
        _ => field.shown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_after_the_task() {
        assert_eq!(branch_name("Keep the *order* of messages!"), "ralph/keep-the-order-of-messages");
        assert_eq!(branch_name("日本"), "ralph/task");
    }
}
