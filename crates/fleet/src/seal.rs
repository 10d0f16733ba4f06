//! Seals a journal in Postgres. An append is one statement, guarded by epoch and head. It refuses a replaced holder, and only
//! that holder's driver sees the error.

use crate::db::Fleet;
use crate::error::FleetError;
use crate::lease::{self, Fault, Lease};
use ralph_loop_journal::journal::seal::{Seal, SealSource, Settle};
use ralph_loop_protocol::lease::Epoch;
use ralph_loop_sandbox::LeaseClock;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgExecutor, PgPool, Postgres};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Pause between two tries while the database does not answer.
const AGAIN: Duration = Duration::from_millis(200);

/// Where a run of a fleet is sealed, for one hold on it.
#[derive(Debug, Clone)]
pub struct PostgresSeal {
    fleet: Fleet,
    lease: Lease,
    clock: Arc<LeaseClock>,
    /// How long a database that restarts is waited for.
    patience: Duration,
    /// Why nothing may be sealed any more.
    closed: Arc<Mutex<Option<(Fault, String)>>>,
    line: Arc<Mutex<Option<Line>>>,
}

/// The connection of a hold. It is kept: one that is borrowed from the pool for each statement is tried out before and after it,
/// which costs as much as the append itself, and two that take turns learn every statement twice.
#[derive(Debug)]
pub struct Line(Option<PoolConnection<Postgres>>);

impl Line {
    /// Takes a connection of the pool for good.
    pub async fn open(pool: &PgPool) -> Result<Self, FleetError> {
        Ok(Self(Some(pool.acquire().await?)))
    }

    /// Appends as [`append`] does.
    pub async fn append(&mut self, lease: &Lease, at: i64, bytes: &[u8]) -> Result<bool, FleetError> {
        append(self.db()?, lease, at, bytes).await
    }

    /// The connection.
    pub fn db(&mut self) -> Result<&mut PgConnection, FleetError> {
        let open = self.0.as_deref_mut();
        open.ok_or_else(|| FleetError::Database("the connection is closed".into()))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // It may be in the middle of a statement, so it must not return to the pool.
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}

impl PostgresSeal {
    /// The seal of the run that is held, over the line that it was taken with.
    pub fn new(
        fleet: Fleet,
        lease: Lease,
        clock: Arc<LeaseClock>,
        patience: Duration,
        line: Line,
    ) -> Arc<Self> {
        let line = Arc::new(Mutex::new(Some(line)));
        Arc::new(Self { fleet, lease, clock, patience, closed: Arc::default(), line })
    }

    /// Asks the database over the line of the hold.
    pub fn ask<T>(
        &self,
        what: impl AsyncFnOnce(&mut PgConnection) -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        let kept = self.line.lock().unwrap_or_else(|e| e.into_inner()).take();
        let (answer, line) = self.fleet.wait(async {
            let mut line = match kept {
                Some(line) => line,
                None => Line::open(self.fleet.pool()).await?,
            };
            let answer = what(line.db()?).await;
            Ok((answer, line))
        })?;
        // One that gave no answer was dropped on the way; one that gave an error may be in the middle of something.
        if !matches!(answer, Err(FleetError::Database(_))) {
            *self.line.lock().unwrap_or_else(|e| e.into_inner()) = Some(line);
        }
        answer
    }

    /// Refuses every further append, because the run's later events would describe work that doesn't count.
    pub fn close(&self, fault: Fault, why: impl Into<String>) {
        let mut closed = self.closed.lock().unwrap_or_else(|e| e.into_inner());
        closed.get_or_insert((fault, why.into()));
    }

    /// Why it was closed, if it was.
    pub fn fault(&self) -> Option<Fault> {
        self.closed.lock().unwrap_or_else(|e| e.into_inner()).as_ref().map(|(fault, _)| *fault)
    }

    /// Notes a finished iteration. If that fails, an earlier fault counts once more.
    pub fn progressed(&self) {
        if let Err(error) = self.ask(async |db| lease::progressed(db, &self.lease).await) {
            tracing::warn!(%error, "couldn't note a finished iteration");
        }
    }

    /// The same, again and again while the database does not answer.
    fn tried<T>(
        &self,
        mut what: impl AsyncFnMut(&mut PgConnection) -> Result<T, FleetError>,
    ) -> io::Result<T> {
        let begun = Instant::now();
        loop {
            if let Some((_, why)) = self.closed.lock().unwrap_or_else(|e| e.into_inner()).clone() {
                return Err(io::Error::other(why));
            }
            match self.ask(async |db| what(db).await) {
                Err(FleetError::Database(_)) if begun.elapsed() < self.patience => pause(AGAIN),
                other => return other.map_err(io::Error::other),
            }
        }
    }
}

/// Waits without a runtime.
fn pause(time: Duration) {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}

/// Appends `line` after the first `at` bytes. `false` where the hold is lost or the head is another one.
pub async fn append(
    db: impl PgExecutor<'_>,
    lease: &Lease,
    at: i64,
    line: &[u8],
) -> Result<bool, FleetError> {
    let written = sqlx::query(
        "WITH held AS (
            UPDATE ralph_seal.leases SET head = head + $4
            WHERE run = $1 AND epoch = $2 AND head = $3 RETURNING run
         )
         INSERT INTO ralph_seal.events (run, at, epoch, line) SELECT run, $3, $2, $5 FROM held",
    )
    .bind(&lease.run)
    .bind(lease.epoch)
    .bind(at)
    .bind(i64::try_from(line.len()).unwrap_or(i64::MAX))
    .bind(line)
    .execute(db)
    .await?;
    Ok(written.rows_affected() == 1)
}

/// Whether exactly this append was made, by this hold: its answer was lost on the way.
async fn was_made(db: impl PgExecutor<'_>, lease: &Lease, at: i64, line: &[u8]) -> Result<bool, FleetError> {
    let there: Option<i64> = sqlx::query_scalar(
        "SELECT e.epoch FROM ralph_seal.events e JOIN ralph_seal.leases l ON l.run = e.run
         WHERE e.run = $1 AND e.at = $2 AND e.line = $3 AND l.epoch = $4 AND l.head = $5",
    )
    .bind(&lease.run)
    .bind(at)
    .bind(line)
    .bind(lease.epoch)
    .bind(at + i64::try_from(line.len()).unwrap_or(i64::MAX))
    .fetch_optional(db)
    .await?;
    Ok(there == Some(lease.epoch))
}

/// Bytes that are sealed of a run.
pub async fn head(db: impl PgExecutor<'_>, run: &str) -> Result<Option<i64>, FleetError> {
    Ok(sqlx::query_scalar("SELECT head FROM ralph_seal.leases WHERE run = $1")
        .bind(run)
        .fetch_optional(db)
        .await?)
}

/// What is sealed of a run from byte `from` on, which must be where a line begins.
pub async fn read_from(db: impl PgExecutor<'_>, run: &str, from: i64) -> Result<Vec<u8>, FleetError> {
    let lines: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT line FROM ralph_seal.events WHERE run = $1 AND at >= $2 ORDER BY at")
            .bind(run)
            .bind(from)
            .fetch_all(db)
            .await?;
    Ok(lines.concat())
}

/// Returns the first sealed line of a run. It differs if the run started again from scratch.
pub async fn first_line(pool: &PgPool, run: &str) -> Result<Option<Vec<u8>>, FleetError> {
    Ok(sqlx::query_scalar("SELECT line FROM ralph_seal.events WHERE run = $1 AND at = 0")
        .bind(run)
        .fetch_optional(pool)
        .await?)
}

/// Where each line of a run lies, under which epoch it was sealed, and how long it is.
pub async fn rows(pool: &PgPool, run: &str) -> Result<Vec<(i64, i64, i64)>, FleetError> {
    Ok(sqlx::query_as(
        "SELECT at, epoch, octet_length(line)::bigint FROM ralph_seal.events WHERE run = $1 ORDER BY at",
    )
    .bind(run)
    .fetch_all(pool)
    .await?)
}

/// The frozen definition of a run, as it was kept last.
pub async fn spec(db: impl PgExecutor<'_>, run: &str) -> Result<Option<Vec<u8>>, FleetError> {
    let found: Option<Option<Vec<u8>>> =
        sqlx::query_scalar("SELECT spec FROM ralph_seal.runs WHERE run = $1")
            .bind(run)
            .fetch_optional(db)
            .await?;
    Ok(found.flatten())
}

impl SealSource for PostgresSeal {
    fn seal(&self) -> Box<dyn Seal> {
        Box::new(Handle(self.clone()))
    }

    fn keep_spec(&self, text: &[u8]) -> io::Result<()> {
        let kinds = i64::try_from(ralph_loop_protocol::event::EventBody::KINDS).unwrap_or(i64::MAX);
        let kept = self.tried(async |db| {
            let kept = sqlx::query(
                // Lock the lease's row, so that no worker takes the run between the check and the write.
                "WITH held AS (SELECT run FROM ralph_seal.leases WHERE run = $1 AND epoch = $2 FOR SHARE)
                 UPDATE ralph_seal.runs r SET spec = $3, kinds = GREATEST(r.kinds, $4)
                 FROM held WHERE r.run = held.run",
            )
            .bind(&self.lease.run)
            .bind(self.lease.epoch)
            .bind(text)
            .bind(kinds)
            .execute(db)
            .await?;
            Ok(kept.rows_affected() == 1)
        })?;
        if kept { Ok(()) } else { Err(lost(&self.lease)) }
    }

    fn spec(&self) -> io::Result<Option<Vec<u8>>> {
        self.tried(async |db| spec(db, &self.lease.run).await)
    }

    fn epoch(&self) -> Epoch {
        Epoch(u64::try_from(self.lease.epoch).unwrap_or(0))
    }

    fn is_held(&self) -> bool {
        !self.clock.is_over()
    }
}

fn lost(lease: &Lease) -> io::Error {
    io::Error::other(format!(
        "the hold on run {} is lost (epoch {}): another worker drives it, or may",
        lease.run, lease.epoch
    ))
}

/// One open seal.
#[derive(Debug)]
struct Handle(PostgresSeal);

impl Seal for Handle {
    fn place(&self) -> PathBuf {
        PathBuf::from(format!("postgres:ralph_seal.events/{}", self.0.lease.run))
    }

    fn head(&self) -> io::Result<Option<u64>> {
        let head = self.0.tried(async |db| head(db, &self.0.lease.run).await)?;
        Ok(head.map(|head| u64::try_from(head).unwrap_or(0)))
    }

    fn read(&self) -> io::Result<Box<dyn Read + '_>> {
        let text = self.0.tried(async |db| read_from(db, &self.0.lease.run, 0).await)?;
        Ok(Box::new(io::Cursor::new(text)))
    }

    fn append(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        let (lease, mut first) = (&self.0.lease, true);
        let at = i64::try_from(at).map_err(io::Error::other)?;
        let done = self.0.tried(async |db| {
            let again = !std::mem::take(&mut first);
            // Only a try whose answer was lost can have been made already.
            Ok(append(&mut *db, lease, at, bytes).await? || (again && was_made(db, lease, at, bytes).await?))
        })?;
        if done { Ok(()) } else { Err(lost(lease)) }
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        // A line is sealed whole or not at all, so there is no torn end to take away.
        Err(io::Error::other(format!(
            "the journal here has {length} bytes, fewer than are sealed, and does not fit them"
        )))
    }

    fn settle(&mut self) -> io::Result<Settle> {
        Ok(Box::new(|| Ok(())))
    }

    fn is_required(&self) -> bool {
        true
    }
}
