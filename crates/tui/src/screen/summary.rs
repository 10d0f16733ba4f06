//! Summary: proof level, changes, location, cost, and what can be done with the result.

use super::run::{agent_tag, cost, iterations};
use crate::data::Screen;
use crate::keys::{self, Action};
use crate::model::{Model, Notice, Overlay, Purpose};
use crate::msg::Effect;
use crate::widget::draw::{Canvas, beside, rows, without};
use crate::widget::editor::Editor;
use crate::widget::text::pad;
use crate::widget::theme::{Role, Sign, of_tone};
use ralph_loop_protocol::display::text::{count, duration, one_line};
use ralph_loop_protocol::display::view::RunView;
use ralph_loop_protocol::proof::level::ProofLevel;
use ratatui::layout::Rect;
use std::time::Duration;

/// Width of the fact names.
const LABEL: u16 = 14;

/// Whether an action has an effect on this run.
pub fn offers(model: &Model, action: Action) -> bool {
    let Some(view) = &model.run.view else { return action == Action::Back };
    // A server run's folder isn't on this machine.
    let local = model.server.is_none();
    let changed = view.history.iter().any(|it| it.commit.is_some() || it.files > 0);
    match action {
        Action::OpenPr => view.pr.is_some(),
        Action::PublishPr => local && changed && view.pr.is_none(),
        Action::ApplyResult | Action::TakeBranch | Action::Restore => local && changed,
        Action::Diff => changed,
        Action::Archive => local && model.repo.tasks.iter().any(|task| task == "ralph/tasks.json"),
        Action::NewThread => local,
        _ => true,
    }
}

/// What Enter does.
fn primary(model: &Model) -> Action {
    let proven = model.run.view.as_ref().is_some_and(|view| {
        view.proof
            .as_ref()
            .is_some_and(|proof| proof.passed && proof.level.is_some_and(ProofLevel::is_proven))
    });
    let ways = [(proven, Action::ApplyResult), (true, Action::Diff), (true, Action::ShowRun)];
    ways.into_iter()
        .find(|(is, action)| *is && offers(model, *action))
        .map_or(Action::ShowRun, |(_, way)| way)
}

/// Whether the run worked in the user's own folder, which has the changes then.
fn in_place(view: &RunView) -> bool {
    view.workspace == view.origin
}

/// What an action does with this run's result.
fn label(view: &RunView, binding: &keys::Binding) -> &'static str {
    match binding.action {
        Action::ApplyResult if in_place(view) => "commit it on the current branch",
        _ => binding.label,
    }
}

fn command(words: &[&str], done: &str) -> Effect {
    Effect::Command { words: words.iter().map(|word| (*word).to_owned()).collect(), done: done.to_owned() }
}

/// Puts the result on a separate branch.
pub fn take_branch(run: &str, name: String) -> Vec<Effect> {
    vec![command(&["apply", run, "--branch", &name], &format!("the result is on the branch {name}"))]
}

/// Opens a pull request with the result.
pub fn publish(run: &str, title: String) -> Vec<Effect> {
    vec![command(&["publish", run, "--title", &title], "the pull request is open")]
}

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(view) = &model.run.view else { return Vec::new() };
    let (run, title, own) = (model.run.id.clone(), one_line(&view.title, 200), in_place(view));
    let action = if action == Action::Enter { primary(model) } else { action };
    if !offers(model, action) {
        model.notice = Some(Notice::Done("not possible with this run".into()));
        return Vec::new();
    }
    let ask =
        |title, hint, text: &str, purpose| Overlay::Ask { title, hint, input: Editor::with(text), purpose };
    let confirm = |question: &str, line: &str, effect: Effect| Overlay::Confirm {
        question: question.to_owned(),
        lines: vec![line.to_owned()],
        yes: vec![effect],
        leave: false,
    };
    match action {
        Action::Diff => return vec![Effect::ShowDiff(run)],
        Action::ApplyResult if own => {
            let apply = command(&["apply", &run, "--squash"], "the result is one commit on your branch");
            let line = "One commit with this run's changes and nothing else.";
            model.overlay = Some(confirm("Commit the result?", line, apply));
        }
        Action::ApplyResult => {
            let apply = command(&["apply", &run], "the changes are in your checkout, not committed");
            let line = "As uncommitted changes. If one of your edits conflicts, nothing is changed.";
            model.overlay = Some(confirm("Apply the result to your checkout?", line, apply));
        }
        Action::TakeBranch => {
            let name = super::start::branch_name(&title);
            model.overlay =
                Some(ask("branch", "a new branch with this run's commits", &name, Purpose::Branch));
        }
        Action::PublishPr => {
            let hint = "its title; the evidence is in its text";
            model.overlay = Some(ask("pull request", hint, &title, Purpose::PullRequest));
        }
        Action::OpenPr => return vec![command(&["open", &run], "opened")],
        Action::Restore => {
            let restore = command(&["restore", &run, "--yes"], "the files are as they were before the run");
            let line =
                "The current files are saved under refs/ralph first; HEAD, branches and the index stay.";
            model.overlay = Some(confirm("Restore the files from before this run?", line, restore));
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
    let row = canvas.text(rows(area, 0, 3), 0, role, &head);
    let row = take(model, view, canvas, area, row) + 1;
    let body = without(area, row, 0);
    let (left, right) =
        if area.width >= 100 { beside(body, area.width / 2) } else { (body, Rect::default()) };
    let used = facts(model, view, canvas, left);
    let files = if right.width > 0 { right } else { without(left, used + 1, 0) };
    if right.width > 0 {
        canvas.bar_down(right.x.saturating_sub(1), right);
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

/// The ways to take the result: Enter does the first one.
fn take(model: &Model, view: &RunView, canvas: &mut Canvas<'_>, area: Rect, row: u16) -> u16 {
    let first = primary(model);
    let mut ways = vec![first];
    let others = [Action::ApplyResult, Action::TakeBranch, Action::PublishPr, Action::OpenPr];
    ways.extend(others.into_iter().filter(|way| *way != first && offers(model, *way)));
    let mut row = row;
    for (n, way) in ways.into_iter().enumerate() {
        let Some(binding) = keys::bindings(Screen::Summary).find(|one| one.action == way) else { continue };
        let key = binding.keys.first().map(|key| keys::name(*key)).unwrap_or_default();
        let (mark, key) = if n == 0 { (canvas.theme.sign(Sign::Arrow), "Enter".into()) } else { ("", key) };
        let role = if n == 0 { Role::Strong } else { Role::Text };
        let spans = [(Role::Accent, pad(mark, 3) + &pad(&key, 7)), (role, label(view, binding).to_owned())];
        canvas.line(area, row, &spans);
        canvas.hit(area, row, way);
        row += 1;
    }
    row
}

fn proof(view: &RunView) -> (Role, String) {
    match &view.proof {
        Some(proof) if proof.over && proof.passed => {
            let proven = proof.level.is_some_and(ProofLevel::is_proven);
            let shown = proof.difference.first().or(proof.level_reason.as_ref());
            let shown = shown.map_or_else(String::new, |line| format!(" · {line}"));
            (if proven { Role::Good } else { Role::Attention }, format!("{}{shown}", proof.headline))
        }
        Some(proof) if proof.over => (Role::Bad, "final check failed".into()),
        Some(_) => (Role::Accent, "final check running".into()),
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
