//! Finish: ends the run, suspends it, or asks the user.

use crate::error::DriveError;
use crate::inbox;
use crate::run::Run;
use crate::steps::checkpoint;
use ralph_loop_domain::decide::Step;
use ralph_loop_domain::state::NeedsHuman;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::outcome::EndReason;

pub(crate) fn finish(run: &mut Run, reason: EndReason, summary: String) -> Result<(), DriveError> {
    run.boundary("finish.before");
    match reason {
        EndReason::Cancelled => checkpoint::push_refs_to_user_repo(run)?,
        _ => checkpoint::hand_back(run, None)?,
    }
    run.record(EventBody::Finished { reason, summary })?;
    run.boundary("finish.after");
    Ok(())
}

pub(crate) fn ask(run: &mut Run, need: NeedsHuman) -> Result<(), DriveError> {
    run.record(EventBody::NeedsHuman { reason: need.reason, message: need.message }).map(|_| ())
}

/// Suspends the run if that is requested and the next step isn't its end.
pub(crate) fn suspend(run: &mut Run, step: &Step) -> Result<bool, DriveError> {
    if matches!(step, Step::Work(_) | Step::Wait { .. }) && run.cancel.is_idle_requested() {
        run.record(EventBody::Suspended { by: "the worker, between two iterations".into() })?;
        return Ok(true);
    }
    let Some(by) = run.cancel.get() else { return Ok(false) };
    let ends_anyway = matches!(step, Step::Done(_) | Step::Finish { .. });
    if ends_anyway || run.state.people.cancel_by.is_some() {
        return Ok(false);
    }
    if run.ledger.observer.ends_for_good() {
        inbox::cancel_instead(&mut run.ledger, by)?;
        return Ok(false);
    }
    run.record(EventBody::Suspended { by: by.into() })?;
    Ok(true)
}
