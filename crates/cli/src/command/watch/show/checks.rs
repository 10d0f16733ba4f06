//! `ralph show --checks`: every check with command, results and failing output.

use crate::output::{Out, Sign};
use crate::text::run_text::{check_standing, check_words, failing_result, quoted, setup_words};
use crate::text::table::{columns, wrap};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::display::view::CheckView;
use ralph_loop_protocol::event::CheckResult;
use serde_json::json;

/// Lines shown of a failing check.
const LINES: usize = 12;

pub fn show(facts: &RunSnapshot, out: &Out) -> u8 {
    let checks = facts.view().checks;
    if out.json {
        let list: Vec<_> = checks.iter().map(|check| object(facts, check)).collect();
        let setup = facts.view().setup_failed;
        out.value(&json!({ "run_id": facts.entry.run_id, "checks": list, "setup_failed": setup }));
        return 0;
    }
    out.line(format!("{} of run {}", count(checks.len(), "check"), facts.entry.run_id));
    if let Some(setup) = facts.view().setup_failed {
        out.line("");
        let words = format!("setup: {}", setup_words(facts, &setup));
        for (n, line) in wrap(&words, columns().saturating_sub(4)).iter().enumerate() {
            match n {
                0 => out.line(format!("{} {line}", out.out(Tone::Bad, out.sign(Sign::Bad)))),
                _ => out.line(format!("  {line}")),
            }
        }
        setup.last_lines.iter().for_each(|line| quoted(line, out));
    }
    for check in &checks {
        out.line("");
        print(facts, check, out);
    }
    0
}

fn print(facts: &RunSnapshot, check: &CheckView, out: &Out) {
    let (sign, tone, words) = check_standing(facts, check);
    let required = if check.required { " (required)" } else { "" };
    let sentence = format!("{}{required}: {words}", check.name);
    let sign = out.sign(sign);
    for (n, line) in wrap(&sentence, columns().saturating_sub(4)).iter().enumerate() {
        match n {
            0 => out.line(format!("{} {line}", out.out(tone, sign))),
            _ => out.line(format!("  {line}")),
        }
    }
    let row = |name: &str, words: &str| {
        let label = out.out(Tone::Muted, &format!("{name:<9}"));
        for (n, line) in wrap(words, columns().saturating_sub(14).max(30)).iter().enumerate() {
            match n {
                0 => out.line(format!("    {label} {line}")),
                _ => out.line(format!("    {:9} {line}", "")),
            }
        }
    };
    row("command", &check.command);
    if let Some(start) = at_start(facts, check) {
        let cached = facts.state.baseline_checks.as_ref().is_some_and(|checks| checks.cached);
        let mark = if cached { " (as in an earlier run on the same files)" } else { "" };
        row("at start", &format!("{}{mark}", short(start)));
    }
    if let (Some(refused), Some(last)) = (&check.refused, &check.last) {
        if refused.result.is_some() {
            row("workspace", &check_words(facts, last));
        }
        for reason in &refused.reasons {
            row("refused", reason);
        }
    }
    if let Some(failing) = failing_result(check) {
        facts.evidence(failing, LINES).iter().for_each(|line| quoted(line, out));
        let path = facts.entry.run_dir().path().join(&failing.log);
        row("log", &path.display().to_string());
    } else if let Some(last) = &check.last {
        row("log", &facts.entry.run_dir().path().join(&last.log).display().to_string());
    }
}

/// A result without its age.
fn short(result: &CheckResult) -> String {
    let mut words = match (&result.why, result.passed) {
        (_, true) => "passed".to_owned(),
        (Some(why), false) => format!("failed: {why}"),
        (None, false) => "failed".to_owned(),
    };
    if let Some(tests) = result.tests {
        words.push_str(&format!(", {}", crate::text::words::tests(tests, None)));
    }
    if let Some(names) = result.failing_words(4) {
        words.push_str(&format!(", {names}"));
    }
    words
}

fn at_start<'a>(facts: &'a RunSnapshot, check: &CheckView) -> Option<&'a CheckResult> {
    let start = facts.state.baseline_checks.as_ref()?;
    start.results.iter().find(|result| result.name == check.name)
}

fn object(facts: &RunSnapshot, check: &CheckView) -> serde_json::Value {
    let refused = check.refused.as_ref();
    let said = failing_result(check).map(|result| facts.evidence(result, LINES));
    json!({
        "name": check.name,
        "command": check.command,
        "required": check.required,
        "standing": match check_standing(facts, check).0 {
            Sign::Good => "passed",
            Sign::Bad => "failed",
            _ if check.last.is_none() => "not_run",
            _ => "refused",
        },
        "current_tree": check.current_tree,
        "at_start": at_start(facts, check),
        "last": check.last,
        "final": refused.and_then(|refused| refused.result.as_ref()),
        "refused_because": refused.map(|refused| &refused.reasons),
        "evidence": said,
    })
}
