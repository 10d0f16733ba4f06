//! Phrases shared by commands: ages, bars, costs, tests, iteration cards.

use crate::output::{Out, Sign};
use crate::text::table::{columns, fit, flow};
use jiff::Timestamp;
pub use ralph_loop_app::read::phrases::{age, ago, since};
use ralph_loop_domain::state::{IterationSummary, RunState};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::describe::clock_time;
use ralph_loop_protocol::display::text::{count, duration};
use ralph_loop_protocol::event::Verdict;
use ralph_loop_protocol::money::Cost;
use ralph_loop_protocol::proof::test_counts::TestCounts;
use std::path::Path;
use std::time::Duration;

/// A bar for a share between 0 and 1.
pub fn bar(out: &Out, share: f64, steps: usize) -> String {
    let full = ((share.clamp(0.0, 1.0) * steps as f64).round() as usize).min(steps);
    let (on, off) = if unicode(out) { ("▮", "▯") } else { ("#", "-") };
    format!("{}{}", on.repeat(full), off.repeat(steps - full))
}

fn unicode(out: &Out) -> bool {
    !out.sign(Sign::Good).is_ascii()
}

/// The color of a used budget: neutral, attention from 80 %, then bad.
pub fn budget_tone(share: f64) -> Option<Tone> {
    match share {
        s if s >= 1.0 => Some(Tone::Bad),
        s if s >= ralph_loop_task::budget::WARN_AT => Some(Tone::Attention),
        _ => None,
    }
}

/// `$1.34 of $10 (reported)`.
pub fn cost(state: &RunState) -> String {
    let (cost, cap) = (state.cost(), state.spec.settings.budgets.max_cost);
    let models = match (cost.known(), cost.whole()) {
        (None, _) => format!("cost unknown (cap {cap})"),
        (_, None) => format!("{cost} of {cap} (partly unknown)"),
        (_, Some(sum)) if state.spending.totals.sessions == 0 => format!("{sum} of {cap}"),
        (_, Some(sum)) => format!("{sum} of {cap} ({})", cost.basis().as_str()),
    };
    match state.spending.compute.known_cost() {
        Some(compute) => format!("{models}, compute ~{compute}"),
        None => models,
    }
}

/// `950`, `12.3k`, `4.1M`.
pub fn short_count(number: u64) -> String {
    match number {
        0..=9_999 => number.to_string(),
        10_000..=999_999 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// `12 min (04:02)`: time left until an instant, and its local time.
pub fn left(until: Timestamp, now: Timestamp) -> String {
    ralph_loop_app::read::phrases::left(until, now, &crate::process::terminal::zone())
}

/// `04:02`, with the day unless it is today.
pub fn local(at: Timestamp, now: Timestamp) -> String {
    clock_time(at, now, Some(&crate::process::terminal::zone()))
}

/// `1.2 KiB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..=1_073_741_823 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// `44 tests pass`, `3 of 47 tests fail (was 5)`.
pub fn tests(now: TestCounts, before: Option<TestCounts>) -> String {
    if now.executed() == 0 {
        return "no test executed".to_owned();
    }
    if now.failed == 0 {
        let was = before
            .filter(|b| b.passed != now.passed)
            .map_or_else(String::new, |b| format!(" (was {})", b.passed));
        let verb = if now.passed == 1 { "passes" } else { "pass" };
        return format!("{} {verb}{was}", count(now.passed as usize, "test"));
    }
    let was = before.map_or_else(String::new, |b| format!(" (was {})", b.failed));
    let verb = if now.failed == 1 { "fails" } else { "fail" };
    format!("{} of {} {verb}{was}", now.failed, count(now.executed() as usize, "test"))
}

/// `~/work/repo`.
pub fn home_path(path: &Path) -> String {
    match crate::process::terminal::home().and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// A heading on stdout.
pub fn heading(out: &Out, text: &str) {
    out.line("");
    out.line(out.out(Tone::Muted, text));
}

/// `name  value` below a heading, wrapped with a hanging indent.
pub fn row(out: &Out, name: &str, value: &str) {
    const NAME: usize = 12;
    let label = out.out(Tone::Muted, &format!("{name:<NAME$}"));
    let lines = crate::text::table::wrap(value, columns().saturating_sub(NAME + 3).max(30));
    for (n, line) in lines.iter().enumerate() {
        match n {
            0 => out.line(format!("  {label} {line}")),
            _ => out.line(format!("  {:NAME$} {line}", "")),
        }
    }
}

/// Symbol and color of a verdict.
pub fn verdict_sign(verdict: Verdict) -> (Sign, Tone) {
    match verdict {
        Verdict::Candidate => (Sign::Good, Tone::Good),
        Verdict::NotPromised => (Sign::Open, Tone::Muted),
        _ => (Sign::Bad, Tone::Bad),
    }
}

/// Why the run didn't end with an iteration whose own checks passed.
fn refusal(state: &RunState, it: &IterationSummary) -> Option<&'static str> {
    let proof = state.result.proof.as_ref().filter(|proof| proof.proof.is_some());
    match it.verdict {
        Verdict::Candidate if it.iteration < state.iterations.count => {
            Some("required checks passed, but it was not accepted")
        }
        Verdict::Candidate if proof.is_some_and(|proof| !proof.passed) => {
            Some("required checks pass, the final check does not")
        }
        _ => None,
    }
}

/// One iteration: number, agent, verdict, tests, change, cost, time; below it the agent's summary.
pub fn card(out: &Out, state: &RunState, it: &IterationSummary, before: Option<&IterationSummary>) {
    let (mut sign, mut tone) = verdict_sign(it.verdict);
    let mut verdict = it.verdict.words_with(&it.failing);
    if let Some(words) = refusal(state, it) {
        (sign, tone, verdict) = (Sign::Bad, Tone::Bad, words.to_owned());
    }
    let mut parts = vec![match it.end.reason() {
        Some(_) => format!("{verdict}: {}", it.end.word()),
        None => verdict,
    }];
    parts.extend(it.tests.map(|t| tests(t, before.and_then(|b| b.tests))));
    parts.push(match it.files {
        0 => "nothing changed".to_owned(),
        n => format!("{} +{} −{}", count(n, "file"), it.added, it.removed),
    });
    parts.extend(Some(it.cost()).filter(|cost| *cost != Cost::default()).map(Cost::alone));
    parts.push(duration(Duration::from_millis(it.duration_ms)));
    let head = format!("  {:>3}  {:<8} ", it.iteration, fit(it.agent.as_str(), 16));
    let indent = crate::text::table::width(&head) + 2;
    for (n, line) in flow(&parts, columns(), indent).into_iter().enumerate() {
        match n {
            0 => out.line(format!("{head}{} {line}", out.out(tone, out.sign(sign)))),
            _ => out.line(line),
        }
    }
    if !it.message.is_empty() {
        let room = columns().saturating_sub(7);
        out.line(format!("       {}", out.out(Tone::Muted, &fit(&it.message, room))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::tests::plain;

    #[test]
    fn tests_are_compared_with_those_before() {
        let counts = |passed, failed| TestCounts { passed, failed };
        assert_eq!(super::tests(counts(44, 0), Some(counts(41, 3))), "44 tests pass (was 41)");
        assert_eq!(super::tests(counts(44, 3), Some(counts(42, 5))), "3 of 47 tests fail (was 5)");
        assert_eq!(super::tests(counts(1, 0), None), "1 test passes");
        assert_eq!(super::tests(counts(0, 0), None), "no test executed");
    }

    #[test]
    fn bars_stay_in_their_bounds() {
        let out = plain();
        let full = |share| bar(&out, share, 5).chars().filter(|c| matches!(c, '▮' | '#')).count();
        assert_eq!([-1.0, 0.0, 0.3, 0.7, 9.0].map(full), [0, 0, 2, 4, 5]);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([950, 12_340, 4_100_000].map(short_count), ["950", "12.3k", "4.1M"]);
        assert_eq!([12, 1234, 3 << 20].map(size), ["12 B", "1.2 KiB", "3.0 MiB"]);
    }
}
