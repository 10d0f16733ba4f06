//! A hold on a run: its journal is open and names this process as the driver. The workspace may not exist
//! yet; if the process is killed while creating it, another one continues.

use crate::error::DriveError;
use ralph_loop_domain::ports::Clock;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_journal::journal::{Journal, RunPaths};
use ralph_loop_protocol::event::{Event, EventBody, Placed};
use ralph_loop_protocol::id::{Digest, MachineId, Seq};
use ralph_loop_protocol::lease::DriverLease;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::spec::RunSpec;
use std::sync::Arc;

/// What a [`RunWriter`] needs.
#[derive(Clone)]
pub struct WriterOptions {
    pub places: RunPaths,
    pub redactor: Arc<Redactor>,
    pub clock: Arc<dyn Clock>,
    /// This machine's id.
    pub machine: Option<MachineId>,
    /// Version of the driving program, for the journal.
    pub version: Option<String>,
}

/// The single writer of a run's journal, until this process ends.
pub struct RunWriter {
    pub(crate) state: RunState,
    pub(crate) journal: Journal,
    pub(crate) lease: DriverLease,
    /// Events so far, for observers attached later.
    pub(crate) events: Vec<Event>,
    pub(crate) healed_bytes: u64,
    /// Whether no earlier process drove it.
    pub(crate) first: bool,
    clock: Arc<dyn Clock>,
}

impl RunWriter {
    /// Freezes the spec and opens the journal. From here on the run exists.
    pub fn create(spec: RunSpec, writer_options: &WriterOptions) -> Result<Self, DriveError> {
        writer_options.places.dir.create()?;
        let digest = snapshot::write_spec(&writer_options.places, &spec)?;
        let title = spec.task.title.clone();
        let journal = Journal::create(writer_options.places.clone(), writer_options.redactor.clone())?;
        let mut writer = Self::over(RunState::new(spec), journal, writer_options);
        writer.record(EventBody::RunCreated { spec: digest, title })?;
        writer.take_lease(0)?;
        Ok(writer)
    }

    /// Opens a run of an earlier process by replaying its journal.
    pub fn open(writer_options: &WriterOptions) -> Result<Self, DriveError> {
        let places = &writer_options.places;
        let spec =
            snapshot::read_spec(&places.dir).or_else(|error| snapshot::sealed_spec(places).ok_or(error))?;
        let mut state = RunState::new(spec);
        let (journal, opened) =
            Journal::open(places.clone(), writer_options.redactor.clone(), &mut |event| state.apply(event))?;
        let state = over_named_spec(places, state)?;
        let mut writer = Self::over(state, journal, writer_options);
        writer.healed_bytes = opened.healed_bytes;
        if writer.journal.seq() == Seq(0) {
            // Killed before the first event was complete: the run exists because its frozen spec does.
            let spec = serde_json::to_vec_pretty(&writer.state.spec).unwrap_or_default();
            let title = writer.state.spec.task.title.clone();
            writer.record(EventBody::RunCreated { spec: Digest::of(&spec), title })?;
        }
        writer.take_lease(opened.torn_bytes)?;
        Ok(writer)
    }

    fn over(state: RunState, journal: Journal, writer_options: &WriterOptions) -> Self {
        let (machine, version) = (writer_options.machine.clone(), writer_options.version.clone());
        // If another store counts the leases of a run, its count is the one that fences.
        let held = writer_options.places.elsewhere.as_ref().map(|elsewhere| elsewhere.epoch());
        let epoch = held.unwrap_or_default().max(state.epoch.next());
        let lease = DriverLease { machine, epoch: Some(epoch), version };
        let (first, clock) = (state.driver_pid.is_none(), writer_options.clock.clone());
        Self { state, journal, lease, events: Vec::new(), healed_bytes: 0, first, clock }
    }

    /// Journals that this process drives the run.
    fn take_lease(&mut self, torn_bytes: u64) -> Result<(), DriveError> {
        let (pid, lease) = (std::process::id(), self.lease.clone());
        self.record(EventBody::DriverStarted { pid, torn_bytes, lease })
    }

    /// Journals the run's workspace.
    pub fn placed(&mut self, placed: Placed) -> Result<(), DriveError> {
        self.record(EventBody::Placed(placed))?;
        Ok(self.journal.barrier()?)
    }

    /// Ends a run that can't or needn't be driven: its workspace is missing.
    pub fn end(mut self, reason: EndReason, summary: &str) -> Result<(), DriveError> {
        self.record(EventBody::Finished { reason, summary: summary.to_owned() })?;
        Ok(self.journal.barrier()?)
    }

    fn record(&mut self, body: EventBody) -> Result<(), DriveError> {
        let event = self.journal.append(body, self.clock.now())?;
        self.state.apply(&event);
        self.events.push(event);
        Ok(())
    }

    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// This process's lease, as journaled.
    pub fn lease(&self) -> &DriverLease {
        &self.lease
    }
}

/// The state with the spec that the journal names by digest, from any copy: the file in the run folder may
/// have been edited while the run was stopped.
pub(crate) fn over_named_spec(places: &RunPaths, state: RunState) -> Result<RunState, DriveError> {
    let Some(digest) = &state.spec_digest else { return Ok(state) };
    let path = places.dir.spec();
    if std::fs::read(&path).is_ok_and(|text| Digest::of(&text) == *digest) {
        return Ok(state);
    }
    match snapshot::find_spec(places, digest) {
        Some(text) => Ok(snapshot::replay(&places.dir, snapshot::parse_spec(&path, &text)?)?),
        None => Ok(state),
    }
}
