//! Stuck signals: an iteration's score, its inputs, and whether an improved number is credible.

use crate::error::DriveError;
use crate::record::log_tail::read_tail;
use crate::run::Run;
use crate::steps::checks::check::{CheckOptions, CheckOutcome, CheckTarget, run_check};
use crate::steps::checks::{measure, missing_programs};
use crate::steps::{claims, consult};
use ralph_loop_domain::recovery;
use ralph_loop_domain::state::{Current, RunState};
use ralph_loop_domain::stuck::lines::patch::{PATCH_MAX, PatchSketch};
use ralph_loop_domain::stuck::lines::paths;
use ralph_loop_domain::stuck::{
    self, Evidence, SessionCall, SessionLoop, SessionWatch, Signals, Trace, plan,
};
use ralph_loop_proof::report::{failing, numbers};
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

/// The current iteration's score. If a number is the only progress and decides the outcome, it is
/// measured again on the same files; a number that varies doesn't count any more.
pub(crate) fn score_iteration(
    run: &mut Run,
    current: &Current,
    failure: Option<&Digest>,
    evidence: &mut Evidence,
) -> Result<Signals, DriveError> {
    let signals = score(&run.ledger.state, current, failure, evidence);
    if !signals.measured || !is_relevant(run, current, failure, evidence) {
        return Ok(signals);
    }
    let open: Vec<MeasuredNumber> =
        evidence.numbers.iter().filter(|n| !evidence.steady.contains(&n.key)).cloned().collect();
    if open.is_empty() {
        return Ok(signals);
    }
    let Some(again) = measure_again(run, current)? else { return Ok(signals) };
    for number in open {
        let same = again.iter().any(|n| n.key == number.key && n.value == number.value);
        let list = if same { &mut evidence.steady } else { &mut evidence.unsteady };
        list.push(number.key);
        let over = list.len().saturating_sub(KEYS_MAX);
        list.drain(..over);
    }
    Ok(score(&run.ledger.state, current, failure, evidence))
}

/// Whether the run would count as stuck without its numbers.
fn is_relevant(run: &Run, current: &Current, failure: Option<&Digest>, evidence: &Evidence) -> bool {
    let plain = Evidence { numbers: Vec::new(), ..evidence.clone() };
    score(&run.ledger.state, current, failure, &plain).loop_score > 0.0
}

/// Numbers from a second run of the failing checks; `None` if stopped.
fn measure_again(run: &mut Run, current: &Current) -> Result<Option<Vec<MeasuredNumber>>, DriveError> {
    let Some(tree) = run.state.work.tree.clone() else { return Ok(None) };
    let folder = run.ledger.iteration_dir(current.iteration)?;
    let names: Vec<String> = measuring(&run.ledger.state).map(|r| r.name.clone()).collect();
    let verifiers: Vec<_> = run.state.spec.settings.verifiers.clone();
    let mut found = Vec::new();
    for verifier in verifiers.iter().filter(|v| names.contains(&v.name)) {
        let log = folder.join(format!("check-{}.again.log", verifier.name));
        let how = CheckOptions::default();
        let place = CheckTarget { sandbox: &*run.ports.sandbox, tree: &tree, log: &log, how };
        match run_check(&mut run.ledger, verifier, &place)? {
            CheckOutcome::Result(..) => found.extend(numbers::measured(&read_tail(&log, OUTPUT_MAX))),
            CheckOutcome::Stopped => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// Updates the traces after the final check or the code host rejected the work.
pub(crate) fn notice_refused_work(run: &mut Run) -> Result<(), DriveError> {
    let state = &run.ledger.state;
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
        run.record(news)?;
        consult::ask_advisor(run, signals.kinds(), signals.loop_score, &signals.evidence, &context)?;
    }
    run.flush()?;
    Ok(())
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

/// Bytes of a session's actions searched for repeated calls.
const CALLS_MAX: u64 = 128 * 1024;
/// Calls awaiting results at once.
const OPEN_MAX: usize = 64;

/// The evidence of the iteration in `folder`.
pub(crate) fn read_evidence(state: &RunState, current: &Current, run_dir: &Path, folder: &Path) -> Evidence {
    let mut output = String::new();
    for result in
        state.work.checks.values().filter(|r| !r.passed && Some(&r.tree) == state.work.tree.as_ref())
    {
        output.push_str(&read_tail(&run_dir.join(&result.log), OUTPUT_MAX));
        output.push('\n');
    }
    let message = current.session.as_ref().map_or("", |s| s.message.as_str());
    let changed = current.change.as_ref().is_some_and(|c| c.files > 0);
    let mut evidence = Evidence {
        failing: failing::failing_tests(&output),
        problems: failing::problems(&output),
        gap: failing::gap(&output),
        met: claims::met(state).len() as u32,
        plan: plan::shingles(message),
        patch: changed.then(|| sketch(&folder.join("git_diff.patch"))).flatten(),
        session: repeated_calls(&read_tail(&folder.join("actions.jsonl"), CALLS_MAX)),
        environment: missing_programs::fault_of(state, run_dir),
        ..Evidence::default()
    };
    add_numbers(&mut evidence, state, run_dir);
    evidence
}

/// A sketch of the patch; `None` if it is lost or was cut.
fn sketch(path: &Path) -> Option<PatchSketch> {
    let patch = read_head(path);
    if patch.trim().is_empty() {
        return None;
    }
    let sketch = ralph_loop_domain::stuck::lines::patch::sketch(&patch);
    // Behind a flood of generated lines there may be unread work.
    let cut = patch.len() >= PATCH_MAX;
    (!cut || sketch.substance > 0).then_some(sketch)
}

/// Detects repeated actions in a session. A line that includes its call's result is weighed with it.
fn repeated_calls(actions: &str) -> Option<SessionLoop> {
    let mut watch = SessionWatch::default();
    // Calls whose result comes on a later line, in order.
    let mut open: Vec<(String, String, String)> = Vec::new();
    for line in actions.lines() {
        let Ok(action) = serde_json::from_str::<Value>(line) else { continue };
        let word = |key: &str| action[key].as_str().unwrap_or_default();
        let failed = action["is_error"] == true || action["ok"] == false;
        match word("type") {
            "message" => drop(watch.message(word("text"))),
            "result" => {
                if let Some(at) = open.iter().position(|(id, ..)| id == word("id")) {
                    let (_, name, input) = open.remove(at);
                    watch.call(SessionCall::of(&name, &input, Some(word("result")), failed));
                }
            }
            kind => {
                let name = action["name"].as_str().unwrap_or(kind).to_owned();
                let input = action["input"].to_string();
                let came = if action["output"].is_string() { &action["output"] } else { &action["result"] };
                match (came, word("id")) {
                    (Value::Null, "") => drop(watch.call(SessionCall::of(&name, &input, None, failed))),
                    (Value::Null, id) => {
                        open.push((id.to_owned(), name, input));
                        if open.len() > OPEN_MAX {
                            let (_, name, input) = open.remove(0);
                            watch.call(SessionCall::of(&name, &input, None, false));
                        }
                    }
                    (Value::String(text), _) => {
                        watch.call(SessionCall::of(&name, &input, Some(text), failed));
                    }
                    (other, _) => {
                        watch.call(SessionCall::of(&name, &input, Some(&other.to_string()), failed));
                    }
                }
            }
        }
    }
    for (_, name, input) in open {
        watch.call(SessionCall::of(&name, &input, None, false));
    }
    watch.finish()
}

fn read_head(path: &Path) -> String {
    use std::io::Read as _;
    let Ok(file) = ralph_loop_journal::folder::plain::read(path) else { return String::new() };
    let mut bytes = Vec::new();
    if file.take(PATCH_MAX as u64).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_with_results_circle_at_the_fourth_and_without_at_the_eighth() {
        let line =
            |result: &str| format!("{{\"type\":\"tool\",\"name\":\"Read\",\"input\":{{\"p\":1}}{result}}}\n");
        assert_eq!(repeated_calls(&line("").repeat(7)), None);
        assert_eq!(repeated_calls(&line("").repeat(8)), Some(SessionLoop::Repeated { times: 8 }));
        assert_eq!(
            repeated_calls(&line(",\"result\":\"x\"").repeat(4)),
            Some(SessionLoop::Repeated { times: 4 })
        );
        assert_eq!(
            repeated_calls(&line(",\"result\":\"x\",\"is_error\":true").repeat(3)),
            Some(SessionLoop::Failing { times: 3 })
        );
        assert_eq!(repeated_calls("no json\n\n"), None);
    }

    #[test]
    fn a_result_in_a_line_of_its_own_belongs_to_its_call() {
        let pair = |id: usize, call: &str, result: &str| {
            format!(
                "{{\"type\":\"tool_use\",\"name\":\"Bash\",\"input\":\"{call}\",\"id\":\"t{id}\"}}\n\
                 {{\"type\":\"result\",\"id\":\"t{id}\",\"is_error\":false,\"result\":\"{result}\"}}\n"
            )
        };
        let same: String = (0..4).map(|n| pair(n, "make", "error: no rule")).collect();
        assert_eq!(repeated_calls(&same), Some(SessionLoop::Repeated { times: 4 }));
        let moving: String = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
            .iter()
            .enumerate()
            .map(|(n, word)| pair(n, "make", word))
            .collect();
        assert_eq!(
            repeated_calls(&moving),
            None,
            "the same call with another result each time isn't a circle"
        );
        let turns: String =
            (0..8).map(|n| if n % 2 == 0 { pair(n, "make", "x") } else { pair(n, "cat log", "y") }).collect();
        assert_eq!(repeated_calls(&turns), Some(SessionLoop::Alternating { period: 2 }));
    }

    #[test]
    fn words_without_any_action_are_a_monologue_and_actions_of_every_kind_are_read() {
        let words = "{\"type\":\"message\",\"text\":\"let me think\"}\n".repeat(6);
        assert_eq!(repeated_calls(&words), Some(SessionLoop::Monologue { messages: 6 }));
        let run =
            "{\"n\":1,\"type\":\"run\",\"input\":{\"command\":\"make\"},\"ok\":false,\"result\":\"boom\"}\n";
        assert_eq!(repeated_calls(&run.repeat(3)), Some(SessionLoop::Failing { times: 3 }));
    }
}
