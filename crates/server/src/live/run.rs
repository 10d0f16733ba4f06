//! One run in memory: its state, updated as the journal grows.

use crate::index::{Indexed, Spend};
use crate::row::RunRow;
use jiff::Timestamp;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::start::asked_by;
use ralph_loop_app::{AppError, Environment};
use ralph_loop_domain::view::RunView;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::live::stream::{Cursor, RunStream, StreamItem, StreamStart};
use ralph_loop_journal::lock;
use ralph_loop_protocol::money::in_session::SessionCost;

/// A run whose state is in memory.
#[derive(Debug)]
pub struct LiveRun {
    reading: RunSnapshot,
    stream: RunStream,
    person: Option<String>,
    row: RunRow,
    /// Finished iterations, and whether the run was over, at the last cost count.
    counted: (u32, bool),
    /// The last known cost of the active session; its report may have left the end of the live output.
    session: Option<SessionCost>,
}

impl LiveRun {
    pub fn load(env: &Environment, entry: Registration) -> Result<Self, AppError> {
        let person = asked_by::read(&entry.run_dir());
        Self::of(RunSnapshot::load(env, entry)?, person)
    }

    pub fn of(reading: RunSnapshot, person: Option<String>) -> Result<Self, AppError> {
        let start = StreamStart::After(Cursor { seq: reading.state.seq, live: 0 });
        let stream = RunStream::open(&reading.entry.run_dir(), start)?.events_only();
        let row = RunRow::of(&reading, person.clone());
        let counted = (reading.state.iterations.count, reading.state.result.finished.is_some());
        Ok(Self { reading, stream, person, row, counted, session: None })
    }

    pub fn row(&self) -> &RunRow {
        &self.row
    }

    pub fn reading(&self) -> &RunSnapshot {
        &self.reading
    }

    pub fn view(&self) -> RunView {
        self.reading.view()
    }

    /// Reads new events; returns what to write if the row changed.
    pub fn refresh(&mut self, now: Timestamp) -> Result<Option<Indexed>, AppError> {
        loop {
            let items = self.stream.poll()?;
            if items.is_empty() {
                break;
            }
            for item in &items {
                let StreamItem::Event(line) = item else { continue };
                self.reading.state.apply(&line.event);
                self.reading.last_event = line.event.at;
            }
        }
        let reading = &mut self.reading;
        let holder = lock::holder(&reading.entry.run_dir().lock());
        let here = holder.filter(|h| h.run_id == reading.entry.run_id && lock::is_alive(h.pid));
        reading.driver = here.or_else(|| ralph_loop_app::adopt::driver_elsewhere(&reading.entry.run_dir()));
        reading.now = now;
        if let Some(end) = &reading.state.result.finished {
            reading.last_event = end.at;
        }
        if reading.driver.is_some() {
            reading.state.tick(now);
        }
        self.session = reading.session_cost().or(self.session);
        let mut row = RunRow::of(reading, self.person.clone());
        if self.session.is_some() {
            row.cost = reading.view().cost_with(self.session);
        }
        if row == self.row {
            return Ok(None);
        }
        self.row = row.clone();
        let counted = (reading.state.iterations.count, reading.state.result.finished.is_some());
        let spend = (counted != self.counted).then(|| Spend::of(reading));
        self.counted = counted;
        Ok(Some(Indexed { row, spend }))
    }
}
