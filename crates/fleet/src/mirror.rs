//! Mirrors the runs of other machines on a server: updates a copy of each record from the seal, and sends controls from users
//! back. A copy reads like any other record, but no process drives a run from it.

use crate::db::Fleet;
use crate::error::FleetError;
use crate::files::Files;
use crate::trigger::Triggers;
use crate::{letters, occasion, seal};
use ralph_loop_app::start::asked_by;
use ralph_loop_app::{AppError, adopt};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::folder::layout::{RunDir, StateHome};
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::folder::{artifacts, snapshot};
use ralph_loop_journal::lock::LockHolder;
use ralph_loop_journal::{JournalError, inbox};
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::lease::Epoch;
use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// Marks a record that is a copy.
const MARK: &str = "mirrored";
/// Runs that are looked at in one turn.
const BATCH: i64 = 5000;

/// Keeps copies of the records of a fleet.
#[derive(Debug, Default)]
pub struct Mirror {
    heads: BTreeMap<String, i64>,
    /// The epoch under which each run is driven, where it is.
    drivers: BTreeMap<String, Option<i64>>,
    letters: BTreeMap<String, u64>,
    /// Runs that could not be copied, and how far they were then: told once.
    unreadable: BTreeMap<String, i64>,
    /// The events that were copied last come with files in the store.
    has_files: bool,
}

/// Why a run could not be copied.
enum Fault {
    /// Something of the run itself, or of its copy: others are copied all the same.
    Run(AppError),
    /// The database doesn't answer, so no run can be copied.
    Fleet(FleetError),
}

impl From<AppError> for Fault {
    fn from(error: AppError) -> Self {
        Self::Run(error)
    }
}

impl From<JournalError> for Fault {
    fn from(error: JournalError) -> Self {
        Self::Run(error.into())
    }
}

impl From<FleetError> for Fault {
    fn from(error: FleetError) -> Self {
        Self::Fleet(error)
    }
}

/// What is looked at of a run.
#[derive(Debug)]
struct Seen {
    run: String,
    head: i64,
    repo: String,
    person: String,
    epoch: i64,
    held: bool,
}

from_row!(Seen: run, head, repo, person, epoch, held);

impl Mirror {
    /// Brings the copies up to date; the runs that have changed.
    pub async fn turn(
        &mut self,
        fleet: &Fleet,
        home: &StateHome,
        triggers: &Triggers,
        files: &Files,
    ) -> Result<Vec<RunId>, AppError> {
        let pool = fleet.pool();
        let heads: Vec<Seen> = sqlx::query_as(
            "SELECT l.run, l.head, r.repo, r.person, l.epoch, COALESCE(l.until > now(), false) AS held FROM ralph_seal.leases l JOIN ralph_seal.runs r ON r.run = l.run
             WHERE l.head > 0 ORDER BY (r.status = 'over'), r.queued_at DESC LIMIT $1",
        )
        .bind(BATCH)
        .fetch_all(pool)
        .await
        .map_err(FleetError::from)?;
        let mut changed = Vec::new();
        for seen in heads {
            let Ok(id) = RunId::parse(&seen.run) else { continue };
            if !is_copy(home, &id) {
                continue;
            }
            match self.look(fleet, home, (&id, &seen), (triggers, files)).await {
                Ok(true) => changed.push(id),
                Ok(false) => {}
                Err(Fault::Fleet(error)) => return Err(error.into()),
                // One that this version cannot read, say, which another one has begun.
                Err(Fault::Run(error)) => {
                    if self.unreadable.insert(seen.run.clone(), seen.head) != Some(seen.head) {
                        tracing::warn!(error = error.message, run = seen.run, "a run cannot be shown");
                    }
                }
            }
        }
        Ok(changed)
    }

    /// Brings the copy of one run up to date; whether it has changed.
    async fn look(
        &mut self,
        fleet: &Fleet,
        home: &StateHome,
        (id, seen): (&RunId, &Seen),
        (triggers, files): (&Triggers, &Files),
    ) -> Result<bool, Fault> {
        let mut is_new = false;
        if self.heads.get(&seen.run) != Some(&seen.head) {
            let is_first = !self.heads.contains_key(&seen.run);
            is_new = self.bring(fleet, home, (id, seen), triggers.name_of(&seen.repo)).await?;
            if is_new && (is_first || self.has_files) {
                files.expect(id);
            }
        }
        let changed = self.note_driver(home, id, seen)? || is_new;
        self.send_words(fleet, &home.record(id), &seen.run).await?;
        Ok(changed)
    }

    /// Notes who drives the run now; whether that is another one than before.
    fn note_driver(&mut self, home: &StateHome, run: &RunId, seen: &Seen) -> Result<bool, AppError> {
        let driver = seen.held.then_some(seen.epoch);
        if !home.record(run).spec().is_file() || self.drivers.get(&seen.run) == Some(&driver) {
            return Ok(false);
        }
        let holder = driver.map(|epoch| {
            let mut holder = LockHolder::new(0, run.clone(), SystemClock::default().now());
            holder.lease.epoch = Some(Epoch(u64::try_from(epoch).unwrap_or(0)));
            holder
        });
        adopt::note_driver(&home.record(run), holder.as_ref())?;
        self.drivers.insert(seen.run.clone(), driver);
        Ok(true)
    }

    async fn bring(
        &mut self,
        fleet: &Fleet,
        home: &StateHome,
        (run, seen): (&RunId, &Seen),
        repo: Option<&str>,
    ) -> Result<bool, Fault> {
        let Some(spec) = seal::spec(fleet.pool(), run.as_str()).await? else { return Ok(false) };
        let record = home.record(run);
        // Not by its files: one that could not be read at first may be readable for a newer version.
        let new = registry::find(home, run).is_none();
        adopt::mark(&record)?;
        artifacts::write_atomic(
            &record.path().join(MARK),
            b"a copy; the journal is sealed in the fleet's database\n",
        )?;
        artifacts::write_atomic(&record.spec(), &spec)?;
        let events = record.events();
        let mut have = std::fs::metadata(&events).map_or(0, |meta| i64::try_from(meta.len()).unwrap_or(0));
        if have > seen.head || (have > 0 && !is_beginning(fleet, run, &events).await?) {
            // The run started again before it was prepared, or the copy was cut off.
            let _ = std::fs::remove_file(&events);
            have = 0;
        }
        let more = seal::read_from(fleet.pool(), run.as_str(), have).await?;
        self.has_files = more.split(|byte| *byte == b'\n').any(has_files);
        if let Some(repo) = repo {
            occasion::belongs(fleet.pool(), repo, run.as_str(), &more).await?;
        }
        let write = || -> std::io::Result<()> {
            std::fs::OpenOptions::new().create(true).append(true).open(&events)?.write_all(&more)
        };
        write().map_err(|e| AppError::environment(format!("cannot write `{}`: {e}", events.display())))?;
        self.heads.insert(run.to_string(), have + i64::try_from(more.len()).unwrap_or(0));
        if new {
            let spec = snapshot::parse_spec(&record.spec(), &spec)?;
            let entry = Registration {
                run_id: run.clone(),
                title: spec.task.title.clone(),
                // Its folders are another machine's.
                origin: record.path().to_owned(),
                workspace: record.path().to_owned(),
                created_at: spec.created_at,
                record: Some(record.path().to_owned()),
            };
            asked_by::keep(&record, Some(&seen.person))?;
            registry::register(home, &entry)?;
        }
        Ok(true)
    }

    /// Sends on what people have said to a run here.
    async fn send_words(&mut self, fleet: &Fleet, record: &RunDir, run: &str) -> Result<(), Fault> {
        let sent = self.letters.entry(run.to_owned()).or_default();
        for (letter, after) in inbox::read(record, *sent)? {
            if let Ok(letter) = letter {
                letters::send(fleet.pool(), run, &letter).await?;
            }
            *sent = after;
        }
        Ok(())
    }
}

/// Whether a copy begins with the line that is sealed first, and ends with a whole one.
async fn is_beginning(fleet: &Fleet, run: &RunId, events: &Path) -> Result<bool, FleetError> {
    let Some(first) = seal::first_line(fleet.pool(), run.as_str()).await? else { return Ok(false) };
    let (mut own, mut last) = (vec![0; first.len()], [0]);
    let read = std::fs::File::open(events).and_then(|mut file| {
        file.read_exact(&mut own)?;
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)
    });
    Ok(read.is_ok() && own == first && last == *b"\n")
}

/// Whether a journaled line is of an event with which files go to the store.
fn has_files(line: &[u8]) -> bool {
    serde_json::from_slice::<Event>(line).is_ok_and(|event| {
        matches!(
            event.body,
            EventBody::Prepared { .. }
                | EventBody::Checkpointed { .. }
                | EventBody::IterationEnded { .. }
                | EventBody::ProofFinished { .. }
                | EventBody::Suspended { .. }
                | EventBody::NeedsHuman { .. }
                | EventBody::Finished { .. }
        )
    })
}

/// Whether a record is a copy of another machine's.
pub fn is_mirrored(record: &RunDir) -> bool {
    record.path().join(MARK).is_file()
}

/// Whether the record of this run here is a copy, or there is none yet.
fn is_copy(home: &StateHome, run: &RunId) -> bool {
    let record = home.record(run);
    !record.path().is_dir() || is_mirrored(&record)
}
