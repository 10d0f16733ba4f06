//! A run as text: status, criteria, agents, budgets, latest iterations, paths.

use crate::output::{Out, Sign};
use crate::text::table::{Cell, Table, columns, fit, flow, width, wrap};
use crate::text::words::{
    ago, bar, budget_tone, card, cost, heading, home_path, left, row, short_count, tests,
};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::now;
use ralph_loop_domain::proof::ProofLevel;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::{clock, count, duration};
use ralph_loop_protocol::display::view::{CheckView, SetupView};
use ralph_loop_protocol::event::CheckResult;
use ralph_loop_task::budget::BudgetKind;
use std::path::Path;

/// Harness changes shown.
const HARNESS: usize = 5;
/// Lines shown of a failing check.
const EVIDENCE: usize = 5;
/// Iterations shown.
const CARDS: usize = 5;

pub fn print(facts: &RunSnapshot, out: &Out) {
    run_line(facts, out);
    now_line(facts, true, out);
    criteria(facts, out);
    agents(facts, out);
    budgets(facts, out);
    iterations(facts, out);
    places(facts, out);
}

/// Symbol, status, title and id; below it progress, cost, time.
pub fn run_line(facts: &RunSnapshot, out: &Out) {
    let state = &facts.state;
    let (sign, word) = status_words(facts, out);
    let id = facts.entry.run_id.as_str();
    let head = width(&word) + 4;
    let room = columns().saturating_sub(head + width(id) + 2).max(10);
    let title = fit(&state.spec.task.title, room);
    let space = " ".repeat(room.saturating_sub(width(&title)));
    out.line(format!("{sign} {word}  {title}{space}  {}", out.out(Tone::Muted, id)));
    let budgets = &state.spec.settings.budgets;
    let score = facts.loop_score();
    let parts = [
        format!("iteration {}/{}", facts.iteration(), budgets.max_iterations),
        format!("loop {} {score:.1}", bar(out, score, 5)),
        cost(state),
        facts.view().best.map_or_else(String::new, |best| format!("best {}", best.words())),
        format!("worked {} of {}", clock(state.spent().time), clock(budgets.max_wall_time)),
        format!("active {}", ago(facts.last_activity(), facts.now)),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    for (n, line) in flow(&parts, columns(), 2).into_iter().enumerate() {
        out.line(if n == 0 { format!("  {line}") } else { line });
    }
}

/// The status with its symbol, and whether the run is stopped.
pub fn status_words(facts: &RunSnapshot, out: &Out) -> (String, String) {
    let status = facts.status().as_str();
    (out.status_sign(status), status.to_owned())
}

/// The status sentence and, with `with_next`, what the user can do.
pub fn now_line(facts: &RunSnapshot, with_next: bool, out: &Out) {
    let (tone, sentence) = now::line(facts);
    let parts: Vec<String> = sentence.split(" · ").map(str::to_owned).collect();
    for (n, line) in flow(&parts, columns(), 2).into_iter().enumerate() {
        let line = if n == 0 { format!("  {line}") } else { line };
        out.line(if tone == Tone::Plain { line } else { out.out(tone, &line) });
    }
    let needs = facts.view().needs.filter(|_| with_next);
    for line in needs.iter().flat_map(|needs| &needs.details) {
        quoted(line, out);
    }
    if let Some(next) = now::next(facts).filter(|_| with_next) {
        for (n, line) in wrap(&next, columns().saturating_sub(6)).into_iter().enumerate() {
            out.line(if n == 0 {
                format!("{} {line}", out.out(Tone::Plain, "next:"))
            } else {
                format!("      {line}")
            });
        }
    }
}

fn criteria(facts: &RunSnapshot, out: &Out) {
    let state = &facts.state;
    heading(out, "Criteria");
    let mut table = Table::new(2).indent(2);
    // Lines below each row: output of a failing check.
    let mut below: Vec<Vec<String>> = Vec::new();
    if let Some(setup) = &facts.view().setup_failed {
        let words = setup_words(facts, setup);
        table.row([Cell::toned(Tone::Bad, out.sign(Sign::Bad)), "setup".into(), words.into()]);
        below.push(setup.last_lines[setup.last_lines.len().saturating_sub(EVIDENCE)..].to_vec());
    }
    for check in &facts.view().checks {
        let (sign, tone, words) = check_standing(facts, check);
        let name = format!("{}{}", check.name, if check.required { " (required)" } else { "" });
        table.row([Cell::toned(tone, out.sign(sign)), name.into(), words.into()]);
        let said = failing_result(check).map(|result| facts.evidence(result, EVIDENCE));
        below.push(said.unwrap_or_default());
    }
    if state.unclaimed_iterations() > 0 && state.result.proof.is_none() {
        let promise = &state.spec.settings.completion_promise;
        let words = format!(
            "the checks pass; no session has printed `<promise>{promise}</promise>` on its own line yet"
        );
        table.row([Cell::toned(Tone::Attention, out.sign(Sign::Open)), "done".into(), words.into()]);
        below.push(Vec::new());
    }
    if let Some(proof) = &state.result.proof {
        let place = if proof.clean { "in a clean checkout" } else { "in place" };
        let (sign, tone, words) = match (&proof.proof, proof.passed) {
            (None, _) => (Sign::Now, Tone::Muted, format!("checking {} {place}", proof.commit.short())),
            (Some(_), true) => {
                let proven = proof.level.is_some_and(ProofLevel::is_proven);
                let tone = if proven { Tone::Good } else { Tone::Attention };
                let (commit, watched) = (proof.commit.short(), proof.watched.words());
                (Sign::Good, tone, format!("{} at {commit} {place}, {watched}", proof.headline()))
            }
            (Some(_), false) => (Sign::Bad, Tone::Bad, format!("not proven: {}", proof.failed.join("; "))),
        };
        table.row([Cell::toned(tone, out.sign(sign)), "final check".into(), words.into()]);
        for line in proof.difference.iter().chain(&proof.level_reason).take(3) {
            table.row([Cell::from(""), "".into(), line.as_str().into()]);
            below.push(Vec::new());
        }
        for line in proof.harness.iter().take(HARNESS) {
            table.row([
                Cell::toned(Tone::Attention, out.sign(Sign::Open)),
                "changed".into(),
                line.as_str().into(),
            ]);
        }
    }
    if state.result.proof.is_none()
        && let Some((tree, failed)) = &state.result.disproved
        && state.work.tree.as_ref() == Some(tree)
    {
        let words = format!("not proven: {}", failed.join("; "));
        table.row([Cell::toned(Tone::Bad, out.sign(Sign::Bad)), "final check".into(), words.into()]);
    }
    for (n, lines) in table.wrapped(columns(), out).iter().enumerate() {
        lines.iter().for_each(|line| out.line(line));
        for said in below.get(n).into_iter().flatten() {
            quoted(said, out);
        }
    }
}

/// A setup that failed before the first session, and its log.
pub fn setup_words(facts: &RunSnapshot, setup: &SetupView) -> String {
    let log = setup.log.as_ref().map(|log| facts.entry.run_dir().path().join(log));
    let log = log.map(|path| format!("; log: {}", home_path(&path))).unwrap_or_default();
    format!("`{}` failed on the original files, so no check could run there{log}", setup.command)
}

/// The failed setup with its output, under a heading.
pub fn setup(facts: &RunSnapshot, out: &Out) {
    let Some(setup) = facts.view().setup_failed else { return };
    heading(out, "Setup");
    for line in wrap(&setup_words(facts, &setup), columns().saturating_sub(4)) {
        out.line(format!("  {line}"));
    }
    let from = setup.last_lines.len().saturating_sub(EVIDENCE);
    setup.last_lines[from..].iter().for_each(|line| quoted(line, out));
}

/// A line of check output.
pub fn quoted(line: &str, out: &Out) {
    let line = fit(&sanitize::line(line), columns().saturating_sub(6));
    out.line(format!("      {}", out.out(Tone::Muted, &line)));
}

/// A failing check's result: from the final check, or the latest.
pub fn failing_result(check: &CheckView) -> Option<&CheckResult> {
    let refused = check.refused.as_ref().and_then(|refused| refused.result.as_ref());
    refused.or(check.last.as_ref()).filter(|result| !result.passed)
}

/// A check's status: one the final check rejected isn't passed, whatever its workspace result.
pub fn check_standing(facts: &RunSnapshot, check: &CheckView) -> (Sign, Tone, String) {
    let refused = check.refused.as_ref();
    match (refused.map(|refused| &refused.result), &check.last) {
        (Some(Some(result)), _) => {
            let words = format!("in the final check {}", check_words(facts, result));
            (Sign::Bad, Tone::Bad, words)
        }
        (Some(None), Some(last)) if last.passed => {
            let words = format!("{}; the final check did not accept it", check_words(facts, last));
            (Sign::Open, Tone::Attention, words)
        }
        (_, None) => (Sign::Open, Tone::Muted, "not run yet".to_owned()),
        (_, Some(last)) if last.passed => (Sign::Good, Tone::Good, check_words(facts, last)),
        (_, Some(last)) => (Sign::Bad, Tone::Bad, check_words(facts, last)),
    }
}

/// `passed 6 s ago, 44 tests pass, current tree`; the age comes early, so that it isn't cut.
pub fn check_words(facts: &RunSnapshot, result: &CheckResult) -> String {
    let when = facts.written_at(Path::new(&result.log)).map(|at| format!(" {}", ago(at, facts.now)));
    let mut first =
        format!("{}{}", if result.passed { "passed" } else { "failed" }, when.unwrap_or_default());
    if let Some(why) = result.why.as_deref().filter(|_| !result.passed) {
        first.push_str(&format!(": {why}"));
    }
    let mut words = vec![first];
    words.extend(result.tests.map(|t| tests(t, None)));
    words.push(if facts.is_current(result) { "current tree" } else { "older tree" }.to_owned());
    words.join(", ")
}

fn agents(facts: &RunSnapshot, out: &Out) {
    let state = &facts.state;
    heading(out, "Agents");
    let mut table = Table::new(2).indent(2);
    for agent in &state.spec.settings.agents {
        let name = &agent.name;
        let works =
            facts.driver.is_some() && state.iterations.current.as_ref().is_some_and(|c| c.agent == *name);
        let rest = state.agents.cooldowns.get(name).filter(|c| c.until > facts.now);
        let (sign, tone, mut words) = if let Some(reason) = state.agents.dropped.get(name) {
            (Sign::Bad, Tone::Bad, format!("takes no further part: {reason}"))
        } else if let Some(rest) = rest {
            let words = format!("in cooldown, free in {}: {}", left(rest.until, facts.now), rest.reason);
            (Sign::Wait, Tone::Attention, words)
        } else if works {
            (Sign::Now, Tone::Plain, "at work".to_owned())
        } else {
            (Sign::Open, Tone::Muted, "free".to_owned())
        };
        if let Some(used) = state.agents.by_agent.get(name) {
            words.push_str(&format!(" · {}", count(used.sessions as usize, "session")));
            words.push_str(&format!(" · {}", used.cost.alone()));
        }
        table.row([Cell::toned(tone, out.sign(sign)), name.as_str().into(), words.into()]);
    }
    table.wrapped(columns(), out).iter().flatten().for_each(|l| out.line(l));
}

fn budgets(facts: &RunSnapshot, out: &Out) {
    let (state, spent) = (&facts.state, facts.state.spent());
    let budgets = &state.spec.settings.budgets;
    heading(out, "Budgets");
    let mut table = Table::new(2).indent(2);
    for (kind, share) in budgets.shares(spent) {
        let words = match kind {
            BudgetKind::Iterations => format!("{} of {}", spent.iterations, budgets.max_iterations),
            BudgetKind::Time => format!("{} of {}", duration(spent.time), duration(budgets.max_wall_time)),
            BudgetKind::Cost => cost(state),
            BudgetKind::Tokens => {
                format!(
                    "{} of {}",
                    short_count(spent.tokens),
                    short_count(budgets.max_tokens.unwrap_or_default())
                )
            }
        };
        let shown = format!("{} {:>3.0} %", bar(out, share, 10), share * 100.0);
        let shown = budget_tone(share)
            .map_or_else(|| Cell::new(shown.clone()), |tone| Cell::toned(tone, shown.clone()));
        table.row([kind.as_str().into(), shown, words.into()]);
    }
    if budgets.max_tokens.is_none() && spent.tokens > 0 {
        table.row([
            "tokens".into(),
            Cell::default(),
            format!("{}, no cap", short_count(spent.tokens)).into(),
        ]);
    }
    table.lines(columns(), out).iter().for_each(|l| out.line(l));
    if let Some(deadline) = budgets.deadline {
        out.line(format!("  ends in {}", left(deadline, facts.now)));
    }
}

fn iterations(facts: &RunSnapshot, out: &Out) {
    let history = &facts.state.iterations.history;
    if history.is_empty() {
        return;
    }
    heading(out, "Last iterations");
    for at in (history.len().saturating_sub(CARDS)..history.len()).rev() {
        let before = at.checked_sub(1).and_then(|b| history.get(b));
        card(out, &facts.state, &history[at], before);
    }
}

/// Locations of branch, evidence and logs.
pub fn places(facts: &RunSnapshot, out: &Out) {
    let (state, dir) = (&facts.state, facts.entry.run_dir());
    heading(out, "Where");
    let gone = facts.is_cleaned_up();
    if let Some(branch) = facts.branch().filter(|branch| !gone || !branch.starts_with("refs/")) {
        // An internal ref can't be checked out.
        let name = if branch.starts_with("refs/") { "commits" } else { "branch" };
        row(out, name, &branch);
    }
    if let Some(pr) = &state.handover.pr {
        let how = if pr.draft { " (draft)" } else { "" };
        row(out, "pull request", &format!("{}{how}", pr.url));
    }
    if gone {
        row(out, "cleaned up", "commits and raw logs of this run are removed; its record stays");
    }
    if !gone || state.spec.home().is_dir() {
        row(out, "folder", &home_path(state.spec.home()));
    }
    for sandbox in &state.spending.compute.sandboxes {
        let rests = if sandbox.rests { ", stopped" } else { "" };
        row(out, "sandbox", &format!("{} of {}{rests}", sandbox.id, sandbox.provider));
    }
    if dir.proof().is_file() {
        row(out, "evidence", &home_path(&dir.proof()));
    }
    row(out, "logs", &format!("`ralph logs {}`; files in {}", facts.entry.run_id, home_path(dir.path())));
}
