//! The loop: ask what comes next, do it, journal what happened, ask again.
//!
//! A new run has an empty journal and a killed one a longer journal: both start here.

use crate::error::DriveError;
use crate::ports::RunPorts;
use crate::result::whole_diff;
use crate::run::Run;
use crate::{inbox, steps};
use ralph_loop_domain::decide::{Step, decide};
use ralph_loop_protocol::outcome::RunResult;

/// What a step left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Performed and journaled; another step may follow.
    Continue,
    /// The run is over, suspended, or needs the user.
    Idle,
}

/// Drives a run until it ends, is suspended, or needs the user. After an error, [`Run::resume`] continues from the
/// journal.
pub fn drive(mut run: Run) -> RunResult {
    let driven = step_to_the_end(&mut run);
    run.close(driven)
}

/// Like [`drive`], but also returns the run's patch, and the ports for driving it again.
pub fn drive_and_release(mut run: Run) -> (RunResult, String, RunPorts) {
    let driven = step_to_the_end(&mut run);
    let result = run.close(driven);
    let diff = whole_diff(&run);
    (result, diff, run.into_ports())
}

fn step_to_the_end(run: &mut Run) -> Result<(), DriveError> {
    while step(run)? == Progress::Continue {}
    Ok(())
}

/// Performs and journals one step. A session, a check or a wait is one step; the cancel flag and the inbox end it
/// early. A crash at any point repeats it: every effect can be recognized as already done.
pub fn step(run: &mut Run) -> Result<Progress, DriveError> {
    inbox::apply(run)?;
    run.ledger.tick();
    let step = next(run)?;
    if steps::suspend(run, &step)? {
        return Ok(Progress::Idle);
    }
    tracing::debug!(?step, seq = run.state.seq.0, "next");
    let recurs = matches!(step, Step::Work(_) | Step::Checkpoint(_) | Step::Verify { .. } | Step::Judge);
    match step {
        Step::Prepare => steps::prepare(run),
        Step::Work(session) => steps::work(run, session),
        Step::Checkpoint(left) => steps::checkpoint(run, left),
        Step::Verify { checks } => steps::verify(run, &checks),
        Step::Judge => steps::judge(run),
        Step::Recover(help) => steps::recover(run, help),
        Step::Wait { reason, until } => steps::wait(run, &reason, until),
        Step::Prove => steps::prove(run),
        Step::Publish(due) => steps::publish(run, due),
        Step::AskUser(need) => steps::ask(run, need),
        Step::Finish { reason, summary } => steps::finish(run, reason, summary),
        Step::Done(_) => return Ok(Progress::Idle),
    }?;
    if recurs {
        run.ledger.end_step();
    }
    Ok(Progress::Continue)
}

/// The next step. No session starts if the engine's own work used up the time.
fn next(run: &mut Run) -> Result<Step, DriveError> {
    match decide(&run.state) {
        Step::Work(_) if run.ledger.check_overhead()? => Ok(decide(&run.state)),
        step => Ok(step),
    }
}
