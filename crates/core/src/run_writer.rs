//! A hold on a run: its journal is open and says that this process drives it. Where the run works need not be made yet, so a
//! process that is killed while it makes that leaves a run that another one goes on with.

use crate::error::DriveError;
use ralph_loop_domain::ports::Clock;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::journal::{Journal, Places};
use ralph_loop_journal::layout::RunDir;
use ralph_loop_journal::snapshot;
use ralph_loop_protocol::event::{Event, EventBody, Placed};
use ralph_loop_protocol::id::{Digest, MachineId, Seq};
use ralph_loop_protocol::lease::DriverLease;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::spec::RunSpec;
use std::sync::Arc;

/// What a [`RunWriter`] needs: the journal's files, the redactor, the clock, who writes.
#[derive(Clone)]
pub struct WriterOptions {
    /// Where the journal's files are.
    pub places: Places,
    /// Knows the secrets.
    pub redactor: Arc<Redactor>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The machine that drives, where it has an id.
    pub machine: Option<MachineId>,
    /// The version of the program that drives, for the journal.
    pub version: Option<String>,
}

/// The one writer of a run's journal: this process, until it ends.
pub struct RunWriter {
    pub(crate) state: RunState,
    pub(crate) journal: Journal,
    pub(crate) lease: DriverLease,
    /// What was journalled so far, for those who will watch.
    pub(crate) events: Vec<Event>,
    pub(crate) healed_bytes: u64,
    /// Whether no process has driven it before.
    pub(crate) first: bool,
    clock: Arc<dyn Clock>,
}

impl RunWriter {
    /// A new run: freezes the spec and opens the journal. From here on the run exists.
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

    /// A run of an earlier process: replays its journal.
    pub fn open(writer_options: &WriterOptions) -> Result<Self, DriveError> {
        let places = &writer_options.places;
        let spec = snapshot::read_spec(&places.dir).or_else(|error| match &places.spare {
            // An older layout: the record is gone (`git clean -fdx`), its spare links are not.
            Some(spare) => snapshot::read_spec(&RunDir::at(spare)).map_err(|_| error),
            None => snapshot::sealed_spec(places).ok_or(error),
        })?;
        let mut state = RunState::new(spec);
        let (journal, opened) =
            Journal::open(places.clone(), writer_options.redactor.clone(), &mut |event| state.apply(event))?;
        let state = over_named_spec(places, state)?;
        let mut writer = Self::over(state, journal, writer_options);
        writer.healed_bytes = opened.healed_bytes;
        if writer.journal.seq() == Seq(0) {
            // Killed before its first event was whole: the frozen spec is there, so the run is.
            let spec = serde_json::to_vec_pretty(&writer.state.spec).unwrap_or_default();
            let title = writer.state.spec.task.title.clone();
            writer.record(EventBody::RunCreated { spec: Digest::of(&spec), title })?;
        }
        writer.take_lease(opened.torn_bytes)?;
        Ok(writer)
    }

    fn over(state: RunState, journal: Journal, writer_options: &WriterOptions) -> Self {
        let (machine, version) = (writer_options.machine.clone(), writer_options.version.clone());
        // Where somebody else counts the holds on a run, that count is the one that fences.
        let held = writer_options.places.elsewhere.as_ref().map(|elsewhere| elsewhere.epoch());
        let epoch = held.unwrap_or_default().max(state.epoch.next());
        let lease = DriverLease { machine, epoch: Some(epoch), version };
        let (first, clock) = (state.driver_pid.is_none(), writer_options.clock.clone());
        Self { state, journal, lease, events: Vec::new(), healed_bytes: 0, first, clock }
    }

    /// Says in the journal that this process drives from here on.
    fn take_lease(&mut self, torn_bytes: u64) -> Result<(), DriveError> {
        let (pid, lease) = (std::process::id(), self.lease.clone());
        self.record(EventBody::DriverStarted { pid, torn_bytes, lease })
    }

    /// Journals where the run works from here on.
    pub fn placed(&mut self, placed: Placed) -> Result<(), DriveError> {
        self.record(EventBody::Placed(placed))?;
        Ok(self.journal.barrier()?)
    }

    /// Ends a run that cannot or need not be driven any more: it has no place, or its place is gone.
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

    /// What is known of the run.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// This process' hold on the run, as the journal tells it.
    pub fn lease(&self) -> &DriverLease {
        &self.lease
    }
}

/// The state over the spec that the journal names by its digest, wherever a copy of that one is left: the file in the
/// run folder may have been edited while nobody drove the run.
pub(crate) fn over_named_spec(places: &Places, state: RunState) -> Result<RunState, DriveError> {
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
