//! Judge: an iteration's verdict, stuck signals, receipt and changelog lines.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::record::log_tail::read_tail;
use crate::record::{changelog, receipt};
use crate::step::{evidence, stuck_signs};
use ralph_loop_domain::budget_warning::budget_warnings;
use ralph_loop_domain::decide::judge;
use ralph_loop_domain::ports::ReleaseWhen;
use ralph_loop_domain::recovery;
use ralph_loop_domain::state::{Current, RunState, proof_failure};
use ralph_loop_domain::stuck;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{CheckResult, EventBody, SessionEnd, Verdict};
use ralph_loop_protocol::id::Digest;
use std::fmt::Write as _;
use std::path::Path;

const OUTPUT_MAX: u64 = 64 * 1024;
/// Consecutive iterations lacking only the claim, before the user is informed.
const UNCLAIMED_TOLD: usize = 2;

impl Driver {
    pub(crate) fn judge(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("judge.before");
        let Some(current) = self.ctx.state.iterations.current.clone() else { return Ok(()) };
        let iteration = current.iteration;
        let folder = self.ctx.iteration_dir(iteration)?;
        let verdict = judge(&self.ctx.state);
        if current.outdated && current.session.as_ref().is_some_and(|session| session.promised) {
            self.ctx.notice(
                "the task was edited during this session: its promise doesn't count, and the next session works on the new text"
                    .to_owned(),
            )?;
        }
        let failure = failure_signature(&self.ctx.state, &current, verdict, self.ctx.run.path());
        let mut evidence = evidence::read(&self.ctx.state, &current, self.ctx.run.path(), &folder);
        let signals = self.score(&current, failure.as_ref(), &mut evidence)?;
        let context = stuck_signs::details(&self.ctx.state, &current, self.ctx.run.path(), &folder);
        let metric = evidence.metric.clone();
        let went_back = verdict != Verdict::Candidate && self.keep_best(iteration, metric.as_ref())?;
        if self.tick(iteration)? || went_back {
            self.checkpoint()?;
        }
        // Its files show how it ended, including the engine's marks.
        let current = self.ctx.state.iterations.current.clone().unwrap_or(current);
        self.ctx.files.write(
            &folder.join("test_output.txt"),
            test_output(&self.ctx.state, &current, self.ctx.run.path()).as_bytes(),
        )?;
        self.write_pr_state(iteration)?;
        let receipt = receipt::receipt(&self.ctx.state, &current, verdict, self.ctx.clock.now());
        self.ctx
            .files
            .write(&folder.join("metrics.json"), &receipt::metrics(&self.ctx.state, &current, &signals))?;
        let digest = self.ctx.files.write(&folder.join("receipt.json"), &receipt)?;
        self.ctx.boundary("judge.receipt");
        changelog::append(&self.ctx, &current, verdict)?;
        let seen = signals.clone();
        let failing = failing_words(&self.ctx.state);
        self.ctx.record(EventBody::IterationEnded {
            iteration,
            verdict,
            signals,
            failure,
            failing,
            receipt: digest,
            evidence: Box::new(evidence),
        })?;
        if self.ctx.state.unclaimed_iterations() == UNCLAIMED_TOLD {
            self.ctx.notice(format!(
                "the checks pass, but {UNCLAIMED_TOLD} sessions in a row didn't say that the task is done; `ralph` asks the next one to; if passing checks are enough, set `\"completion\": \"checks\"` in .ralph/config.json"
            ))?;
        }
        for news in recovery::notice(&self.ctx.state, iteration, verdict, &seen, context.clone()) {
            self.ctx.record(news)?;
            self.ask_advisor(seen.kinds(), seen.loop_score, &seen.evidence, &context)?;
        }
        if let Some(rest) = recovery::breaker(&self.ctx.state, &current.agent, self.ctx.clock.now()) {
            self.ctx.record(rest)?;
            self.ctx.save_cooldowns()?;
        }
        for warning in budget_warnings(&self.ctx.state) {
            self.ctx.record(warning)?;
        }
        self.ctx.flush()?;
        for agent in &self.agents {
            agent.release_resources(ReleaseWhen::Idle);
            self.ctx.note_resources(&**agent);
        }
        self.ctx.boundary("judge.after");
        Ok(())
    }
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
            said.map(|line| format!("final check: {line}")).collect()
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
