//! Judge: an iteration's verdict, stuck signals, receipt and changelog lines.

use crate::error::DriveError;
use crate::handover::pr;
use crate::record::log_tail::read_tail;
use crate::record::{changelog, receipt, resources};
use crate::run::Run;
use crate::steps::{checkpoint, claims, consult, promise, recover, stuck_signals};
use ralph_loop_domain::budget_warning::budget_warnings;
use ralph_loop_domain::ports::ReleaseWhen;
use ralph_loop_domain::state::{Current, RunState, proof_failure};
use ralph_loop_domain::{decide, recovery, stuck};
use ralph_loop_journal::folder::artifacts;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{CheckResult, EventBody, SessionEnd, Verdict};
use ralph_loop_protocol::id::Digest;
use std::fmt::Write as _;
use std::path::Path;

const OUTPUT_MAX: u64 = 64 * 1024;
/// Consecutive iterations lacking only the claim, before the user is informed.
const UNCLAIMED_TOLD: usize = 2;

pub(crate) fn judge(run: &mut Run) -> Result<(), DriveError> {
    run.boundary("judge.before");
    let Some(current) = run.state.iterations.current.clone() else { return Ok(()) };
    let iteration = current.iteration;
    let folder = run.ledger.iteration_dir(iteration)?;
    let verdict = decide::judge(&run.ledger.state);
    // With a promise more checks may be due.
    if verdict == Verdict::NotPromised && run.state.lacks_only_promise() && promise::ask(run, iteration)? {
        return Ok(());
    }
    if current.outdated && current.session.as_ref().is_some_and(|session| session.promised) {
        run.notice(
            "the task was edited during this session: its promise doesn't count, and the next session works on the new text"
                .to_owned(),
        )?;
    }
    let failure = failure_signature(&run.ledger.state, &current, verdict, run.record_dir.path());
    let mut evidence =
        stuck_signals::read_evidence(&run.ledger.state, &current, run.record_dir.path(), &folder);
    let signals = stuck_signals::score_iteration(run, &current, failure.as_ref(), &mut evidence)?;
    let context = stuck_signals::details(&run.ledger.state, &current, run.record_dir.path(), &folder);
    let metric = evidence.metric.clone();
    let went_back = verdict != Verdict::Candidate && recover::keep_best(run, iteration, metric.as_ref())?;
    if claims::mark_met(run, iteration)? || went_back {
        checkpoint::record_tree(run)?;
    }
    // Its files show how it ended, including the engine's marks.
    let current = run.state.iterations.current.clone().unwrap_or(current);
    artifacts::write(
        &folder.join("test_output.txt"),
        test_output(&run.ledger.state, &current, run.record_dir.path()).as_bytes(),
    )?;
    pr::write_pr_state(run, iteration)?;
    let receipt = receipt::receipt(&run.ledger.state, &current, verdict, run.clock.now());
    artifacts::write(&folder.join("metrics.json"), &receipt::metrics(&run.ledger.state, &current, &signals))?;
    let digest = artifacts::write(&folder.join("receipt.json"), &receipt)?;
    run.boundary("judge.receipt");
    changelog::append(&run.ledger, &current, verdict)?;
    let seen = signals.clone();
    let failing = failing_words(&run.ledger.state);
    run.record(EventBody::IterationEnded {
        iteration,
        verdict,
        signals,
        failure,
        failing,
        receipt: digest,
        evidence: Box::new(evidence),
    })?;
    if run.state.unclaimed_iterations() == UNCLAIMED_TOLD {
        run.notice(format!(
            "the checks pass, but {UNCLAIMED_TOLD} sessions in a row didn't say that the task is done; `ralph` asks the next one to; if passing checks are enough, set `\"completion\": \"checks\"` in .ralph/config.json"
        ))?;
    }
    for news in recovery::notice(&run.ledger.state, iteration, verdict, &seen, context.clone()) {
        run.record(news)?;
        consult::ask_advisor(run, seen.kinds(), seen.loop_score, &seen.evidence, &context)?;
    }
    if let Some(rest) = recovery::breaker(&run.ledger.state, &current.agent, run.clock.now()) {
        run.record(rest)?;
        run.ledger.save_cooldowns()?;
    }
    for warning in budget_warnings(&run.ledger.state) {
        run.record(warning)?;
    }
    run.flush()?;
    for agent in &run.ports.agents {
        agent.release_resources(ReleaseWhen::Idle);
        resources::note_resources(&mut run.ledger, &**agent);
    }
    run.boundary("judge.after");
    Ok(())
}

/// The iteration's failure: of its checks on the current tree, else of the final check, else of the session.
/// A failed final check stays the failure until the next one.
fn failure_signature(
    state: &RunState,
    current: &Current,
    verdict: Verdict,
    run_dir: &Path,
) -> Option<Digest> {
    if let Some((_, failed)) = state.result.disproved.as_ref().filter(|_| verdict == Verdict::Candidate) {
        return Some(proof_failure(failed));
    }
    let failing: Vec<_> = state
        .work
        .checks
        .values()
        .filter(|r| !r.passed && Some(&r.tree) == state.work.tree.as_ref())
        .collect();
    if !failing.is_empty() {
        let mut text = String::new();
        for result in failing {
            let output = read_tail(&run_dir.join(&result.log), OUTPUT_MAX);
            let part = stuck::failure::signature(&result.name, result.exit_code, &output);
            text.push_str(part.as_str());
        }
        return Some(Digest::of(text.as_bytes()));
    }
    if let Some((tree, failed)) = &state.result.disproved
        && Some(tree) == state.work.tree.as_ref()
    {
        return Some(proof_failure(failed));
    }
    let session = current.session.as_ref()?;
    match &session.end {
        SessionEnd::Completed | SessionEnd::Stopped { .. } => None,
        end => Some(stuck::failure::signature(end.word(), session.exit_code, end.reason().unwrap_or(""))),
    }
}

/// What fails: required checks on the current files, else what the final check rejected.
fn failing_words(state: &RunState) -> Vec<String> {
    let required = &state.spec.settings.required_verifiers;
    let current = |result: &&CheckResult| !result.passed && Some(&result.tree) == state.work.tree.as_ref();
    let names: Vec<String> = required
        .iter()
        .filter_map(|name| state.work.checks.get(name).filter(current))
        .map(|result| result.name.clone())
        .collect();
    match &state.result.disproved {
        Some((tree, failed)) if names.is_empty() && Some(tree) == state.work.tree.as_ref() => {
            let said = failed.iter().take(3).map(|line| one_line(line, 120));
            said.map(|line| format!("{}{line}", Verdict::FINAL_CHECK)).collect()
        }
        _ => names,
    }
}

fn test_output(state: &RunState, current: &Current, run_dir: &Path) -> String {
    let mut text = String::new();
    for name in &current.checked {
        let Some(result) = state.work.checks.get(name) else { continue };
        let verdict = if result.passed { "passed" } else { result.why.as_deref().unwrap_or("failed") };
        let _ = writeln!(text, "== {name}: {verdict} (whole log: {})", result.log);
        text.push_str(&read_tail(&run_dir.join(&result.log), OUTPUT_MAX));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if text.is_empty() {
        text.push_str("no verifier ran in this iteration\n");
    }
    text
}
