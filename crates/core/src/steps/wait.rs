//! Wait: for a rate limit or the user, in small steps so that controls are read. Waiting is neither an
//! iteration nor stagnation.

use crate::error::DriveError;
use crate::inbox;
use crate::observers::SessionProgress;
use crate::record::recorder::POLL;
use crate::run::Run;
use crate::steps::publish;
use jiff::Timestamp;
use ralph_loop_domain::decide::{Step, decide};
use ralph_loop_domain::handover::Gate;
use ralph_loop_protocol::event::EventBody;

pub(crate) fn wait(run: &mut Run, reason: &str, until: Option<Timestamp>) -> Result<(), DriveError> {
    let begun = run.clock.elapsed();
    run.record(EventBody::WaitStarted { reason: reason.to_owned(), until })?;
    run.flush()?;
    run.boundary("wait.started");
    let mut news = None;
    loop {
        let now = run.clock.now();
        run.ledger.state.tick(now);
        inbox::read(&mut run.ledger)?;
        if run.cancel.get().is_some() || run.cancel.is_idle_requested() {
            break;
        }
        // A control, or the end of the wait, may change the next step.
        match decide(&run.ledger.state) {
            Step::Wait { until: still, .. } if still == until => {}
            _ => break,
        }
        if let Some(gate) = run.state.handover.gate.map(|facts| facts.gate)
            && run.cancel.take_refresh()
        {
            news = Some(gate);
            break;
        }
        let live =
            SessionProgress { now, elapsed: run.clock.elapsed() - begun, silent: None, activity: reason };
        run.ledger.observer.live(&run.ledger.state, &live);
        run.ledger.rest(POLL);
    }
    let waited_ms = (run.clock.elapsed() - begun).as_millis() as u64;
    run.record(EventBody::WaitEnded { waited_ms })?;
    match news {
        Some(Gate::Checks) => publish::read_checks(run),
        Some(Gate::Review) => publish::read_review(run),
        None => Ok(()),
    }
}
