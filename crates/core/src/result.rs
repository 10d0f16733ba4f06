//! The end of driving a run: its result object, with a typed error.

use crate::error::DriveError;
use crate::record::sandboxes;
use crate::run::Run;
use crate::steps::prepare;
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::money::Usd;
use ralph_loop_protocol::outcome::{EndReason, ErrorCode, HumanReason, RunError, RunResult};
use ralph_loop_protocol::proof::level::ProofLevel;

/// Size limit of the diff for the caller.
const DIFF_MAX: usize = 16 * 1024 * 1024;

impl Run {
    /// Ends driving: dismisses sandboxes, syncs the journal, returns the result. `driven` is the last step's
    /// outcome.
    pub fn close(&mut self, driven: Result<(), DriveError>) -> RunResult {
        let recorded = driven.and_then(|()| sandboxes::record_sandbox_events(self));
        sandboxes::dismiss_sandboxes(self);
        let flushed = self.ledger.settle();
        prepare::clear_marker(self);
        self.ledger.show_end();
        match recorded.and(flushed) {
            Ok(()) => result(self, None),
            Err(error) => {
                let run_error = error.to_run_error(Some(self.state.iterations.count + 1));
                result(self, Some(run_error))
            }
        }
    }
}

/// All changes of the run, redacted.
pub(crate) fn whole_diff(run: &Run) -> String {
    let state = &run.ledger.state;
    let (Some(baseline), Some(work)) = (&state.baseline, &state.work.commit) else {
        return String::new();
    };
    let patch =
        run.ports.workspace.patch(baseline.head.as_str(), work.as_str(), DIFF_MAX).unwrap_or_default();
    run.redactor.text(&String::from_utf8_lossy(&patch)).into_owned()
}

fn result(run: &Run, error: Option<RunError>) -> RunResult {
    let state = &run.ledger.state;
    let (reason, summary) = match (&error, &state.result.finished, &state.people.needs_human) {
        (Some(error), _, _) => (EndReason::Error, error.message.clone()),
        (None, Some(end), _) => (end.reason, end.summary.clone()),
        (None, None, Some(need)) => (EndReason::NeedsHuman, need.message.clone()),
        (None, None, None) if state.people.suspended_by.is_some() => (EndReason::Suspended, suspended(state)),
        (None, None, None) => (EndReason::Error, "the run stopped without an end".into()),
    };
    let clean = |text: &str| run.redactor.text(text).into_owned();
    let summary = clean(&summary);
    let error = error.or_else(|| ending_error(reason, &summary, state));
    let error = error.map(|e| RunError { message: clean(&e.message), ..e });
    let files = match (&state.baseline, &state.work.commit) {
        (Some(baseline), Some(work)) => run
            .ports
            .workspace
            .changes(baseline.head.as_str(), work.as_str())
            .map(|files| {
                files.into_iter().filter(|f| !f.path.starts_with(".ralph/")).map(|f| clean(&f.path)).collect()
            })
            .unwrap_or_else(|_| state.work.touched.iter().cloned().collect()),
        _ => Vec::new(),
    };
    RunResult {
        success: reason == EndReason::Completed,
        reason,
        run_id: Some(state.spec.run_id.clone()),
        run_dir: Some(run.record_dir.path().to_owned()),
        workspace: Some(state.spec.home().to_owned()),
        iterations: state.iterations.count,
        cost: state.spending.totals.cost,
        compute_usd: state.spending.compute.known_cost(),
        sandboxes: state.spending.compute.sandboxes.iter().map(|sandbox| sandbox.id.clone()).collect(),
        tokens: state.spending.totals.tokens,
        saved_usd: Some(state.spending.totals.saved).filter(|saved| *saved > Usd::ZERO),
        elapsed_seconds: state.elapsed().as_secs_f64(),
        summary,
        level: match &state.result.proof {
            Some(proof) => proof.level,
            None => (reason == EndReason::Completed).then_some(ProofLevel::AlreadyTrue),
        },
        difference: state.result.proof.as_ref().map(|proof| proof.difference.clone()).unwrap_or_default(),
        watched: state.result.proof.as_ref().filter(|proof| proof.passed).map(|proof| proof.watched),
        branch: ralph_loop_domain::view::branch(state),
        work_ref: ralph_loop_domain::view::work_ref(state),
        pr_url: state.handover.pr.as_ref().map(|pr| pr.url.clone()),
        files_changed: files,
        error,
    }
}

fn suspended(state: &RunState) -> String {
    let by = state.people.suspended_by.as_deref().unwrap_or("a signal");
    let done = ralph_loop_protocol::display::text::count(state.iterations.count as usize, "iteration");
    format!("Suspended by {by} after {done}. `ralph resume {}` continues.", state.spec.run_id)
}

/// The typed error for an end without success.
fn ending_error(reason: EndReason, summary: &str, state: &RunState) -> Option<RunError> {
    let run = &state.spec.run_id;
    let larger_budget = || {
        let option = reason.budget_option().unwrap_or_default();
        format!("`ralph resume {run} {option}` continues with a larger budget")
    };
    let (code, hint, recoverable) = match reason {
        EndReason::Completed | EndReason::Stopped | EndReason::Cancelled | EndReason::Suspended => {
            return None;
        }
        EndReason::MaxIterations => (ErrorCode::MaxIterations, larger_budget(), true),
        EndReason::MaxCost => (ErrorCode::MaxCost, larger_budget(), true),
        EndReason::MaxTokens => (ErrorCode::MaxTokens, larger_budget(), true),
        EndReason::Timeout => (ErrorCode::Timeout, larger_budget(), true),
        EndReason::NoChange if state.unclaimed_iterations() > 0 => (
            ErrorCode::Stuck,
            format!("`ralph diff {run}` shows the work; set `completion`, then `ralph run` the task again"),
            false,
        ),
        EndReason::NoChange => (
            ErrorCode::Stuck,
            "write a sharper task that says what should change, then `ralph run` it".to_owned(),
            false,
        ),
        EndReason::Stuck => (ErrorCode::Stuck, format!("`ralph show {run}` shows what was tried"), false),
        EndReason::NeedsHuman => {
            let need = state.people.needs_human.as_ref();
            let hint =
                need.map_or_else(|| format!("`ralph resume {run}` continues"), |n| n.answer(run.as_str()));
            let publish = need.is_some_and(|need| need.reason == HumanReason::Publish);
            let code = if publish { ErrorCode::GitPushFailed } else { ErrorCode::NeedsHuman };
            (code, hint, true)
        }
        EndReason::Error if state.agents.dropped.is_empty() => {
            (ErrorCode::IterationFailed, format!("`ralph show {run}` shows what happened"), true)
        }
        // The run is over and won't use the dropped agent again.
        EndReason::Error => {
            let hint = match state.agents.dropped.keys().next() {
                Some(agent) if state.agents.dropped.len() == 1 => {
                    format!("`ralph probe {agent}` shows whether it works; then start again with `ralph run`")
                }
                _ => "`ralph probe` shows what's wrong with each agent".to_owned(),
            };
            (ErrorCode::AuthFailed, hint, false)
        }
    };
    Some(RunError {
        code,
        message: summary.to_owned(),
        hint: Some(hint),
        recoverable,
        iteration: Some(state.iterations.count + 1),
    })
}
