//! The parts of a prompt that change every session: changes, check results, status.

use super::files::PromptFiles;
use super::{CHECK_MAX, Place};
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::display::text::{count, duration, tail};
use ralph_loop_protocol::event::{BaselineChecks, Verdict};
use ralph_loop_task::config::{Expect, VerifierConfig};
use std::fmt::Write as _;
use std::time::Duration;

const FILES_MAX: usize = 40;

pub(super) fn changes(state: &RunState, place: &Place<'_>) -> String {
    let mut text = String::new();
    if let Some(baseline) = &state.baseline {
        let branch = state.spec.branch.as_deref().or(baseline.branch.as_deref()).unwrap_or("a detached HEAD");
        let _ = writeln!(text, "Branch {branch}, from commit {}.", baseline.head.short());
        if baseline.dirty_total > 0 {
            let _ = writeln!(
                text,
                "{} had the user's changes before the run; change them only if the task needs it.",
                count(baseline.dirty_total, "file")
            );
        }
    }
    if state.work.touched.is_empty() {
        text.push_str("No changes yet.\n");
    } else {
        let _ = writeln!(text, "Files changed ({}):", state.work.touched.len());
        for path in state.work.touched.iter().take(FILES_MAX) {
            let _ = writeln!(text, "- {path}");
        }
        if state.work.touched.len() > FILES_MAX {
            let _ = writeln!(text, "- … and {} more (`git status`)", state.work.touched.len() - FILES_MAX);
        }
    }
    if let Some(last) = state.iterations.history.back() {
        let _ = writeln!(
            text,
            "Last session ({}): {}, +{} −{}; {}. Diff: `{}`.",
            last.agent,
            count(last.files, "file"),
            last.added,
            last.removed,
            last.verdict.words(),
            place.path(&format!(".ralph/iterations/{}/git_diff.patch", last.iteration))
        );
        if !last.message.is_empty() {
            let _ = writeln!(text, "It said: {}", last.message);
        }
    }
    text
}

/// Notes from sessions in other roles.
pub(super) fn findings(state: &RunState) -> String {
    let mut text = String::new();
    for found in &state.stuck.findings {
        let _ = writeln!(
            text,
            "## {} (iteration {})\n\n{}\n",
            found.role.as_str(),
            found.iteration,
            found.text.trim()
        );
    }
    text
}

pub(super) fn checks(state: &RunState, files: &PromptFiles, place: &Place<'_>) -> String {
    let mut text = String::new();
    for verifier in &state.spec.settings.verifiers {
        let required = state.spec.settings.required_verifiers.contains(&verifier.name);
        let optional = if required { "" } else { " (optional)" };
        let result = match state.work.checks.get(&verifier.name) {
            None => at_start(state, &verifier.name),
            Some(r) => {
                let age = if Some(&r.tree) == state.work.tree.as_ref() { "" } else { " (on earlier files)" };
                let tests = r
                    .tests
                    .map_or_else(String::new, |t| format!(", {} passed, {} failed", t.passed, t.failed));
                match (&r.why, r.passed) {
                    (_, true) => format!("passed{tests}{age}"),
                    (Some(why), false) => format!("FAILED: {why}{tests}{age}"),
                    (None, false) => format!("FAILED{tests}{age}"),
                }
            }
        };
        let _ = match hidden_number(verifier) {
            None => writeln!(text, "- {}{optional} `{}`: {result}", verifier.name, verifier.command_line()),
            Some(number) => writeln!(text, "- hidden check {number}{optional}: {result}"),
        };
    }
    let nothing_fails = |checks: &BaselineChecks| checks.red.is_empty() && !checks.results.is_empty();
    if state.baseline_checks.as_ref().is_some_and(nothing_fails) {
        text.push_str("\nNo check failed at the start. If you change behavior, add a test that fails without your change.\n");
    }
    match state.iterations.history.back().map(|last| last.verdict) {
        Some(Verdict::ProtectedChanged) => {
            text.push_str("\nNOT DONE: protected paths changed. Restore the originals (see `git diff`).\n");
        }
        Some(Verdict::NoChange) => text.push_str("\nNOT DONE: the checks pass, but nothing was changed.\n"),
        _ => {}
    }
    if state.unclaimed_iterations() > 0 {
        let open = state.spec.task.criteria.iter().filter(|c| !state.work.met.contains(&c.id));
        let open: Vec<&str> = open.map(|criterion| criterion.id.as_str()).take(FILES_MAX).collect();
        let what = match open.as_slice() {
            [] => "the task isn't claimed as done. If it is".to_owned(),
            open => format!("{} isn't claimed as done. When all is", open.join(", ")),
        };
        let _ = writeln!(text, "\nNOT DONE: the required checks pass, but {what}, {}.", place.how_to_claim());
    }
    if let Some((_, failed)) = &state.result.disproved {
        text.push_str("\nNOT DONE: the final check in a clean checkout failed:\n");
        for line in failed.iter().take(20) {
            let _ = writeln!(text, "- {line}");
        }
        text.push_str("Ignored and unrecorded files don't exist there.\n");
        if let Some((hint, _)) = &state.result.setup_hint {
            let _ = writeln!(text, "Perhaps only the user can fix it: {hint}.");
        }
    }
    let is_hidden = |name: &str| {
        let verifier = state.spec.settings.verifiers.iter().find(|verifier| verifier.name == name);
        verifier.is_some_and(|verifier| hidden_number(verifier).is_some())
    };
    let shown: Vec<_> = files.failing.iter().filter(|(name, ..)| !is_hidden(name)).collect();
    for (at, (_, why, log, output)) in shown.iter().enumerate() {
        // Checks with the same command ran once.
        if shown[..at].iter().any(|(_, _, earlier, _)| earlier == log) {
            continue;
        }
        let same = shown[at..].iter().filter(|(_, _, other, _)| other == log);
        let names: Vec<&str> = same.map(|(name, ..)| name.as_str()).collect();
        let _ = write!(
            text,
            "\n## Output of {} ({why}; full log: `{}`)\n\n",
            names.join(", "),
            place.path(&format!(".ralph/runs/{}/{log}", state.spec.run_id))
        );
        let output = tail(output, CHECK_MAX).trim_end();
        for line in output.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

/// The result of a check on the original files, before the first session.
fn at_start(state: &RunState, name: &str) -> String {
    let result = state.baseline_checks.iter().flat_map(|checks| &checks.results).find(|r| r.name == name);
    match result {
        None => "not run yet".to_owned(),
        Some(r) if r.passed => "passed at the start".to_owned(),
        Some(r) => format!("FAILED at the start: {}", r.why.as_deref().unwrap_or("it didn't pass")),
    }
}

/// The number of a check that agents must not see; they can't run it.
pub(super) fn hidden_number(verifier: &VerifierConfig) -> Option<&str> {
    verifier.name.strip_prefix("hidden-").filter(|_| verifier.expect == Some(Expect::Custom))
}

pub(super) fn standing(state: &RunState) -> String {
    let budgets = &state.spec.settings.budgets;
    let spent = state.spent();
    let mut text = format!(
        "Iteration {} of {}. Time {} of {}.",
        state.iterations.count + 1,
        budgets.max_iterations,
        duration(Duration::from_secs(spent.time.as_secs())),
        duration(budgets.max_wall_time)
    );
    if spent.cost > ralph_loop_protocol::money::Usd::ZERO {
        let _ = write!(text, " Cost {} of {}.", spent.cost, budgets.max_cost);
    }
    text.push('\n');
    let scores: Vec<String> =
        state.iterations.history.iter().rev().take(8).rev().map(|i| format!("{:.1}", i.loop_score)).collect();
    if scores.iter().any(|s| s != "0.0") {
        let _ = writeln!(
            text,
            "Stuck scores so far (0 = moving, {} = stuck): {}.",
            state.spec.settings.gutter_score,
            scores.join(" ")
        );
    }
    text
}
