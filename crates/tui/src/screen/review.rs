//! Review round: every other agent reads the draft. Findings form a checklist that can be applied one by one
//! and undone.

use super::{finalize, problem, studio};
use crate::data::{Problem, Screen};
use crate::findings::{Finding, Severity, read};
use crate::keys::Action;
use crate::model::{Model, Notice, Reviewer};
use crate::msg::Effect;
use crate::widget::draw::{Canvas, beside, list_top, without};
use crate::widget::text::{pad, wrap};
use crate::widget::theme::{Role, Sign};
use ralph_loop_app::read::phrases::since;
use ralph_loop_protocol::display::look::agent_color;
use ralph_loop_protocol::display::text::{clock, count};
use ratatui::layout::Rect;

/// Starts a round with all agents except the author; with the author if it is the only one.
pub fn begin(model: &mut Model) -> Vec<Effect> {
    if model.studio.draft.is_empty() {
        model.notice = Some(Notice::Done("no draft to review yet".into()));
        return Vec::new();
    }
    let talked = model.studio.asked().map(str::to_owned);
    let mut agents: Vec<String> =
        model.studio.agents.iter().filter(|name| Some(*name) != talked.as_ref()).cloned().collect();
    if agents.is_empty() {
        agents.extend(talked);
        model.notice = Some(Notice::Done("this agent reviews its own draft: no other agent is here".into()));
    }
    if agents.is_empty() {
        let wrong = Problem::new(
            "there is no agent that could review the draft",
            "install one (`ralph doctor` shows how), or skip the review with Ctrl-F",
        );
        model.notice = Some(Notice::Wrong(wrong));
        return Vec::new();
    }
    model.review.round += 1;
    model.review.since = model.now;
    model.review.findings.retain(|finding| finding.applied);
    model.review.at = 0;
    model.review.reviewers = agents.iter().map(|name| (name.clone(), Reviewer::Reading)).collect();
    model.go(Screen::Review);
    vec![Effect::Review { agents, draft: model.studio.draft.text().to_owned() }]
}

/// Handles a reviewer's answer.
pub fn reviewed(model: &mut Model, by: &str, answer: Result<String, Problem>) {
    let review = &mut model.review;
    let stands = match answer {
        Ok(text) => {
            let found = read(by, &text);
            let number = found.len();
            for finding in found {
                if !review.findings.iter().any(|old| old.text == finding.text) {
                    review.findings.push(finding);
                }
            }
            review.findings.sort_by_key(|finding| (finding.applied, finding.severity));
            Reviewer::Found(number)
        }
        Err(wrong) => Reviewer::Failed(wrong),
    };
    if let Some((_, state)) = review.reviewers.iter_mut().find(|(name, _)| name == by) {
        *state = stands;
    }
}

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    let count = model.review.findings.len();
    match action {
        Action::Up => model.review.at = model.review.at.saturating_sub(1),
        Action::Down => model.review.at = (model.review.at + 1).min(count.saturating_sub(1)),
        Action::Row(at) => {
            model.review.at = at;
            apply(model, at);
        }
        Action::Enter => {
            let at = model.review.at;
            apply(model, at);
        }
        Action::ApplyAll => {
            for at in 0..count {
                if model.review.findings[at].severity != Severity::Nice {
                    apply(model, at);
                }
            }
        }
        Action::Undo => undo(model),
        Action::ReviewRound => return begin(model),
        Action::Finalize => return finalize::open(model),
        _ => {}
    }
    Vec::new()
}

fn apply(model: &mut Model, at: usize) {
    let Some(finding) = model.review.findings.get_mut(at).filter(|finding| !finding.applied) else { return };
    finding.applied = true;
    let draft = model.studio.draft.with_line(&finding.section, &finding.line);
    model.studio.change(draft);
}

fn undo(model: &mut Model) {
    let Some(draft) = model.studio.undo.pop() else {
        model.notice = Some(Notice::Done("nothing to undo".into()));
        return;
    };
    model.studio.draft = draft;
    let text = model.studio.draft.text();
    for finding in &mut model.review.findings {
        finding.applied &= text.contains(finding.line.as_str());
    }
}

pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let review = &model.review;
    let wide = area.width >= 110;
    let (area, right) = if wide { beside(area, area.width * 3 / 5) } else { (area, Rect::default()) };
    if wide {
        canvas.bar_down(right.x.saturating_sub(1), right);
        let right = Rect { x: right.x + 1, width: right.width.saturating_sub(1), ..right };
        studio::draft_text(&model.studio.draft, canvas, right, 0);
    }
    let title = model.studio.draft.title().unwrap_or("the draft");
    canvas.line(area, 0, &[(Role::Strong, format!("Round {}: {title}", review.round))]);
    let mut row = 1;
    for (name, state) in &review.reviewers {
        let (role, words) = match state {
            Reviewer::Reading => {
                let time = clock(since(review.since, model.now));
                (Role::Accent, format!("{} reading for {time}", canvas.theme.sign(Sign::Half)))
            }
            Reviewer::Found(0) => (Role::Good, format!("{} no findings", canvas.theme.sign(Sign::Good))),
            Reviewer::Found(n) => {
                (Role::Text, format!("{} {}", canvas.theme.sign(Sign::Good), count(*n, "finding")))
            }
            Reviewer::Failed(wrong) => {
                (Role::Bad, format!("{} {}", canvas.theme.sign(Sign::Bad), wrong.what))
            }
        };
        canvas.line(area, row, &[(Role::Agent(agent_color(name)), pad(name, 12)), (role, words)]);
        row += 1;
        if let Reviewer::Failed(wrong) = state {
            row = problem(canvas, area, row, wrong);
        }
    }
    let reading = review.reviewers.iter().any(|(_, state)| *state == Reviewer::Reading);
    let list = without(area, row + 1, 0);
    if review.findings.is_empty() {
        let words = if reading {
            "Findings appear here as they come."
        } else {
            "Nothing was found. f checks the task and writes it."
        };
        canvas.text(list, 0, Role::Muted, words);
        return;
    }
    findings(model, canvas, list);
}

fn findings(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let review = &model.review;
    let cells = usize::from(area.width).saturating_sub(18);
    let top = list_top(review.at, area.height / 2, review.findings.len());
    let mut row = 0;
    for (at, finding) in review.findings.iter().enumerate().skip(top) {
        let (role, sign) = shown(finding);
        let mark = if at == review.at { canvas.theme.sign(Sign::Point) } else { " " };
        let head = format!("{mark} {} {}", canvas.theme.sign(sign), pad(finding.severity.word(), 13));
        for (n, piece) in wrap(&finding.text, cells).iter().enumerate() {
            let lead = if n == 0 { head.clone() } else { " ".repeat(18) };
            let text = if finding.applied { Role::Muted } else { Role::Text };
            canvas.line(area, row, &[(role, pad(&lead, 18)), (text, (*piece).to_owned())]);
            canvas.hit(area, row, Action::Row(at));
            row += 1;
        }
        if at == review.at {
            let to = format!("{} {}: {}", canvas.theme.sign(Sign::Arrow), finding.section, finding.line);
            canvas.line(
                area,
                row,
                &[(Role::Muted, " ".repeat(18)), (Role::Muted, format!("{to} ({})", finding.by))],
            );
            row += 1;
        }
        if row >= area.height {
            break;
        }
    }
}

fn shown(finding: &Finding) -> (Role, Sign) {
    match (finding.applied, finding.severity) {
        (true, _) => (Role::Muted, Sign::Good),
        (false, Severity::Blocker) => (Role::Bad, Sign::Bad),
        (false, Severity::Warn) => (Role::Attention, Sign::Now),
        (false, Severity::Nice) => (Role::Muted, Sign::Open),
    }
}
