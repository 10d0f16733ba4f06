//! Overlays above a screen: help, palette, questions, lists.

use crate::data::RunRow;
use crate::keys::{self, Action, Binding};
use crate::model::{Model, Notice, Overlay, Purpose};
use crate::msg::Effect;
use crate::screen::{self, run, welcome};
use crate::widget::draw::{Canvas, list_top, middle, without};
use crate::widget::editor::Editor;
use crate::widget::text::{contains, pad};
use crate::widget::theme::Role;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::id::AgentName;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;

/// Default cooldown in seconds.
const COOL_DOWN: u64 = 900;

/// The result of a key on an overlay.
pub enum Outcome {
    /// Handled, with these effects.
    Taken(Vec<Effect>),
    /// Selected a command of the screen below.
    Chosen(Action),
}

pub fn editor(overlay: &mut Overlay) -> Option<&mut Editor> {
    match overlay {
        Overlay::Palette { input, .. } | Overlay::Ask { input, .. } | Overlay::Runs { input, .. } => {
            Some(input)
        }
        _ => None,
    }
}

/// The palette's matches for the input.
fn offered(model: &Model, typed: &str) -> Vec<&'static Binding> {
    let mut found: Vec<&Binding> = Vec::new();
    for binding in keys::bindings(model.screen).filter(|binding| screen::offers(model, binding.action)) {
        let fits = typed.trim().is_empty() || contains(binding.label, typed.trim());
        if fits && !found.iter().any(|one| one.action == binding.action) {
            found.push(binding);
        }
    }
    found
}

/// The runs whose title, repo, id or status has the typed words.
fn matching<'a>(runs: &'a [RunRow], typed: &str) -> Vec<&'a RunRow> {
    let has = |run: &RunRow, word: &str| {
        [&run.title, &run.repo(), &run.id, &run.status].into_iter().any(|text| contains(text, word))
    };
    runs.iter().filter(|run| typed.split_whitespace().all(|word| has(run, word))).collect()
}

/// Handles a key.
pub fn key(model: &mut Model, code: KeyCode) -> Outcome {
    let none = Outcome::Taken(Vec::new());
    let commands = match &model.overlay {
        Some(Overlay::Palette { input, .. }) => offered(model, &input.text()),
        _ => Vec::new(),
    };
    let Some(overlay) = &mut model.overlay else { return none };
    if code == KeyCode::Esc {
        model.overlay = None;
        return none;
    }
    match overlay {
        Overlay::Help { top } => match code {
            KeyCode::Up => *top = top.saturating_sub(1),
            KeyCode::Down | KeyCode::PageDown => *top += if code == KeyCode::Down { 1 } else { 10 },
            KeyCode::PageUp => *top = top.saturating_sub(10),
            _ => model.overlay = None,
        },
        Overlay::Trouble(_) => model.overlay = None,
        Overlay::Confirm { yes, leave, .. } => match code {
            KeyCode::Char('y' | 'Y') | KeyCode::Enter if *leave || code != KeyCode::Enter => {
                let effects = std::mem::take(yes);
                model.overlay = None;
                return Outcome::Taken(effects);
            }
            KeyCode::Char(_) => {
                model.overlay = None;
                model.start.busy = false;
            }
            _ => {}
        },
        Overlay::Palette { at, .. } => match step(code, at, commands.len()) {
            Some(at) => {
                model.overlay = None;
                return commands.get(at).map_or(none, |binding| Outcome::Chosen(binding.action));
            }
            None => return none,
        },
        Overlay::Ask { input, purpose, .. } => {
            if code == KeyCode::Enter {
                let (text, purpose) = (input.take(), *purpose);
                model.overlay = None;
                return Outcome::Taken(asked(model, purpose, &text));
            }
        }
        Overlay::Runs { input, at } => {
            let found = matching(&model.runs, &input.text());
            let chosen = step(code, at, found.len()).and_then(|at| found.get(at)).map(|run| run.id.clone());
            if let Some(id) = chosen {
                model.overlay = None;
                return Outcome::Taken(run::open(model, &id));
            }
        }
        Overlay::Threads { rows, at } => {
            if let Some(at) = step(code, at, rows.len()) {
                let id = rows.get(at).map(|row| row.id.clone());
                model.overlay = None;
                return Outcome::Taken(id.map(Effect::LoadThread).into_iter().collect());
            }
        }
        Overlay::Agents { names, at } => {
            if let Some(at) = step(code, at, names.len()) {
                let agent = AgentName::new(names.get(at).cloned().unwrap_or_default());
                model.overlay = None;
                let control = Control::Cooldown { agent, seconds: COOL_DOWN };
                return Outcome::Taken(vec![Effect::Send {
                    run: model.run.id.clone(),
                    control,
                    then_resume: false,
                }]);
            }
        }
    }
    none
}

/// Moves in a list; returns the selected entry on Enter.
fn step(code: KeyCode, at: &mut usize, count: usize) -> Option<usize> {
    let last = count.saturating_sub(1);
    match code {
        KeyCode::Up => *at = at.saturating_sub(1),
        KeyCode::Down => *at = (*at + 1).min(last),
        KeyCode::PageUp => *at = at.saturating_sub(10),
        KeyCode::PageDown => *at = (*at + 10).min(last),
        KeyCode::Home => *at = 0,
        KeyCode::End => *at = last,
        KeyCode::Enter if count > 0 => return Some((*at).min(last)),
        _ => *at = (*at).min(last),
    }
    None
}

/// Handles a submitted line.
fn asked(model: &mut Model, purpose: Purpose, text: &str) -> Vec<Effect> {
    let text = text.trim().to_owned();
    if purpose == Purpose::Search {
        model.run.search = text;
        if !model.run.search.is_empty() {
            run::find(model, true);
        }
        return Vec::new();
    }
    if text.is_empty() {
        model.notice = Some(Notice::Done("nothing was sent: the line was empty".into()));
        return Vec::new();
    }
    let run = model.run.id.clone();
    let answers = model.run.view.as_ref().is_some_and(|view| view.needs.is_some() && !view.driven);
    let send = |control| vec![Effect::Send { run: run.clone(), control, then_resume: answers }];
    match purpose {
        Purpose::Note => send(Control::Note { text }),
        Purpose::Nudge => send(Control::Nudge { text }),
        Purpose::Guardrail => send(Control::Guardrail { text }),
        Purpose::SaveTo => vec![Effect::SaveText { name: text, text: model.run.output.log.text() }],
        Purpose::Branch => screen::summary::take_branch(&run, text),
        Purpose::PullRequest => screen::summary::publish(&run, text),
        Purpose::Verify => {
            model.start.form.set("verify", &text);
            model.start.busy = true;
            vec![Effect::Start(Box::new(screen::start::wish(model)))]
        }
        Purpose::Search => Vec::new(),
    }
}

pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(overlay) = &model.overlay else { return };
    canvas.hits.clear();
    canvas.cursor = None;
    let (wide, high) = (area.width.saturating_sub(4).min(96), area.height.saturating_sub(2));
    match overlay {
        Overlay::Help { top } => help(model, canvas, middle(area, wide, high), *top),
        Overlay::Palette { input, at } => {
            let inside = canvas.boxed(middle(area, wide, high.min(20)), "All commands");
            let found = offered(model, &input.text());
            let list = without(inside, 2, 0);
            let first = list_top((*at).min(found.len().saturating_sub(1)), list.height, found.len());
            for (row, (number, binding)) in (0..list.height).zip(found.iter().enumerate().skip(first)) {
                let role = if number == *at { Role::Selected } else { Role::Text };
                let keys = binding.keys.first().map(|key| keys::name(*key)).unwrap_or_default();
                canvas.line(list, row, &[(Role::Muted, pad(&keys, 12)), (role, binding.label.to_owned())]);
            }
            canvas.editor(Rect { height: 1, ..inside }, input);
        }
        Overlay::Confirm { question, lines, leave, .. } => {
            let count = lines
                .iter()
                .map(|line| crate::widget::text::wrap(line, usize::from(wide.saturating_sub(4))).len())
                .sum::<usize>();
            let inside = canvas.boxed(middle(area, wide, (count as u16 + 6).min(high)), question);
            let mut row = 1;
            for line in lines {
                row = canvas.text(without(inside, 0, 2), row, Role::Text, line);
            }
            let keys = if *leave { "y or Enter: yes    n: no" } else { "y: yes    n: no" };
            canvas.line(inside, inside.height.saturating_sub(1), &[(Role::Accent, keys.into())]);
        }
        Overlay::Ask { title, hint, input, .. } => {
            let inside = canvas.boxed(middle(area, wide, 6), title);
            canvas.line(inside, 0, &[(Role::Muted, (*hint).to_owned())]);
            canvas.editor(without(inside, 2, 0), input);
        }
        Overlay::Runs { input, at } => {
            let inside = canvas.boxed(
                middle(area, wide, high),
                &model
                    .server
                    .as_ref()
                    .map_or("All runs of this machine".to_owned(), |at| format!("All runs of {at}")),
            );
            let found = matching(&model.runs, &input.text());
            let list = without(inside, 1, 0);
            if found.is_empty() {
                let words = if model.runs.is_empty() { "none yet" } else { "no run matches" };
                canvas.line(list, 0, &[(Role::Muted, words.into())]);
            }
            // Headings of the groups, and the runs with their numbers.
            let mut lines = Vec::new();
            for (number, run) in found.iter().enumerate() {
                if number == 0 || found[number - 1].group() != run.group() {
                    lines.push(None);
                }
                lines.push(Some((number, *run)));
            }
            let chosen = lines.iter().position(|line| line.is_some_and(|(number, _)| number == *at));
            let first = list_top(chosen.unwrap_or(0), list.height, lines.len());
            for (row, (at_line, line)) in (0..list.height).zip(lines.iter().enumerate().skip(first)) {
                let next = lines.get(at_line + 1).and_then(|line| *line);
                match (line, next) {
                    (Some((number, run)), _) => {
                        welcome::run_line(model, canvas, list, row, run, true, number == at);
                    }
                    (None, Some((_, run))) => {
                        let heading = ["Needs you", "Active", "Finished"][run.group()];
                        canvas.line(list, row, &[(Role::Strong, heading.into())]);
                    }
                    (None, None) => {}
                }
            }
            canvas.line(inside, 0, &[(Role::Muted, "filter: ".into())]);
            let cells = inside.width.saturating_sub(8);
            canvas.editor(Rect { x: inside.x + 8, width: cells, height: 1, ..inside }, input);
        }
        Overlay::Threads { rows, at } => {
            let inside = canvas.boxed(middle(area, wide, high.min(20)), "Threads");
            if rows.is_empty() {
                canvas.line(inside, 0, &[(Role::Muted, "none yet".into())]);
            }
            let first = list_top(*at, inside.height, rows.len());
            for (row, (number, thread)) in (0..inside.height).zip(rows.iter().enumerate().skip(first)) {
                let role = if number == *at { Role::Selected } else { Role::Text };
                let words = format!("{}  {:>3} messages  {}", thread.id, thread.messages, thread.title);
                canvas.line(inside, row, &[(role, words)]);
            }
        }
        Overlay::Agents { names, at } => {
            let inside =
                canvas.boxed(middle(area, 50, names.len() as u16 + 4), "Which agent cools down for 15 min?");
            for (row, (number, name)) in (0..).zip(names.iter().enumerate()) {
                let role = if number == *at { Role::Selected } else { Role::Text };
                canvas.line(inside, row, &[(role, name.clone())]);
            }
        }
        Overlay::Trouble(problem) => {
            let inside = canvas.boxed(middle(area, wide, high.min(14)), "This did not work");
            screen::problem(canvas, inside, 0, problem);
        }
    }
}

fn help(model: &Model, canvas: &mut Canvas<'_>, area: Rect, top: usize) {
    let inside = canvas.boxed(area, &format!("Keys: {}", model.screen.title()));
    // The screen's own keys win.
    let names = |binding: &Binding| -> Vec<String> {
        let acts = |key: &&keys::Chord| {
            keys::action(model.screen, **key, model.typing()) == Some(binding.action)
                && screen::offers(model, binding.action)
        };
        binding.keys.iter().filter(acts).map(|key| keys::name(*key)).collect()
    };
    let bound = keys::bindings(model.screen).filter(|binding| !names(binding).is_empty());
    let own = bound.clone().filter(|binding| binding.screen.is_some());
    let all = bound.filter(|binding| binding.screen.is_none());
    let line = |binding: &Binding| {
        vec![(Role::Accent, pad(&names(binding).join(", "), 18)), (Role::Text, binding.label.to_owned())]
    };
    let mut lines: Vec<Vec<(Role, String)>> = own.map(line).collect();
    lines.push(Vec::new());
    lines.extend(all.map(line));
    lines.push(Vec::new());
    lines.push(vec![(
        Role::Muted,
        "The mouse selects and scrolls. Hold Shift to select text with it.".into(),
    )]);
    let top = top.min(lines.len().saturating_sub(usize::from(inside.height)));
    for (row, spans) in (0..inside.height).zip(lines.iter().skip(top)) {
        canvas.line(inside, row, spans);
    }
}
