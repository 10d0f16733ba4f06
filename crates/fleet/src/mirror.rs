//! Runs of other machines as a server shows them: a copy of each record, brought up to date from the seal, and the words that
//! people say there on their way back. Whoever reads records reads these like any other; nobody drives from them.

use crate::db::Fleet;
use crate::error::FleetError;
use crate::trigger::Triggers;
use crate::{letters, occasion, seal};
use ralph_app::{AppError, adopt};
use ralph_core::clock::SystemClock;
use ralph_domain::id::RunId;
use ralph_domain::lease::Epoch;
use ralph_domain::ports::Clock as _;
use ralph_journal::layout::{RunDir, StateHome};
use ralph_journal::lock::LockHolder;
use ralph_journal::registry::{self, Registration};
use ralph_journal::{artifacts, inbox, snapshot};
use std::collections::BTreeMap;
use std::io::Write as _;

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
}

/// What is looked at of a run.
#[derive(Debug, sqlx::FromRow)]
struct Seen {
    run: String,
    head: i64,
    repo: String,
    epoch: i64,
    held: bool,
}

impl Mirror {
    /// Brings the copies up to date; the runs that have changed.
    pub async fn turn(
        &mut self,
        fleet: &Fleet,
        home: &StateHome,
        triggers: &Triggers,
    ) -> Result<Vec<RunId>, AppError> {
        let pool = fleet.pool();
        let heads: Vec<Seen> = sqlx::query_as(
            "SELECT l.run, l.head, r.repo, l.epoch, COALESCE(l.until > now(), false) AS held FROM ralph_seal.leases l JOIN ralph_seal.runs r ON r.run = l.run
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
            let mut is_new = false;
            if self.heads.get(&seen.run) != Some(&seen.head) {
                is_new = self.bring(fleet, home, &id, seen.head, triggers.name_of(&seen.repo)).await?;
            }
            if self.note_driver(home, &id, &seen)? || is_new {
                changed.push(id.clone());
            }
            self.send_words(fleet, &home.record(&id), &seen.run).await?;
        }
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
        run: &RunId,
        head: i64,
        repo: Option<&str>,
    ) -> Result<bool, AppError> {
        let Some(spec) = seal::spec(fleet.pool(), run.as_str()).await? else { return Ok(false) };
        let record = home.record(run);
        let new = !record.spec().is_file();
        adopt::mark(&record)?;
        artifacts::write_atomic(
            &record.path().join(MARK),
            b"a copy; the journal is sealed in the fleet's database\n",
        )?;
        artifacts::write_atomic(&record.spec(), &spec)?;
        let events = record.events();
        let mut have = std::fs::metadata(&events).map_or(0, |meta| i64::try_from(meta.len()).unwrap_or(0));
        if have > head {
            // A run that began anew before it was prepared.
            let _ = std::fs::remove_file(&events);
            have = 0;
        }
        let more = seal::read_from(fleet.pool(), run.as_str(), have).await?;
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
                spare: None,
                record: Some(record.path().to_owned()),
            };
            registry::register(home, &entry)?;
        }
        Ok(true)
    }

    /// Sends on what people have said to a run here.
    async fn send_words(&mut self, fleet: &Fleet, record: &RunDir, run: &str) -> Result<(), AppError> {
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

/// Whether the record of this run here is a copy, or there is none yet.
fn is_copy(home: &StateHome, run: &RunId) -> bool {
    let record = home.record(run);
    !record.path().is_dir() || record.path().join(MARK).is_file()
}
