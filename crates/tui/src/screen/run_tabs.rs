//! The tabs of a run, and the column next to them.

use super::details;
use super::run::{age, agent_tag, tone_lines};
use crate::keys::Action;
use crate::model::Model;
use crate::widget::draw::{Canvas, Span, list_top, share_role};
use crate::widget::text::{pad, width, wrap};
use crate::widget::theme::{Role, Sign, of_tone};
use ralph_loop_protocol::display::text::{clock, count, duration, one_line};
use ralph_loop_protocol::display::view::{AgentStanding, IterationView, RunView};
use ralph_loop_protocol::event::{CheckResult, SessionEnd, Verdict};
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::budget::BudgetKind;
use ratatui::layout::Rect;
use std::time::Duration;

/// Width of the time column.
const TIME: usize = 10;

/// Shows the tab.
pub fn view(model: &Model, view: &RunView, canvas: &mut Canvas<'_>, area: Rect) {
    match (model.run.tab, &model.run.opened) {
        (0, Some(opened)) => details::view(model, view, opened, canvas, area),
        (0, None) => timeline(model, view, canvas, area),
        (1, _) => details::transcript(model, &model.run.output, canvas, area),
        (2, _) => {
            let all = checks(view, canvas);
            let top = model.run.top.min(all.len().saturating_sub(1));
            for (row, spans) in (0..area.height).zip(all.iter().skip(top)) {
                canvas.line(area, row, spans);
            }
        }
        (tab, _) => match model.run.tabs.get(&tab) {
            None => canvas.line(area, 0, &[(Role::Muted, "reading …".into())]),
            Some(found) => tone_lines(canvas, area, found, model.run.top, &model.run.search),
        },
    }
}

/// The latest iterations as cards, then events, newest first. The chosen one is visible.
fn timeline(model: &Model, view: &RunView, canvas: &mut Canvas<'_>, area: Rect) {
    let rows = model.run.rows();
    let mut all: Vec<(usize, Vec<Span>)> = Vec::new();
    for (item, iteration) in rows.iter().enumerate() {
        let number = *iteration;
        match view.history.iter().position(|it| Some(it.iteration) == number) {
            None => all.extend(view.current.as_ref().map(|current| {
                let since = ralph_loop_app::read::phrases::since(current.started_at, model.now);
                let model_name = current.model.as_deref().map(|name| format!("  {name}")).unwrap_or_default();
                let (sign, role) = canvas.theme.look(view.status.as_str());
                let spans = vec![
                    (Role::Strong, format!("{:>3}  ", current.iteration)),
                    agent_tag(current.agent.as_str(), 9),
                    (role, format!("{sign} {}  {}", view.status, clock(since))),
                    (Role::Muted, model_name),
                ];
                (item, spans)
            })),
            Some(at) => {
                let it = &view.history[at];
                let before = at.checked_sub(1).and_then(|at| view.history[at].tests);
                let mut card = card(it, before.map(|tests| tests.failed), canvas);
                if model.run.marked == number {
                    card.push((Role::Accent, "  marked: = compares".into()));
                }
                all.push((item, card));
                let message = one_line(&it.message, 600);
                if !message.is_empty() {
                    let cells = usize::from(area.width).saturating_sub(6);
                    let pieces = wrap(&message, cells);
                    let lines = pieces.iter().take(2);
                    all.extend(lines.map(|piece| (item, vec![(Role::Text, format!("     {piece}"))])));
                }
            }
        }
    }
    if !all.is_empty() {
        all.push((usize::MAX, Vec::new()));
    }
    // Only visible events become lines.
    let room = usize::from(area.height) + 6 * (model.run.top + 1);
    let cells = usize::from(area.width).saturating_sub(TIME);
    for (at, happened) in model.run.happened.iter().rev().enumerate() {
        let item = rows.len() + at;
        let time = happened.at.to_zoned(model.zone.clone()).strftime("%H:%M:%S").to_string();
        for (n, piece) in wrap(&happened.line.text, cells).iter().take(4).enumerate() {
            let lead = if n == 0 { pad(&time, TIME) } else { " ".repeat(TIME) };
            all.push((item, vec![(Role::Muted, lead), (of_tone(happened.line.tone), (*piece).to_owned())]));
        }
        let details = happened.details.iter().flat_map(|line| wrap(line, cells).into_iter().take(2));
        all.extend(details.map(|line| (item, vec![(Role::Muted, format!("{}{line}", " ".repeat(TIME)))])));
        if all.len() > room {
            break;
        }
    }
    let first = all.iter().position(|(item, _)| *item == model.run.top).unwrap_or(0);
    let top = list_top(first, area.height, all.len());
    let list = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
    for (row, (at, (item, spans))) in (0..area.height).zip(all.iter().enumerate().skip(top)) {
        canvas.line(list, row, spans);
        if at == first {
            canvas.line(area, row, &[(Role::Accent, canvas.theme.sign(Sign::Point).into())]);
        }
        if *item < rows.len() {
            canvas.hit(area, row, Action::Row(*item));
        }
    }
}

/// An iteration in one line.
pub fn card(it: &IterationView, failed_before: Option<u64>, canvas: &Canvas<'_>) -> Vec<Span> {
    let (sign, role) = match it.verdict {
        Verdict::Candidate => (Sign::Good, Role::Good),
        Verdict::NotPromised => (Sign::Half, Role::Text),
        _ => (Sign::Bad, Role::Bad),
    };
    let words = match (it.verdict, it.tests) {
        (Verdict::SessionFailed, _) if it.end != SessionEnd::Completed => it.end.word().to_owned(),
        (_, Some(tests)) if tests.failed > 0 => match failed_before {
            Some(before) => format!("{} failing (was {before})", tests.failed),
            None => format!("{} failing", tests.failed),
        },
        (verdict, _) => verdict.words().to_owned(),
    };
    let took = clock(Duration::from_millis(it.duration_ms));
    vec![
        (Role::Strong, format!("{:>3}  ", it.iteration)),
        agent_tag(it.agent.as_str(), 9),
        (role, format!("{} {words}", canvas.theme.sign(sign))),
        (
            Role::Muted,
            format!(
                "  +{} −{}  {}  {}  {took}",
                it.added,
                it.removed,
                count(it.files, "file"),
                it.cost.alone()
            ),
        ),
    ]
}

fn checks(view: &RunView, canvas: &Canvas<'_>) -> Vec<Vec<Span>> {
    let mut all = Vec::new();
    if let Some(setup) = &view.setup_failed {
        all.push(vec![(
            Role::Bad,
            format!("{} setup failed: {}", canvas.theme.sign(Sign::Bad), one_line(&setup.command, 200)),
        )]);
        all.extend(
            setup.last_lines.iter().map(|line| vec![(Role::Text, format!("    {}", one_line(line, 300)))]),
        );
    }
    for check in &view.checks {
        let (sign, role) = mark(check.last.as_ref());
        let mut spans = vec![
            (role, format!("{} {}", canvas.theme.sign(sign), pad(&one_line(&check.name, 40), 18))),
            (Role::Muted, one_line(&check.command, 200)),
        ];
        if !check.required {
            spans.push((Role::Muted, "  (not required)".into()));
        }
        all.push(spans);
        if let Some(last) = &check.last {
            let tests =
                last.tests.map(|tests| format!("{} passing, {} failing  ", tests.passed, tests.failed));
            let why = last.why.as_deref().map(|why| format!("{}  ", one_line(why, 200))).unwrap_or_default();
            let took = duration(Duration::from_millis(last.duration_ms));
            let tree = if check.current_tree { "" } else { "  from an earlier iteration" };
            all.push(vec![
                (Role::Text, format!("    {}{why}", tests.unwrap_or_default())),
                (Role::Muted, format!("took {took}{tree}")),
            ]);
            if !last.passed {
                let said = last.evidence(12);
                all.extend(
                    said.iter().map(|line| vec![(Role::Text, format!("    {}", one_line(line, 300)))]),
                );
            }
        }
        for reason in check.refused.iter().flat_map(|refused| &refused.reasons) {
            all.push(vec![(Role::Attention, format!("    final check: {}", one_line(reason, 300)))]);
        }
    }
    if all.is_empty() {
        all.push(vec![(Role::Muted, "no check is configured".into())]);
    }
    all
}

fn mark(last: Option<&CheckResult>) -> (Sign, Role) {
    match last {
        Some(result) if result.passed => (Sign::Good, Role::Good),
        Some(_) => (Sign::Bad, Role::Bad),
        None => (Sign::Open, Role::Muted),
    }
}

/// The side column: criteria, progress, budgets, agents.
pub fn side(model: &Model, view: &RunView, canvas: &mut Canvas<'_>, area: Rect) {
    let mut row = 0;
    let title = if view.criteria.is_empty() { "Checks" } else { "Criteria" };
    canvas.line(area, row, &[(Role::Strong, title.into())]);
    row += 1;
    let most = area.height.saturating_sub(14).max(3);
    let criteria: Vec<(Sign, Role, String)> = match view.criteria.as_slice() {
        [] => view
            .checks
            .iter()
            .map(|check| {
                let (sign, role) = mark(check.last.as_ref());
                (sign, role, one_line(&check.name, 200))
            })
            .collect(),
        criteria => criteria
            .iter()
            .map(|one| {
                let (sign, role) = match (one.met, one.claimed) {
                    (true, _) => (Sign::Good, Role::Good),
                    (false, true) => (Sign::Half, Role::Attention),
                    (false, false) if one.last.is_some() => (Sign::Bad, Role::Bad),
                    _ => (Sign::Open, Role::Muted),
                };
                (sign, role, format!("{} {}", one.id, one_line(&one.text, 200)))
            })
            .collect(),
    };
    for (sign, role, text) in criteria.iter().take(usize::from(most)) {
        let sign = canvas.theme.sign(*sign);
        canvas.line(area, row, &[(*role, format!(" {sign} ")), (Role::Text, text.clone())]);
        row += 1;
    }
    if criteria.len() > usize::from(most) {
        canvas.line(
            area,
            row,
            &[(Role::Muted, format!("   and {} more", criteria.len() - usize::from(most)))],
        );
        row += 1;
    }
    row = sparks(view, canvas, area, row + 1);
    row = budgets(model, view, canvas, area, row + 1);
    canvas.line(area, row + 1, &[(Role::Strong, "Agents".into())]);
    for (row, agent) in (row + 2..area.height).zip(&view.agents) {
        let (role, words) = match agent.standing {
            AgentStanding::Working => (Role::Accent, "working".to_owned()),
            AgentStanding::Free => (Role::Muted, "idle".to_owned()),
            AgentStanding::Resting => {
                let until = agent
                    .until
                    .map(|until| ralph_loop_app::read::phrases::left(until, model.now, &model.zone));
                (Role::Attention, format!("rate limited {}", until.unwrap_or_default()))
            }
            AgentStanding::Dropped => {
                (Role::Bad, format!("disabled: {}", one_line(agent.reason.as_deref().unwrap_or(""), 120)))
            }
        };
        let used = match agent.sessions {
            0 => String::new(),
            n => format!(" {n}× {}", agent.cost.alone()),
        };
        let tag = agent_tag(agent.name.as_str(), 10);
        let line = Rect { width: area.width.saturating_sub(width(&used) as u16), ..area };
        canvas.line(line, row, &[(Role::Text, " ".into()), tag, (role, words)]);
        canvas.right(area, row, &[(Role::Muted, used)]);
    }
    let seen = format!("last event {}", age(model, view.last_event_at));
    if width(&seen) < usize::from(area.width) {
        canvas.right(area, 0, &[(Role::Muted, seen)]);
    }
}

/// Progress in one line, if there is no side column.
pub fn closer(view: &RunView, canvas: &mut Canvas<'_>, area: Rect, row: u16) {
    let (met, all, what) = match view.criteria.as_slice() {
        [] => {
            let passed = |check: &&ralph_loop_protocol::display::view::CheckView| {
                check.last.as_ref().is_some_and(|last| last.passed)
            };
            (view.checks.iter().filter(passed).count(), view.checks.len(), "check")
        }
        criteria => (criteria.iter().filter(|one| one.met).count(), criteria.len(), "criterion"),
    };
    let (sign, role) =
        if met == all && all > 0 { (Sign::Good, Role::Good) } else { (Sign::Open, Role::Text) };
    let many = if what == "check" { "checks pass" } else { "criteria met" };
    let mut spans = vec![(role, format!("{} {met} of {all} {many}", canvas.theme.sign(sign)))];
    let tests: Vec<f64> =
        view.history.iter().filter_map(|it| it.tests).map(|tests| tests.passed as f64).collect();
    if let Some(last) = view.history.iter().rev().find_map(|it| it.tests) {
        spans.push((Role::Muted, "   tests ".into()));
        spans.push((Role::Good, canvas.spark(&tests, 8)));
        spans.push((Role::Muted, format!(" {} of {}", last.passed, last.passed + last.failed)));
    }
    if let Some(best) = &view.best {
        spans.push((Role::Text, format!("   best {}", one_line(&best.words(), 120))));
    }
    let scores: Vec<f64> = view.history.iter().map(|it| it.loop_score).collect();
    spans.push((Role::Muted, "   stuck score ".into()));
    spans.push((Role::Attention, canvas.spark(&scores, 8)));
    spans.push((Role::Muted, format!(" {:.1}", view.loop_score)));
    canvas.line(area, row, &spans);
}

fn sparks(view: &RunView, canvas: &mut Canvas<'_>, area: Rect, row: u16) -> u16 {
    let tests: Vec<f64> =
        view.history.iter().filter_map(|it| it.tests).map(|tests| tests.passed as f64).collect();
    let scores: Vec<f64> = view.history.iter().map(|it| it.loop_score).collect();
    let cells = usize::from(area.width / 2).saturating_sub(15).clamp(4, 24);
    let mut spans = Vec::new();
    if !tests.is_empty() {
        spans.push((Role::Muted, "tests passing ".into()));
        spans.push((Role::Good, format!("{}  ", canvas.spark(&tests, cells))));
    }
    spans.push((Role::Muted, "stuck score ".into()));
    spans.push((Role::Attention, canvas.spark(&scores, cells)));
    spans.push((Role::Muted, format!(" {:.2}", view.loop_score)));
    canvas.line(area, row, &spans);
    match &view.best {
        Some(best) => {
            canvas.text(area, row + 1, Role::Text, &format!("best {}", one_line(&best.words(), 200)))
        }
        None => row + 1,
    }
}

fn budgets(model: &Model, view: &RunView, canvas: &mut Canvas<'_>, area: Rect, mut row: u16) -> u16 {
    for budget in &view.budgets {
        let plain = |number: f64| number.to_string();
        let time = |s: f64| clock(Duration::try_from_secs_f64(s.max(0.0)).unwrap_or_default());
        let used = |words: &dyn Fn(f64) -> String| budget.used.map_or_else(|| "unknown".to_owned(), words);
        let (label, used, limit) = match budget.budget {
            BudgetKind::Iterations => ("iterations", used(&plain), plain(budget.limit)),
            BudgetKind::Cost => (
                "cost",
                view.cost_with(model.run.session_cost).to_string(),
                Usd::from_dollars(budget.limit).to_string(),
            ),
            BudgetKind::Time => ("time", time(view.worked_until(model.now)), time(budget.limit)),
            BudgetKind::Tokens => ("tokens", used(&plain), plain(budget.limit)),
        };
        let bar = canvas.steps(budget.share, if area.width >= 44 { 16 } else { 10 });
        canvas.line(
            area,
            row,
            &[
                (Role::Muted, pad(label, 11)),
                (share_role(budget.share), bar),
                (Role::Text, format!(" {used} of {limit}")),
            ],
        );
        row += 1;
    }
    row
}
