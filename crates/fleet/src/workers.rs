//! The workers of the fleet, as the database knows them: labels, capacity, load, version, health.

use crate::db;
use crate::error::FleetError;
use ralph_loop_protocol::event::EventBody;
use serde::Serialize;
use sqlx::{PgConnection, PgPool};

/// What a worker says of itself, again and again.
#[derive(Debug, Clone)]
pub struct Report {
    /// Its name.
    pub id: String,
    /// What it has.
    pub labels: Vec<String>,
    /// Runs at a time.
    pub capacity: i32,
    /// How busy its machine is: the load of one minute for each processor.
    pub load: f64,
    /// `ok`, or what is wrong.
    pub health: String,
    /// It takes no further run.
    pub draining: bool,
    /// It has just begun: what was wished of an earlier process of its name is past.
    pub begins: bool,
}

/// A worker as others see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerRow {
    /// Its name.
    pub id: String,
    /// What it has.
    pub labels: Vec<String>,
    /// Runs at a time.
    pub capacity: i32,
    /// Runs that it has now.
    pub runs: i64,
    /// Its version.
    pub version: String,
    /// How busy its machine is: the load of one minute for each processor.
    pub load: f64,
    /// `ok`, or what is wrong.
    pub health: String,
    /// Seconds since it was heard of.
    pub silent: Option<f64>,
    /// It takes no further run.
    pub draining: bool,
    /// It may do nothing any more.
    pub revoked: bool,
    /// Kinds of events that it knows.
    #[serde(skip)]
    pub kinds: i64,
}

from_row!(WorkerRow: id, labels, capacity, runs, version, load, health, silent, draining, revoked, kinds);

fn kinds() -> i64 {
    i64::try_from(EventBody::KINDS).unwrap_or(i64::MAX)
}

/// What a worker hears when it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    /// It may do nothing any more.
    pub revoked: bool,
    /// It must take no further run, whether its own shutdown or the server asks for the drain.
    pub draining: bool,
}

/// Writes down what a worker says of itself.
pub async fn report(pool: &PgPool, said: &Report) -> Result<Reported, FleetError> {
    db::pulse(pool).await?;
    // One that was let in has its row, and may make none.
    let known: Option<(bool, bool)> = sqlx::query_as(
        "UPDATE ralph_seal.workers SET labels = $2, capacity = $3, version = $4, kinds = $5, load = $6, health = $7,
            seen = now(), draining = CASE WHEN $9 THEN $8 ELSE draining OR $8 END
         WHERE id = $1
         RETURNING revoked, draining",
    )
    .bind(&said.id)
    .bind(&said.labels)
    .bind(said.capacity)
    .bind(env!("CARGO_PKG_VERSION"))
    .bind(kinds())
    .bind(said.load)
    .bind(&said.health)
    .bind(said.draining)
    .bind(said.begins)
    .fetch_optional(pool)
    .await?;
    if let Some((revoked, draining)) = known {
        return Ok(Reported { revoked, draining });
    }
    sqlx::query("INSERT INTO ralph_seal.workers (id) VALUES ($1) ON CONFLICT DO NOTHING")
        .bind(&said.id)
        .execute(pool)
        .await?;
    Box::pin(report(pool, said)).await
}

/// Lists the workers, most recently seen first. Leaves out workers that aren't enrolled and haven't reported for a week.
pub async fn list(pool: &PgPool) -> Result<Vec<WorkerRow>, FleetError> {
    Ok(sqlx::query_as(
        "SELECT w.id, w.labels, w.capacity, w.version, w.load, w.health, w.draining, w.revoked, w.kinds,
            EXTRACT(EPOCH FROM now() - w.seen)::float8 AS silent,
            (SELECT count(*) FROM ralph_seal.runs r WHERE r.worker = w.id AND r.status = 'driven') AS runs
         FROM ralph_seal.workers w WHERE w.role IS NOT NULL OR w.seen > now() - interval '7 days'
         ORDER BY w.seen DESC NULLS LAST, w.id LIMIT 2000",
    )
    .fetch_all(pool)
    .await?)
}

/// What a worker hears that was revoked.
pub(crate) fn is_revoked(worker: &str) -> FleetError {
    FleetError::Setup {
        what: format!("the worker {worker} was revoked"),
        hint: "`ralph worker --enrol URL --token TOKEN` lets it in again".into(),
    }
}

/// Refuses a worker that was revoked, and a run whose journal is newer than this program understands.
pub async fn may_drive(db: &mut PgConnection, worker: &str, run: &str) -> Result<(), FleetError> {
    let (revoked, newer): (Option<bool>, Option<i64>) = sqlx::query_as(
        "SELECT (SELECT revoked FROM ralph_seal.workers WHERE id = $1),
            (SELECT kinds FROM ralph_seal.runs WHERE run = $2 AND kinds > $3)",
    )
    .bind(worker)
    .bind(run)
    .bind(kinds())
    .fetch_one(db)
    .await?;
    if revoked == Some(true) {
        return Err(is_revoked(worker));
    }
    match newer {
        None => Ok(()),
        Some(theirs) => Err(FleetError::Setup {
            what: format!(
                "run {run} was driven by a newer version: its journal has {theirs} kinds of events, {} are known here",
                kinds()
            ),
            hint: "install the newer version on this machine, or let a newer worker take the run".into(),
        }),
    }
}

/// It takes no further run, and hands over those that it has.
pub async fn drain(pool: &PgPool, worker: &str) -> Result<bool, FleetError> {
    let known = sqlx::query("UPDATE ralph_seal.workers SET draining = true WHERE id = $1")
        .bind(worker)
        .execute(pool)
        .await?;
    Ok(known.rows_affected() == 1)
}
