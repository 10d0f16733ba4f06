//! A session's transcript, live or past, and an iteration that is open in the timeline.

use super::run::{kind_role, tone_lines};
use crate::log::{Kind, Transcript};
use crate::model::{Model, Opened};
use crate::msg::{Details, Effect};
use crate::screen::run_tabs;
use crate::widget::draw::{Canvas, without};
use crate::widget::text::{contains, pad};
use crate::widget::theme::{Role, Sign};
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::display::view::RunView;
use ratatui::layout::Rect;
use std::collections::BTreeMap;

/// Opens an iteration, or its comparison with an earlier one.
pub fn open(model: &mut Model, from: Option<u32>, iteration: u32) -> Vec<Effect> {
    model.run.marked = None;
    model.run.opened = Some(Opened { from, iteration, ..Opened::default() });
    vec![Effect::LoadDetails { run: model.run.id.clone(), from, iteration }]
}

/// Shows what was read, unless something else is open now.
pub fn loaded(model: &mut Model, details: Details) {
    let Some(opened) = &mut model.run.opened else { return };
    if (opened.from, opened.iteration) != (details.from, details.iteration) {
        return;
    }
    let mut output = Transcript::default();
    super::run::add_live(&mut output.log, details.output);
    output.top();
    opened.output = output;
    let [prompt, diff, checks] = [details.prompt, details.diff, details.checks];
    opened.lines = Some(BTreeMap::from([
        ("Prompt", prompt),
        ("Diff", diff),
        (if details.from.is_some() { "Tests" } else { "Checks" }, checks),
    ]));
}

pub fn view(model: &Model, view: &RunView, opened: &Opened, canvas: &mut Canvas<'_>, area: Rect) {
    let card = view.history.iter().find(|it| it.iteration == opened.iteration);
    match (opened.from, card) {
        (Some(from), _) => {
            let words = format!("iteration {from} compared with {}", opened.iteration);
            canvas.line(area, 0, &[(Role::Strong, words)]);
        }
        (None, Some(card)) => canvas.line(area, 0, &run_tabs::card(card, None, canvas)),
        (None, None) => canvas.line(area, 0, &[(Role::Strong, format!("iteration {}", opened.iteration))]),
    }
    let mut spans = vec![(Role::Muted, "     ".to_owned())];
    for name in opened.parts() {
        let role = if *name == opened.part() { Role::Selected } else { Role::Muted };
        spans.push((role, format!(" {name} ")));
        spans.push((Role::Muted, " ".into()));
    }
    spans.push((Role::Muted, " ← → switch, Esc goes back".into()));
    canvas.line(area, 1, &spans);
    let body = without(area, 2, 0);
    match &opened.lines {
        None => canvas.line(body, 0, &[(Role::Muted, "reading …".into())]),
        Some(_) if opened.part() == "Output" => transcript(model, &opened.output, canvas, body),
        Some(lines) => {
            let empty = Vec::new();
            let found = lines.get(opened.part()).unwrap_or(&empty);
            tone_lines(canvas, body, found, opened.top, &model.run.search);
        }
    }
}

/// Shows a transcript; only what fits is laid out.
pub fn transcript(model: &Model, shown: &Transcript, canvas: &mut Canvas<'_>, area: Rect) {
    if shown.log.len() == 0 {
        canvas.line(area, 0, &[(Role::Muted, "No output yet".into())]);
        return;
    }
    let cells = usize::from(area.width).saturating_sub(2);
    let search = &model.run.search;
    let mut before = None;
    for (row, (at, kind, text)) in (0..).zip(shown.log.visible(shown.at, cells, usize::from(area.height))) {
        let first = before.replace(at) != Some(at);
        let mark = match kind {
            Kind::Did if first => canvas.theme.sign(Sign::Point),
            _ => " ",
        };
        let gutter = if shown.at == Some(at) && first { Role::Selected } else { kind_role(kind) };
        let indent = if matches!(kind, Kind::Result | Kind::Failed | Kind::Note) { "  " } else { "" };
        let found = !search.is_empty() && contains(text, search);
        let role = if found { Role::Match } else { kind_role(kind) };
        canvas.line(
            area,
            row,
            &[(gutter, pad(mark, 1)), (Role::Text, format!(" {indent}")), (role, text.to_owned())],
        );
    }
    if let Some(at) = shown.at {
        let below = shown.log.len().saturating_sub(at + 1);
        let words = format!(" {} below, f follows ", count(below, "line"));
        canvas.right(area, area.height.saturating_sub(1), &[(Role::Attention, words)]);
    }
}
