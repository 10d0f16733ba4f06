//! Who may drive a run: one row with an epoch. Nothing else decides it.
//!
//! Times are those of the database alone, so clocks of workers may differ as they like.

use crate::error::FleetError;
use sqlx::{Acquire, PgExecutor, PgPool, Postgres};
use std::time::Duration;

/// A hold on a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: String,
    /// Which hold it is: every later one has a larger number.
    pub epoch: i64,
    /// Bytes of the journal that are sealed.
    pub head: i64,
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Takes a run that has no holder, or whose lease has run out. `holder` begins with the worker's name, up to `/`.
pub async fn take(
    db: impl Acquire<'_, Database = Postgres>,
    run: &str,
    holder: &str,
    time: Duration,
) -> Result<Lease, FleetError> {
    let mut db = db.acquire().await?;
    let mut whole = db.begin().await?;
    // What the list of runs says changes with the hold, or not at all.
    let taken: Option<(i64, i64, bool)> = sqlx::query_as(
        "WITH taken AS (
            UPDATE ralph_seal.leases
            SET epoch = epoch + 1, holder = $2, until = now() + $3 * interval '1 millisecond',
                lasts = $3 * interval '1 millisecond'
            WHERE run = $1 AND (until IS NULL OR until <= now())
            RETURNING run, epoch, head
         ), told AS (
            UPDATE ralph_seal.runs r
            SET status = 'driven', worker = split_part($2, '/', 1), problem = NULL, not_before = now()
            FROM taken t WHERE r.run = t.run AND r.status <> 'over' RETURNING r.run
         )
         SELECT epoch, head, EXISTS (SELECT 1 FROM told) FROM taken",
    )
    .bind(run)
    .bind(holder)
    .bind(millis(time))
    .fetch_optional(&mut *whole)
    .await?;
    match taken {
        Some((epoch, head, true)) => {
            whole.commit().await?;
            return Ok(Lease { run: run.to_owned(), epoch, head });
        }
        // The run has ended or left the queue since it was assigned.
        Some((.., false)) => return Err(FleetError::Over { run: run.to_owned() }),
        None => whole.rollback().await?,
    }
    let known: Option<i64> = sqlx::query_scalar("SELECT epoch FROM ralph_seal.leases WHERE run = $1")
        .bind(run)
        .fetch_optional(&mut *db)
        .await?;
    Err(match known {
        Some(_) => FleetError::Held { run: run.to_owned() },
        None => FleetError::NoRun { run: run.to_owned() },
    })
}

/// Holds on for longer. `false` where the hold is lost: it ran out, or was taken away.
pub async fn renew(pool: &PgPool, lease: &Lease, time: Duration) -> Result<bool, FleetError> {
    let renewed = sqlx::query(
        "UPDATE ralph_seal.leases SET until = now() + $3 * interval '1 millisecond', lasts = $3 * interval '1 millisecond'
         WHERE run = $1 AND epoch = $2 AND until > now()",
    )
    .bind(&lease.run)
    .bind(lease.epoch)
    .bind(millis(time))
    .execute(pool)
    .await?;
    Ok(renewed.rows_affected() == 1)
}

/// Releases the lease and records the run's new status and the reason. Returns `false` if the holder was replaced.
pub async fn release(
    db: impl PgExecutor<'_>,
    lease: &Lease,
    status: &str,
    problem: Option<&str>,
) -> Result<bool, FleetError> {
    let released = sqlx::query(
        "WITH mine AS (
            UPDATE ralph_seal.leases SET until = NULL, holder = NULL WHERE run = $1 AND epoch = $2 RETURNING run
         )
         UPDATE ralph_seal.runs r
         SET status = $3, worker = NULL, fails = 0, tries = 0, problem = $4
         FROM mine WHERE r.run = mine.run",
    )
    .bind(&lease.run)
    .bind(lease.epoch)
    .bind(status)
    .bind(problem.map(|why| ralph_loop_protocol::display::text::one_line(why, 500)))
    .execute(db)
    .await?;
    Ok(released.rows_affected() == 1)
}

/// Why a hold ended without a result. `fault.sql` has the answer to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The database, the store or the network was away.
    Outage,
    /// The driver died.
    Crash,
    /// This machine can't drive the run.
    Worker,
}

impl Fault {
    fn as_str(self) -> &'static str {
        match self {
            Self::Outage => "outage",
            Self::Crash => "crash",
            Self::Worker => "worker",
        }
    }
}

/// Lets go of a run that could not be driven. Returns `false` if the holder was replaced.
pub async fn release_faulted(
    db: impl PgExecutor<'_>,
    lease: &Lease,
    fault: Fault,
    why: &str,
) -> Result<bool, FleetError> {
    Ok(sqlx::query_scalar("SELECT ralph_seal.fault($1, $2, $3, $4)")
        .bind(&lease.run)
        .bind(lease.epoch)
        .bind(fault.as_str())
        .bind(ralph_loop_protocol::display::text::one_line(why, 500))
        .fetch_one(db)
        .await?)
}

/// Ends the hold of a process that is known to be dead, by the name under which it held. One that let go before it ended, or
/// whose lease had run out, left none.
pub async fn release_dead(pool: &PgPool, run: &str, holder: &str) -> Result<(), FleetError> {
    let held: Option<(i64, i64)> = sqlx::query_as(
        "SELECT epoch, head FROM ralph_seal.leases WHERE run = $1 AND holder = $2 AND until > now()",
    )
    .bind(run)
    .bind(holder)
    .fetch_optional(pool)
    .await?;
    if let Some((epoch, head)) = held {
        let lease = Lease { run: run.to_owned(), epoch, head };
        release_faulted(pool, &lease, Fault::Crash, "the process that drove it died").await?;
    }
    Ok(())
}

/// How often each class of fault has ended a hold.
pub async fn faults(pool: &PgPool) -> Result<Vec<(String, i64)>, FleetError> {
    Ok(sqlx::query_as("SELECT class, total FROM ralph_seal.faults ORDER BY class").fetch_all(pool).await?)
}

/// The run has come one iteration further: faults before it count no more.
pub async fn progressed(db: impl PgExecutor<'_>, lease: &Lease) -> Result<(), FleetError> {
    sqlx::query(
        "UPDATE ralph_seal.runs r SET fails = 0, tries = 0 FROM ralph_seal.leases l
         WHERE r.run = $1 AND l.run = r.run AND l.epoch = $2 AND r.tries > 0",
    )
    .bind(&lease.run)
    .bind(lease.epoch)
    .execute(db)
    .await?;
    Ok(())
}

/// Whether the hold is still this one.
pub async fn is_ours(pool: &PgPool, lease: &Lease) -> Result<bool, FleetError> {
    let epoch: Option<i64> = sqlx::query_scalar("SELECT epoch FROM ralph_seal.leases WHERE run = $1")
        .bind(&lease.run)
        .fetch_optional(pool)
        .await?;
    Ok(epoch == Some(lease.epoch))
}
