//! The runs of the fleet: the request, the labels that a worker needs, and the progress of each.

use crate::dispatch::WAITS;
use crate::error::FleetError;
use ralph_loop_app::{RunRequest, Workplace};
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::config::ProviderName;
use serde::Serialize;
use sqlx::{PgConnection, PgExecutor, PgPool};

/// A run to add to the queue.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub run: RunId,
    /// The request. It works on a clone: folders of one machine mean nothing on another.
    pub request: RunRequest,
    /// The task in a few words.
    pub title: String,
    /// Who asks.
    pub person: String,
    /// Labels that a worker must have, beside those that the request itself needs.
    pub labels: Vec<String>,
    /// Secrets of the server that it is given, by name.
    pub secrets: Vec<String>,
    /// The model profiles that it works with, where the request names some: the usual one, and the one that takes over.
    pub profiles: [Option<String>; 2],
    /// The trigger or schedule that started it, if any.
    pub source: String,
    /// Runs of that source at a time.
    pub at_once: Option<u32>,
    /// What it answers to; another run of the same occasion is not added.
    pub occasion: Option<String>,
}

/// How far a run of the fleet is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetRun {
    /// Its id.
    pub run: String,
    /// `queued`, `driven`, `resting` (a person is needed) or `over`.
    pub status: String,
    /// The task in a few words.
    pub title: String,
    /// Who asked.
    pub person: String,
    /// What it is about.
    pub repo: String,
    /// Labels that its worker must have.
    pub needs: Vec<String>,
    /// The worker that has it.
    pub worker: Option<String>,
    /// Which hold on it is the latest.
    pub epoch: i64,
    /// Bytes of its journal.
    pub head: i64,
    /// Why it doesn't continue.
    pub problem: Option<String>,
}

from_row!(FleetRun: run, status, title, person, repo, needs, worker, epoch, head, problem);

/// A run whose lease ran out waits again, whether or not a worker has asked since.
const COLUMNS: &str =
    "r.run, CASE WHEN r.status = 'driven' AND (l.until > now()) IS NOT TRUE THEN 'queued' ELSE r.status END AS status,
        r.title, r.person, r.repo, r.needs, r.worker, l.epoch, l.head, r.problem";

/// The address that a request is about.
pub fn repo_of(request: &RunRequest) -> Option<&str> {
    match &request.place {
        Workplace::Clone { from, .. } => Some(from),
        Workplace::InPlace | Workplace::Worktree => None,
    }
}

/// What a request needs of the worker that takes it.
pub fn needs_of(request: &RunRequest, labels: &[String]) -> Vec<String> {
    let provider = request.provider.filter(|provider| *provider != ProviderName::Local);
    let provider = provider.map(|provider| format!("provider:{}", provider.as_str()));
    let agents = request.overrides.agents.iter().map(|agent| format!("agent:{agent}"));
    let mut needs: Vec<String> = provider.into_iter().chain(agents).chain(labels.iter().cloned()).collect();
    needs.sort();
    needs.dedup();
    needs
}

/// Adds a run; whether it is new. One whose occasion was met before is not.
pub async fn add(pool: &PgPool, new: &NewRun) -> Result<bool, FleetError> {
    let mut whole = pool.begin().await?;
    let added = add_in(&mut whole, new).await?;
    if added {
        whole.commit().await?;
    }
    Ok(added)
}

/// The same, as part of what the caller does to the database. Where it is not new, nothing of that must stay.
pub async fn add_in(db: &mut PgConnection, new: &NewRun) -> Result<bool, FleetError> {
    let Some(repo) = repo_of(&new.request) else {
        return Err(FleetError::Setup {
            what: "a run of the fleet works on a clone, and this one names a folder".into(),
            hint: "give the address of the repo".into(),
        });
    };
    let mut request = new.request.clone();
    request.run_id = Some(new.run.clone());
    let text = serde_json::to_string(&request).map_err(|e| FleetError::Database(e.to_string()))?;
    let added = sqlx::query(
        "INSERT INTO ralph_seal.runs (run, request, title, person, repo, needs, source, at_once, secrets, profiles)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING",
    )
    .bind(new.run.as_str())
    .bind(text)
    .bind(&new.title)
    .bind(&new.person)
    .bind(repo)
    .bind(needs_of(&new.request, &new.labels))
    .bind(&new.source)
    .bind(new.at_once.map(|most| i32::try_from(most).unwrap_or(i32::MAX)))
    .bind(&new.secrets)
    .bind(&new.profiles[..])
    .execute(&mut *db)
    .await?;
    if added.rows_affected() == 0 {
        return Ok(false);
    }
    if let Some(occasion) = &new.occasion {
        let first =
            sqlx::query("INSERT INTO ralph_seal.occasions (key, run) VALUES ($1, $2) ON CONFLICT DO NOTHING")
                .bind(occasion)
                .bind(new.run.as_str())
                .execute(&mut *db)
                .await?;
        if first.rows_affected() == 0 {
            return Ok(false);
        }
    }
    sqlx::query("INSERT INTO ralph_seal.leases (run) VALUES ($1)")
        .bind(new.run.as_str())
        .execute(&mut *db)
        .await?;
    sqlx::query("SELECT pg_notify($1, '')").bind(WAITS).execute(&mut *db).await?;
    Ok(true)
}

/// What a process needs to know of a run that it has just taken: one statement for all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The code host tells this run what is new.
    pub told: bool,
    /// How often it has.
    pub news: i64,
    /// Whether the server gives it secrets.
    pub has_secrets: bool,
    profiles: Option<Vec<Option<String>>>,
    request: String,
}

from_row!(Assignment: told, news, has_secrets, profiles, request);

impl Assignment {
    /// What was asked for.
    pub fn request(&self) -> Result<RunRequest, FleetError> {
        serde_json::from_str(&self.request)
            .map_err(|e| FleetError::Database(format!("the request of the run: {e}")))
    }

    /// The model profiles that it works with, by the variables that name them.
    pub fn profiles(&self) -> Vec<(&'static str, String)> {
        let names = ["RALPH_DEFAULT_MODEL_PROFILE", "RALPH_FALLBACK_MODEL_PROFILE"];
        let found = self.profiles.iter().flatten();
        names.into_iter().zip(found).filter_map(|(name, profile)| Some((name, profile.clone()?))).collect()
    }
}

/// What the process that has taken a run is to do.
pub async fn assignment(db: impl PgExecutor<'_>, run: &str) -> Result<Assignment, FleetError> {
    let found: Option<Assignment> = sqlx::query_as(
        "SELECT told, news, cardinality(secrets) > 0 AS has_secrets, profiles, request
         FROM ralph_seal.runs WHERE run = $1",
    )
    .bind(run)
    .fetch_optional(db)
    .await?;
    found.ok_or_else(|| FleetError::NoRun { run: run.to_owned() })
}

/// One run.
pub async fn find(pool: &PgPool, run: &str) -> Result<Option<FleetRun>, FleetError> {
    let query = format!(
        "SELECT {COLUMNS} FROM ralph_seal.runs r JOIN ralph_seal.leases l ON l.run = r.run WHERE r.run = $1"
    );
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(run).fetch_optional(pool).await?)
}

/// The newest runs; those that are not over first.
pub async fn list(pool: &PgPool, most: i64) -> Result<Vec<FleetRun>, FleetError> {
    let query = format!(
        "SELECT {COLUMNS} FROM ralph_seal.runs r JOIN ralph_seal.leases l ON l.run = r.run
         ORDER BY (r.status = 'over'), r.queued_at DESC LIMIT $1"
    );
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(most).fetch_all(pool).await?)
}

/// The process that was to drive it did not start: it is given out again later.
pub async fn not_begun(pool: &PgPool, run: &str, why: &str) -> Result<(), FleetError> {
    sqlx::query(
        "UPDATE ralph_seal.runs SET problem = $2, worker = NULL, not_before = now() + interval '5 seconds'
         WHERE run = $1 AND status = 'queued'",
    )
    .bind(run)
    .bind(ralph_loop_protocol::display::text::one_line(why, 500))
    .execute(pool)
    .await?;
    Ok(())
}

/// What was given to a worker that has not begun it goes to others at once.
pub async fn give_back(pool: &PgPool, worker: &str) -> Result<(), FleetError> {
    sqlx::query(
        "UPDATE ralph_seal.runs SET worker = NULL, not_before = now() WHERE worker = $1 AND status = 'queued'",
    )
    .bind(worker)
    .execute(pool)
    .await?;
    Ok(())
}

/// Takes a run that has not begun out of the queue; whether it was there.
pub async fn take_out(pool: &PgPool, run: &str) -> Result<bool, FleetError> {
    // The row lock decides a race with a worker: if the worker takes the lease first, this does nothing; otherwise it finds the
    // run over.
    let taken = sqlx::query(
        "WITH free AS (
            SELECT run FROM ralph_seal.leases WHERE run = $1 AND head = 0 AND until IS NULL FOR UPDATE
         )
         UPDATE ralph_seal.runs r SET status = 'over', worker = NULL, problem = 'taken out of the queue' FROM free
         WHERE r.run = free.run AND r.status IN ('queued', 'resting')",
    )
    .bind(run)
    .execute(pool)
    .await?;
    Ok(taken.rows_affected() == 1)
}

/// Lets only workers with these labels take a run, beside what it needs already.
pub async fn require(pool: &PgPool, run: &str, labels: &[String]) -> Result<(), FleetError> {
    sqlx::query("UPDATE ralph_seal.runs SET needs = needs || $2 WHERE run = $1")
        .bind(run)
        .bind(labels)
        .execute(pool)
        .await?;
    Ok(())
}

/// Records how many event kinds a run's journal may have. Workers that know fewer leave it alone.
pub async fn written_by(pool: &PgPool, run: &str, kinds: i64) -> Result<(), FleetError> {
    sqlx::query("UPDATE ralph_seal.runs SET kinds = GREATEST(kinds, $2) WHERE run = $1")
        .bind(run)
        .bind(kinds)
        .execute(pool)
        .await?;
    Ok(())
}

/// What others want of a run that is driven, asked for again and again: one small statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pulse {
    /// The code host tells this run what is new.
    pub told: bool,
    /// How often it has.
    pub news: i64,
    /// The worker hands over its runs.
    pub draining: bool,
    /// The worker may drive no more.
    pub revoked: bool,
    /// The number of the last letter.
    pub letter: i64,
}

from_row!(Pulse: told, news, draining, revoked, letter);

/// Returns what users, the fleet and the code host want of a run now. A worker that the fleet doesn't know, because another
/// scheduler placed the process, counts as not draining.
pub async fn pulse(db: impl PgExecutor<'_>, run: &str, worker: &str) -> Result<Pulse, FleetError> {
    let found: Option<Pulse> = sqlx::query_as(
        "SELECT r.told, r.news, COALESCE(w.draining, false) AS draining, COALESCE(w.revoked, false) AS revoked,
            COALESCE((SELECT max(n) FROM ralph_seal.letters WHERE run = $1), 0) AS letter
         FROM ralph_seal.runs r LEFT JOIN ralph_seal.workers w ON w.id = $2 WHERE r.run = $1",
    )
    .bind(run)
    .bind(worker)
    .fetch_optional(db)
    .await?;
    found.ok_or_else(|| FleetError::NoRun { run: run.to_owned() })
}

/// What a run is given of the server's secrets, by name, instead of what it was asked for with.
pub async fn give_secrets(pool: &PgPool, run: &str, names: &[String]) -> Result<(), FleetError> {
    sqlx::query("UPDATE ralph_seal.runs SET secrets = $2 WHERE run = $1")
        .bind(run)
        .bind(names)
        .execute(pool)
        .await?;
    Ok(())
}

/// The occasions that begin with this and have started a run.
pub async fn occasions(pool: &PgPool, prefix: &str) -> Result<Vec<String>, FleetError> {
    Ok(sqlx::query_scalar(
        "SELECT key FROM ralph_seal.occasions WHERE starts_with(key, $1) AND run IS NOT NULL ORDER BY key",
    )
    .bind(prefix)
    .fetch_all(pool)
    .await?)
}

/// A run that hasn't begun, or that the server has no copy of yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotBegun {
    /// Its id.
    pub run: String,
    /// The task in a few words.
    pub title: String,
    /// Who asked.
    pub person: String,
    /// What it is about.
    pub repo: String,
    /// When it was asked for, in milliseconds.
    pub at: i64,
    /// Why it does not begin.
    pub problem: Option<String>,
    /// `ralph` doesn't retry it automatically.
    pub resting: bool,
    /// Its journal has events.
    pub begun: bool,
    /// Labels that it needs and no worker has, or no worker has all of.
    pub missing: Vec<String>,
}

from_row!(NotBegun: run, title, person, repo, at, problem, resting, begun, missing);

const WAITING: &str = "WITH able AS MATERIALIZED (
        SELECT labels FROM ralph_seal.workers
        WHERE seen > now() - interval '15 seconds' AND NOT draining AND NOT revoked
     ), known AS MATERIALIZED (SELECT DISTINCT unnest(labels) AS label FROM able)
     SELECT r.run, r.title, r.person, r.repo, (EXTRACT(EPOCH FROM r.queued_at) * 1000)::bigint AS at, r.problem,
        r.status = 'resting' AS resting, l.head > 0 AS begun,
        CASE WHEN EXISTS (SELECT FROM able WHERE r.needs <@ labels) THEN '{}' ELSE
            COALESCE(NULLIF(ARRAY(SELECT unnest(r.needs) EXCEPT SELECT label FROM known ORDER BY 1), '{}'), r.needs)
        END AS missing
     FROM ralph_seal.runs r JOIN ralph_seal.leases l ON l.run = r.run";

/// Finds a run that isn't over, for a server that has no copy of it yet.
pub async fn not_over(pool: &PgPool, run: &str) -> Result<Option<NotBegun>, FleetError> {
    let query = format!("{WAITING} WHERE r.run = $1 AND r.status <> 'over'");
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(run).fetch_optional(pool).await?)
}

/// Takes a run that is over out of the record for good. What it was an answer to stays known: nothing starts it again.
pub async fn forget(pool: &PgPool, run: &str) -> Result<bool, FleetError> {
    let mut whole = pool.begin().await?;
    let over = sqlx::query("DELETE FROM ralph_seal.runs WHERE run = $1 AND status = 'over'")
        .bind(run)
        .execute(&mut *whole)
        .await?;
    if over.rows_affected() == 0 {
        return Ok(false);
    }
    for table in ["events", "letters", "grants", "output", "leases"] {
        let query = format!("DELETE FROM ralph_seal.{table} WHERE run = $1");
        sqlx::query(sqlx::AssertSqlSafe(query)).bind(run).execute(&mut *whole).await?;
    }
    whole.commit().await?;
    Ok(true)
}

/// Lists the runs that haven't begun, oldest first.
pub async fn not_begun_yet(pool: &PgPool, most: i64) -> Result<Vec<NotBegun>, FleetError> {
    let query = format!("{WAITING} WHERE r.status <> 'over' AND l.head = 0 ORDER BY r.queued_at LIMIT $1");
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(most).fetch_all(pool).await?)
}
