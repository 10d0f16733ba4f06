//! What a run's sandboxes report, in the journal: their life cycle, and hosts they blocked.

use crate::error::DriveError;
use crate::run::Run;
use ralph_loop_domain::ports::{Dismissal, SandboxEvent};
use ralph_loop_protocol::event::{EgressRefused, EventBody};
use ralph_loop_protocol::outcome::EndReason;

/// Journals hosts blocked since the last call.
pub(crate) fn record_refusals(run: &mut Run) -> Result<(), DriveError> {
    for ((host, port), (reason, times)) in run.ports.refusals.take() {
        let (host, reason) = (run.redactor.text(&host).into_owned(), run.redactor.text(&reason).into_owned());
        run.record(EventBody::EgressRefused(EgressRefused { host, port, reason, times }))?;
    }
    for sentence in run.ports.refusals.take_notes() {
        let sentence = run.redactor.text(&sentence).into_owned();
        run.notice(sentence)?;
    }
    Ok(())
}

/// Journals sandbox events since the last call.
pub(crate) fn record_sandbox_events(run: &mut Run) -> Result<(), DriveError> {
    let news = run.ports.keeper.as_ref().map(|keeper| keeper.news()).unwrap_or_default();
    for news in news {
        match news {
            SandboxEvent::Ready(made) => run.record(EventBody::SandboxReady(made)).map(drop)?,
            SandboxEvent::Gone(gone) => run.record(EventBody::SandboxGone(gone)).map(drop)?,
            SandboxEvent::Notice(words) => {
                let words = run.redactor.text(&words).into_owned();
                run.notice(words)?;
            }
        }
    }
    Ok(())
}

/// Dismisses sandboxes at the end. A failed removal must not turn success into failure.
pub(crate) fn dismiss_sandboxes(run: &mut Run) {
    let Some(keeper) = &run.ports.keeper else { return };
    let state = &run.ledger.state;
    let done = state.result.finished.as_ref().is_some_and(|end| {
        // An unsuccessful run must leave nothing unpushed.
        let pushed = state.handover.state.is_some() && state.handover.pushed == state.work.commit;
        end.reason == EndReason::Completed || pushed
    });
    keeper.dismiss(if done { Dismissal::Safe } else { Dismissal::Unfinished });
    record_sandbox_events(run).ok();
}
