//! Moves a run: records in the journal where it lives now.

use crate::error::DriveError;
use crate::resume::run_writer::over_named_spec;
use crate::steps::prepare::protected_patterns;
use ralph_loop_domain::decide::decide;
use ralph_loop_domain::ports::{Baseline, Clock};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::{RunState, Stage};
use ralph_loop_domain::step::{Left, Step};
use ralph_loop_journal::folder::snapshot;
use ralph_loop_journal::journal::{Journal, RunPaths};
use ralph_loop_protocol::event::{EventBody, Moved};
use ralph_loop_task::spec::RunSpec;
use std::sync::Arc;

/// Reads the run from the journal in this folder.
pub fn read(places: &RunPaths) -> Result<RunState, DriveError> {
    let spec = snapshot::read_spec(&places.dir)?;
    let mut state = RunState::new(spec);
    let (_, _) =
        Journal::open(places.clone(), Arc::new(Redactor::default()), &mut |event| state.apply(event))?;
    over_named_spec(places, state)
}

/// Protected paths, for the workspace that takes over the run.
pub fn protected(spec: &RunSpec) -> Vec<String> {
    protected_patterns(spec)
}

/// The iteration whose work was lost: its session ended, but nothing was stored.
fn lost(state: &RunState) -> Option<u32> {
    let worked = state.iterations.current.as_ref().filter(|current| current.stage == Stage::Worked);
    // What a void session leads to (a cooldown, a dropped agent) needs none of its files.
    worked.filter(|_| decide(state) != Step::Checkpoint(Left::Void)).map(|current| current.iteration)
}

/// Journals the new spec and baseline. A session whose work was lost doesn't count: judged by these files it
/// would have changed nothing.
pub fn move_here(
    places: &RunPaths,
    redactor: Arc<Redactor>,
    state: &RunState,
    (spec, baseline): (&RunSpec, Baseline),
    from: &str,
    clock: &dyn Clock,
) -> Result<(), DriveError> {
    let (mut journal, _) = Journal::open(places.clone(), redactor, &mut |_| {})?;
    let spec = snapshot::write_spec(places, spec)?;
    journal.append(EventBody::Moved(Moved { spec, baseline, from: from.to_owned() }), clock.now())?;
    if let Some(iteration) = lost(state) {
        let reason = "what the session wrote was lost with the machine that it ran on".to_owned();
        journal.append(EventBody::IterationVoided { iteration, reason }, clock.now())?;
    }
    journal.barrier()?;
    Ok(())
}
