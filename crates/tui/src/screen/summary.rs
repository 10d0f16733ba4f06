//! Summary: proof level, changes, location, cost, and what can be done with the result.

use super::run::{agent_tag, cost, iterations};
use crate::data::Screen;
use crate::keys::{self, Action};
use crate::model::{Model, Overlay};
use crate::msg::Effect;
use crate::widget::draw::{Canvas, beside, without};
use crate::widget::text::pad;
use crate::widget::theme::{Role, Sign, of_tone};
use ralph_loop_protocol::display::text::{count, duration, one_line};
use ralph_loop_protocol::display::view::RunView;
use ralph_loop_protocol::proof::level::ProofLevel;
use ratatui::layout::Rect;
use std::time::Duration;

/// Width of the fact names.
const LABEL: u16 = 14;

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    let run = model.run.id.clone();
    let command = |words: &[&str], done: &str| Effect::Command {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        done: done.to_owned(),
    };
    let confirm = |question: &str, line: &str, effect: Effect| Overlay::Confirm {
        question: question.to_owned(),
        lines: vec![line.to_owned()],
        yes: vec![effect],
        leave: false,
    };
    match action {
        Action::Diff => return vec![Effect::ShowDiff(run)],
        Action::ApplyResult => {
            let apply = command(&["apply", &run], "the changes are in your checkout, not committed");
            let line = "As plain changes, for you to look at and commit. Where something of yours is in the way, nothing is touched.";
            model.overlay = Some(confirm("Take the result into your checkout?", line, apply));
        }
        Action::OpenPr => return vec![command(&["open", &run], "opened")],
        Action::Restore => {
            let restore = command(&["restore", &run, "--yes"], "the files are as they were before the run");
            let line =
                "The current files are saved under refs/ralph first; HEAD, branches and the index stay.";
            model.overlay =
                Some(confirm("Bring the files back to what they were before this run?", line, restore));
        }
        Action::Archive => {
            let archive = command(&["archive"], "the plan is archived");
            model.overlay = Some(confirm(
                "Archive the plan of this repo?",
                "It moves to ralph-archive/ and is committed.",
                archive,
            ));
        }
        Action::ShowRun => model.go(Screen::Run),
        Action::NewThread => return super::studio::open(model, None),
        Action::Up => model.run.top = model.run.top.saturating_sub(1),
        Action::Down => model.run.top += 1,
        _ => {}
    }
    Vec::new()
}

pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(view) = &model.run.view else {
        canvas.line(area, 0, &[(Role::Muted, "reading the run …".into())]);
        return;
    };
    let (sign, role) = canvas.theme.look(view.status.as_str());
    let end = view.finished.as_ref().map_or(view.now.as_str(), |end| end.summary.as_str());
    let head = format!("{sign} {}: {}", view.status, one_line(end, 400));
    let row = canvas.text(area, 0, role, &head) + 1;
    let body = without(area, row, 0);
    let (left, right) =
        if area.width >= 100 { beside(body, area.width / 2) } else { (body, Rect::default()) };
    let used = facts(model, view, canvas, left);
    let files = if right.width > 0 { right } else { without(left, used + 1, 0) };
    if right.width > 0 {
        canvas.bar_down(right.x.saturating_sub(1), right);
        next(model, view, canvas, left, used + 1);
    }
    let indent = u16::from(right.width > 0);
    changes(model, canvas, Rect { x: files.x + indent, width: files.width.saturating_sub(indent), ..files });
}

fn facts(model: &Model, view: &RunView, canvas: &mut Canvas<'_>, area: Rect) -> u16 {
    let label = |text: &str| (Role::Muted, pad(text, usize::from(LABEL)));
    let (proof_role, proof_words) = proof(view);
    let sign = canvas.theme.sign(if proof_role == Role::Good { Sign::Good } else { Sign::Note });
    let mut lines = vec![vec![label("proof"), (proof_role, format!("{sign} {proof_words}"))]];
    if let Some(proof) = &view.proof {
        lines.extend(
            proof
                .failed
                .iter()
                .chain(&proof.harness)
                .take(4)
                .map(|why| vec![label(""), (Role::Attention, one_line(why, 300))]),
        );
    }
    let branch = view.branch.clone().or_else(|| view.work_ref.clone()).unwrap_or_else(|| "none".into());
    lines.push(vec![label("branch"), (Role::Strong, one_line(&branch, 200))]);
    if let Some(pr) = &view.pr {
        let draft = if pr.draft { " (draft)" } else { "" };
        lines.push(vec![label("pull request"), (Role::Accent, format!("{}{draft}", one_line(&pr.url, 200)))]);
    }
    let time =
        duration(Duration::try_from_secs_f64(view.elapsed_seconds.max(0.0).floor()).unwrap_or_default());
    lines.push(vec![label("iterations"), (Role::Text, format!("{} in {time}", iterations(view)))]);
    lines.push(vec![label("cost"), (Role::Text, cost(model, view))]);
    for agent in view.agents.iter().filter(|agent| agent.sessions > 0) {
        let words = format!("{}, {}", agent.cost.with_basis(), count(agent.sessions as usize, "session"));
        lines.push(vec![label(""), agent_tag(agent.name.as_str(), 10), (Role::Text, words)]);
    }
    let met = view.criteria.iter().filter(|one| one.met).count();
    if !view.criteria.is_empty() {
        lines.push(vec![label("criteria"), (Role::Text, format!("{met} of {} met", view.criteria.len()))]);
    }
    lines.push(vec![label("changelogs"), (Role::Muted, ".ralph/changelog/".into())]);
    lines.push(vec![label("record"), (Role::Muted, format!(".ralph/runs/{}", view.run_id))]);
    let mut row = 0;
    for spans in &lines {
        match spans.as_slice() {
            // A single value isn't cut.
            [name, (role, text)] => {
                canvas.line(area, row, std::slice::from_ref(name));
                let place = Rect { x: area.x + LABEL, width: area.width.saturating_sub(LABEL), ..area };
                row = canvas.text(place, row, *role, text);
            }
            _ => {
                canvas.line(area, row, spans);
                row += 1;
            }
        }
    }
    row
}

/// What can be done, by key.
fn next(model: &Model, view: &RunView, canvas: &mut Canvas<'_>, area: Rect, row: u16) {
    canvas.line(area, row, &[(Role::Strong, "Next".into())]);
    let fits = |binding: &&keys::Binding| match binding.action {
        Action::OpenPr => view.pr.is_some(),
        // A server run's folder isn't on this machine.
        Action::ApplyResult | Action::Restore | Action::NewThread if model.server.is_some() => false,
        Action::Runs | Action::Back | Action::Archive => false,
        _ => binding.screen.is_some(),
    };
    for (row, binding) in (row + 1..area.height).zip(keys::bindings(Screen::Summary).filter(fits)) {
        let key = binding.keys.first().map(|key| keys::name(*key)).unwrap_or_default();
        let spans = [(Role::Accent, format!("  {}", pad(&key, 4))), (Role::Text, binding.label.to_owned())];
        canvas.line(area, row, &spans);
        canvas.hit(area, row, binding.action);
    }
}

fn proof(view: &RunView) -> (Role, String) {
    match &view.proof {
        Some(proof) if proof.over && proof.passed => {
            let proven = proof.level.is_some_and(ProofLevel::is_proven);
            let shown = proof.difference.first().or(proof.level_reason.as_ref());
            let shown = shown.map_or_else(String::new, |line| format!(" · {line}"));
            (if proven { Role::Good } else { Role::Attention }, format!("{}{shown}", proof.headline))
        }
        Some(proof) if proof.over => (Role::Bad, "the final check did not pass".into()),
        Some(_) => (Role::Accent, "the final check runs".into()),
        None => (Role::Attention, "not proven".into()),
    }
}

fn changes(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    canvas.line(area, 0, &[(Role::Strong, "Changes".into())]);
    let list = without(area, 1, 0);
    match model.run.tabs.get(&3) {
        None => canvas.line(list, 0, &[(Role::Muted, "reading …".into())]),
        Some(lines) if lines.is_empty() => {
            canvas.line(list, 0, &[(Role::Muted, "no file was changed".into())])
        }
        Some(lines) => {
            let top = model.run.top.min(lines.len().saturating_sub(1));
            for (row, line) in (0..list.height).zip(lines.iter().skip(top)) {
                canvas.line(list, row, &[(of_tone(line.tone), line.text.clone())]);
            }
        }
    }
}
