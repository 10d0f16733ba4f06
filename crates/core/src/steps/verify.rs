//! Verify: runs checks and records their results. After the user fixed the environment, the checks of the existing work
//! are repeated before paying for another session.

use crate::error::DriveError;
use crate::run::Run;
use crate::steps::checks::check::{CheckOptions, CheckOutcome, CheckRuns, CheckTarget, run_check};
use crate::steps::checks::clean_checkout::{self, SetupEnd, make_dir};
use crate::steps::checks::installed;
use crate::steps::checks::missing_programs::fault_of;
use ralph_loop_protocol::display::text::tail_lines;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::TreeId;
use ralph_loop_protocol::outcome::HumanReason;
use ralph_loop_task::config::VerifierConfig;
use std::path::Path;

pub(crate) fn verify(run: &mut Run, checks: &[String]) -> Result<(), DriveError> {
    match run.state.iterations.current {
        Some(_) => verify_iteration(run, checks),
        None => recheck(run, checks),
    }
}

/// Runs checks on the tree that a session left.
fn verify_iteration(run: &mut Run, checks: &[String]) -> Result<(), DriveError> {
    run.boundary("verify.before");
    let (Some(current), Some(tree)) = (&run.ledger.state.iterations.current, run.state.work.tree.clone())
    else {
        return Ok(());
    };
    let iteration = current.iteration;
    let folder = run.ledger.iteration_dir(iteration)?;
    let mut runs = CheckRuns::default();
    for name in checks {
        let Some(verifier) = run.state.spec.settings.verifiers.iter().find(|v| v.name == *name).cloned()
        else {
            continue;
        };
        let log = folder.join(format!("check-{name}.log"));
        let place = CheckTarget {
            sandbox: &*run.ports.sandbox,
            tree: &tree,
            log: &log,
            how: CheckOptions::default(),
        };
        let checked = match run.ledger.is_hidden(&verifier) {
            true => verify_hidden(run, &verifier, &tree, &folder)?,
            false => runs.run(&mut run.ledger, &verifier, &place)?,
        };
        match checked {
            CheckOutcome::Result(result, excerpt, _) => {
                if !result.passed {
                    let why = result.why.clone().unwrap_or_default();
                    let before = run.state.work.checks.get(name);
                    // Prompts quote these entries, and the output of the last one once more.
                    let is_same = before.is_some_and(|before| before.log_digest == result.log_digest);
                    let lines = if is_same && !excerpt.trim().is_empty() {
                        "(same output as before)"
                    } else {
                        tail_lines(&excerpt, 30)
                    };
                    let lines = lines.to_owned();
                    run.error_entry(&format!("iteration {iteration}: {name} failed: {why}"), &lines);
                }
                run.boundary("verify.ran");
                run.record(EventBody::CheckFinished { iteration, result: *result })?;
            }
            CheckOutcome::Stopped => return Ok(()),
        }
    }
    run.boundary("verify.after");
    Ok(())
}

/// Repeats checks on the existing work and asks the user again if the environment still lacks something.
fn recheck(run: &mut Run, checks: &[String]) -> Result<(), DriveError> {
    let tree = run.ports.workspace.tree()?;
    let logs = run.record_dir.path().join("recheck");
    make_dir(&logs)?;
    let iteration = run.state.iterations.count;
    let mut runs = CheckRuns::default();
    run.notice("the checks are run again before another session".to_owned())?;
    for name in checks {
        let known = run.state.spec.settings.verifiers.iter().find(|v| v.name == *name).cloned();
        let Some(verifier) = known else { continue };
        let log = logs.join(format!("check-{name}.log"));
        let how = CheckOptions::default();
        let place = CheckTarget { sandbox: &*run.ports.sandbox, tree: &tree, log: &log, how };
        match runs.run(&mut run.ledger, &verifier, &place)? {
            CheckOutcome::Result(result, ..) => {
                run.record(EventBody::CheckFinished { iteration, result: *result })?;
            }
            CheckOutcome::Stopped => return Ok(()),
        }
    }
    let before = run.state.stuck.environment.as_ref().map(|(fault, _)| fault.clone());
    let now = fault_of(&run.ledger.state, run.record_dir.path());
    if let Some(fault) = now.filter(|fault| before.as_ref() == Some(fault)) {
        let message = format!("the checks still lack what they need: {fault}");
        run.record(EventBody::NeedsHuman { reason: HumanReason::Setup, message })?;
    }
    run.flush()?;
    Ok(())
}

/// Runs a hidden check in a clean checkout, where sessions find nothing of it.
pub(crate) fn verify_hidden(
    run: &mut Run,
    verifier: &VerifierConfig,
    tree: &TreeId,
    logs: &Path,
) -> Result<CheckOutcome, DriveError> {
    let state = &run.ledger.state;
    let Some(baseline) = &state.baseline else { return Ok(CheckOutcome::Stopped) };
    let commit = state.work.commit.clone().unwrap_or_else(|| baseline.head.clone());
    let checked = run.ports.workspace.unreferenced_commit(tree, &commit, run.clock.now())?.unwrap_or(commit);
    clean_checkout::in_clean_folder(run, |run, folder| {
        run.ports.workspace.checkout_clean(&checked, folder)?;
        let checkout = installed::open_checkout(run, folder)?;
        match clean_checkout::run_setup(run, &checkout, logs)? {
            SetupEnd::Ready | SetupEnd::Failed { .. } => {}
            SetupEnd::Stopped => return Ok(CheckOutcome::Stopped),
        }
        let log = logs.join(format!("check-{}.log", verifier.name));
        let how = CheckOptions { env: &checkout.env, watch: false };
        run_check(
            &mut run.ledger,
            verifier,
            &CheckTarget { sandbox: &*checkout.sandbox, tree, log: &log, how },
        )
    })
}
