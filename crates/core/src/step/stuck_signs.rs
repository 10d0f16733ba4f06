//! Stuck signals: an iteration's score, its inputs, and whether an improved number is credible.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::record::log_tail::read_tail;
use crate::step::checks::measure;
use crate::step::checks::verify::{CheckOptions, CheckOutcome, CheckTarget, run_check};
use ralph_loop_domain::recovery;
use ralph_loop_domain::state::{Current, RunState};
use ralph_loop_domain::stuck;
use ralph_loop_domain::stuck::lines::paths;
use ralph_loop_domain::stuck::{Evidence, Signals, Trace};
use ralph_loop_proof::report::numbers;
use ralph_loop_protocol::display::text::{one_line, tail_lines};
use ralph_loop_protocol::id::Digest;
use ralph_loop_protocol::stuck::{MeasuredNumber, StuckDetails};
use serde_json::Value;
use std::path::Path;

const OUTPUT_MAX: u64 = 64 * 1024;
const ACTIONS_MAX: u64 = 32 * 1024;
const ACTIONS: usize = 8;
const FILES: usize = 8;
/// Remembered number keys.
const KEYS_MAX: usize = 32;
/// Consecutive iterations whose only progress may be a number.
const CREDITS_MAX: u32 = 24;

impl Driver {
    /// The current iteration's score. If a number is the only progress and decides the outcome, it is
    /// measured again on the same files; a number that varies doesn't count any more.
    pub(crate) fn score(
        &mut self,
        current: &Current,
        failure: Option<&Digest>,
        evidence: &mut Evidence,
    ) -> Result<Signals, DriveError> {
        let signals = score(&self.ctx.state, current, failure, evidence);
        if !signals.measured || !self.matters(current, failure, evidence) {
            return Ok(signals);
        }
        let open: Vec<MeasuredNumber> =
            evidence.numbers.iter().filter(|n| !evidence.steady.contains(&n.key)).cloned().collect();
        if open.is_empty() {
            return Ok(signals);
        }
        let Some(again) = self.measure_again(current)? else { return Ok(signals) };
        for number in open {
            let same = again.iter().any(|n| n.key == number.key && n.value == number.value);
            let list = if same { &mut evidence.steady } else { &mut evidence.unsteady };
            list.push(number.key);
            let over = list.len().saturating_sub(KEYS_MAX);
            list.drain(..over);
        }
        Ok(score(&self.ctx.state, current, failure, evidence))
    }

    /// Whether the run would count as stuck without its numbers.
    fn matters(&self, current: &Current, failure: Option<&Digest>, evidence: &Evidence) -> bool {
        let plain = Evidence { numbers: Vec::new(), ..evidence.clone() };
        score(&self.ctx.state, current, failure, &plain).loop_score > 0.0
    }

    /// Numbers from a second run of the failing checks; `None` if stopped.
    fn measure_again(&mut self, current: &Current) -> Result<Option<Vec<MeasuredNumber>>, DriveError> {
        let Some(tree) = self.ctx.state.work.tree.clone() else { return Ok(None) };
        let folder = self.ctx.iteration_dir(current.iteration)?;
        let names: Vec<String> = measuring(&self.ctx.state).map(|r| r.name.clone()).collect();
        let verifiers: Vec<_> = self.ctx.state.spec.settings.verifiers.clone();
        let mut found = Vec::new();
        for verifier in verifiers.iter().filter(|v| names.contains(&v.name)) {
            let log = folder.join(format!("check-{}.again.log", verifier.name));
            let how = CheckOptions::default();
            let place = CheckTarget { sandbox: &*self.sandbox, tree: &tree, log: &log, how };
            match run_check(&mut self.ctx, verifier, &place)? {
                CheckOutcome::Result(..) => found.extend(numbers::measured(&read_tail(&log, OUTPUT_MAX))),
                CheckOutcome::Stopped => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// Updates the traces after the final check or the code host rejected the work.
    pub(crate) fn notice_refused_work(&mut self) -> Result<(), DriveError> {
        let state = &self.ctx.state;
        let refused =
            state.result.disproved.as_ref().is_some_and(|(tree, _)| Some(tree) == state.work.tree.as_ref());
        let over = state.result.candidate
            || state.tests_question().is_some()
            || state.result.proof.as_ref().is_some_and(|proof| proof.passed);
        if !refused || over || state.spec.settings.stuck_detection.disabled {
            return Ok(());
        }
        let settings = &state.spec.settings;
        let traces: Vec<Trace> = state.stuck.traces.iter().cloned().collect();
        let signals = stuck::score(&traces, &settings.stuck_detection, settings.gutter_score);
        let iteration = state.iterations.count;
        let failed = state.result.disproved.as_ref().map(|(_, failed)| failed.join("; ")).unwrap_or_default();
        let context = StuckDetails {
            repeated_error: Some(one_line(&format!("the final check: {failed}"), 400)),
            ..StuckDetails::default()
        };
        for news in recovery::notice_signals(state, iteration, &signals, context.clone()) {
            self.ctx.record(news)?;
            self.ask_advisor(signals.kinds(), signals.loop_score, &signals.evidence, &context)?;
        }
        self.ctx.flush()?;
        Ok(())
    }
}

pub(crate) fn score(
    state: &RunState,
    current: &Current,
    failure: Option<&Digest>,
    evidence: &Evidence,
) -> Signals {
    let settings = &state.spec.settings;
    if settings.stuck_detection.disabled || !state.is_measured(current.role) {
        return Signals::default();
    }
    let Some(newest) = state.trace(current, failure.cloned(), evidence.clone()) else {
        return Signals::default();
    };
    let mut traces: Vec<Trace> = state.stuck.traces.iter().cloned().collect();
    traces.push(newest);
    stuck::score(&traces, &settings.stuck_detection, settings.gutter_score)
}

/// Failing checks on the current tree without test counts.
fn measuring(state: &RunState) -> impl Iterator<Item = &ralph_loop_protocol::event::CheckResult> {
    let now = state.work.tree.as_ref();
    state.work.checks.values().filter(move |r| !r.passed && r.tests.is_none() && Some(&r.tree) == now)
}

/// Adds numbers of the checks, their history, and the metric.
pub(crate) fn add_numbers(evidence: &mut Evidence, state: &RunState, run_dir: &Path) {
    if let Some(last) = state.stuck.traces.back() {
        evidence.steady.clone_from(&last.evidence.steady);
        evidence.unsteady.clone_from(&last.evidence.unsteady);
    }
    let credit = state.stuck.number_credits < CREDITS_MAX;
    if credit {
        for result in measuring(state) {
            evidence.numbers.extend(numbers::measured(&read_tail(&run_dir.join(&result.log), OUTPUT_MAX)));
        }
    }
    for verifier in &state.spec.settings.verifiers {
        let Some(metric) = &verifier.metric else { continue };
        let on_tree =
            |r: &&ralph_loop_protocol::event::CheckResult| Some(&r.tree) == state.work.tree.as_ref();
        let Some(result) = state.work.checks.get(&verifier.name).filter(on_tree) else { continue };
        let measured = measure::of_logs(metric, &run_dir.join(&result.log)).ok();
        let number =
            measured.and_then(|measured| numbers::of_measurement(&verifier.name, measured, metric.rises()));
        if let Some(number) = number {
            if credit {
                evidence.numbers.push(number.clone());
            }
            evidence.metric.get_or_insert(number);
        }
    }
}

/// The last session's actions, the persistent error and the cycling files.
pub(crate) fn details(state: &RunState, current: &Current, run_dir: &Path, folder: &Path) -> StuckDetails {
    let actions = read_tail(&folder.join("actions.jsonl"), ACTIONS_MAX);
    let mut recent: Vec<String> = actions.lines().filter_map(action).collect();
    recent.drain(..recent.len().saturating_sub(ACTIONS));
    let error = state
        .work
        .checks
        .values()
        .find(|r| !r.passed && Some(&r.tree) == state.work.tree.as_ref())
        .map(|result| {
            let output = read_tail(&run_dir.join(&result.log), OUTPUT_MAX);
            let why = result.why.as_deref().unwrap_or("failed");
            one_line(&format!("{}: {why}: {}", result.name, tail_lines(output.trim_end(), 5)), 400)
        })
        .or_else(|| {
            let session = current.session.as_ref()?;
            Some(one_line(&format!("{}: {}", session.end.word(), session.end.reason()?), 400))
        });
    let changed = current.change.iter().flat_map(|change| change.contents.iter().map(|(path, _)| path));
    let times = |path: &&String| {
        state.stuck.traces.iter().filter(|t| t.files.iter().any(|(known, _)| known == *path)).count()
    };
    let cycling = changed.filter(|path| paths::is_work(path) && times(path) >= 2).take(FILES).cloned();
    StuckDetails { recent_actions: recent, repeated_error: error, cycling_files: cycling.collect() }
}

fn action(line: &str) -> Option<String> {
    let value: Value = serde_json::from_str(line).ok()?;
    let name = value["name"].as_str().or_else(|| value["type"].as_str().filter(|kind| *kind == "run"))?;
    let input = match &value["input"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(one_line(&format!("{name} {input}"), 120))
}
