//! Stuck detection: small rules over evidence (trees, exit codes, normalized output, test counts, patches), never
//! over wording. Each rule is one file; their weights add up to the `loop_score`.
//!
//! Two things come before every rule. Waits aren't iterations, so the rules never see them. And [`is_progress`]
//! overrides every signal: if something countable is better than before in the window, the rules only consider what
//! came after.

mod churn;
mod cycle;
mod empty;
pub mod failure;
mod idle;
pub mod lines;
pub mod plan;
mod plateau;
mod progress;
pub mod session;
mod stagnation;
mod thrash;
mod trace;

pub use progress::is_progress;
pub use ralph_loop_protocol::stuck::signals::{Signal, Signals, StuckKind};
pub use session::{SessionCall, SessionLoop, SessionWatch};
pub use trace::{Ending, Evidence, FILES_MAX, Trace};

use ralph_loop_task::config::StuckConfig;
pub use ralph_loop_task::config::WINDOW;

/// Iterations that make a pattern; one alone doesn't.
fn threshold(config: &StuckConfig) -> usize {
    config.threshold.max(2) as usize
}

/// Scores the newest of `traces` (oldest first) against those before it.
///
/// The first three signals are weighed alone if they reach `gutter_score`. The others cover what those can't see: a
/// silent agent whose checks pass, a failure that stays while files change, cycles longer than two.
pub fn score(traces: &[Trace], config: &StuckConfig, gutter_score: f64) -> Signals {
    let span = (config.window as usize).clamp(threshold(config), WINDOW);
    let traces = &traces[traces.len().saturating_sub(span)..];
    let progress = progress::latest(traces);
    let since = progress.as_ref().map_or(0, |(at, _)| *at);
    let view = &traces[since..];
    // The successful iteration is the state to compare with, not a failed try.
    let tries = if progress.is_some() { view.get(1..).unwrap_or_default() } else { view };
    let mut signals = Signals::default();
    for signal in Signal::ALL {
        let weight = config.weights.of(signal);
        if weight <= 0.0 {
            continue;
        }
        if let Some(words) = rule(signal, view, tries, traces, config) {
            signals.set(signal, weight);
            signals.evidence.push(words);
        }
    }
    let base = rounded(signals.repeated_failure + signals.stagnation + signals.thrash);
    let all = rounded(Signal::ALL.into_iter().map(|s| signals.get(s)).sum());
    signals.loop_score = if base >= gutter_score { base.min(1.0) } else { all.min(1.0) };
    let newest =
        traces.split_last().filter(|_| progress.as_ref().is_some_and(|(at, _)| at + 1 == traces.len()));
    signals.measured = newest.is_some_and(|(newest, before)| progress::is_by_number(newest, before));
    signals.progress = progress.filter(|(at, _)| at + 1 == traces.len()).map(|(_, words)| words);
    signals
}

fn rule(
    signal: Signal,
    view: &[Trace],
    tries: &[Trace],
    traces: &[Trace],
    config: &StuckConfig,
) -> Option<String> {
    match signal {
        Signal::RepeatedFailure => failure::repeated(view, config),
        Signal::Stagnation => stagnation::stagnant(view, config),
        Signal::Thrash => thrash::flips(view),
        Signal::Cycle => cycle::cycle(view),
        Signal::Idle => idle::idle(view, config),
        Signal::Churn => churn::churn(tries, traces, config),
        Signal::Plateau => plateau::plateau(tries, traces, config),
        Signal::SamePlan => plan::same_plan(view, config),
        Signal::Empty => empty::empty(view, config),
        Signal::SessionLoop => session::session_loop(view),
    }
}

/// Rounded, because 0.5 + 0.2 must reach a threshold of 0.7.
fn rounded(sum: f64) -> f64 {
    (sum * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests;
