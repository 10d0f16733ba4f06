//! The tables of the fleet, step by step. They are the record and are backed up; the index is another schema and can be thrown
//! away.

use sqlx::PgPool;

/// A number of our own for the lock under which tables are made.
const LOCK: i64 = 0x7261_6c70_6801;

/// One list of statements per version.
const STEPS: &[&[&str]] = &[&[
    // Written with every event: small rows, and room on the page, so that no index has to be touched.
    "CREATE TABLE ralph_seal.leases (
        run TEXT PRIMARY KEY,
        epoch BIGINT NOT NULL DEFAULT 0,
        head BIGINT NOT NULL DEFAULT 0,
        holder TEXT,
        until TIMESTAMPTZ
    ) WITH (fillfactor = 50)",
    "CREATE TABLE ralph_seal.events (
        run TEXT NOT NULL,
        at BIGINT NOT NULL,
        epoch BIGINT NOT NULL,
        line BYTEA NOT NULL,
        PRIMARY KEY (run, at)
    )",
    "CREATE TABLE ralph_seal.runs (
        run TEXT PRIMARY KEY,
        status TEXT NOT NULL DEFAULT 'queued',
        request TEXT NOT NULL,
        title TEXT NOT NULL DEFAULT '',
        person TEXT NOT NULL DEFAULT '',
        repo TEXT NOT NULL DEFAULT '',
        needs TEXT[] NOT NULL DEFAULT '{}',
        source TEXT NOT NULL DEFAULT '',
        at_once INT,
        -- Secrets of the server that it is given, by name.
        secrets TEXT[] NOT NULL DEFAULT '{}',
        profiles TEXT[] NOT NULL DEFAULT '{}',
        -- The code host says what is new; how often it has.
        told BOOLEAN NOT NULL DEFAULT false,
        news BIGINT NOT NULL DEFAULT 0,
        spec BYTEA,
        kinds BIGINT NOT NULL DEFAULT 0,
        queued_at TIMESTAMPTZ NOT NULL DEFAULT now(),
        -- No worker is given it before: after a failure, and while the worker that was given it starts.
        not_before TIMESTAMPTZ NOT NULL DEFAULT now(),
        -- The worker that it was given to, and its login: others see nothing of the run.
        worker TEXT,
        given_role TEXT,
        fails INT NOT NULL DEFAULT 0,
        problem TEXT
    )",
    // For `take.sql` and the list of waiting runs.
    "CREATE INDEX runs_waiting ON ralph_seal.runs (needs, person, source, queued_at) WHERE status = 'queued'",
    "CREATE INDEX runs_open ON ralph_seal.runs (queued_at) WHERE status <> 'over'",
    "CREATE INDEX runs_given ON ralph_seal.runs (worker) WHERE worker IS NOT NULL",
    "CREATE TABLE ralph_seal.letters (
        n BIGINT GENERATED ALWAYS AS IDENTITY,
        run TEXT NOT NULL,
        id TEXT NOT NULL,
        letter TEXT NOT NULL,
        sent_at TIMESTAMPTZ NOT NULL DEFAULT now(),
        PRIMARY KEY (run, id)
    )",
    "CREATE INDEX letters_order ON ralph_seal.letters (run, n)",
    "CREATE TABLE ralph_seal.workers (
        id TEXT PRIMARY KEY,
        labels TEXT[] NOT NULL DEFAULT '{}',
        capacity INT NOT NULL DEFAULT 1,
        version TEXT NOT NULL DEFAULT '',
        kinds BIGINT NOT NULL DEFAULT 0,
        role TEXT,
        load DOUBLE PRECISION NOT NULL DEFAULT 0,
        health TEXT NOT NULL DEFAULT 'ok',
        since TIMESTAMPTZ NOT NULL DEFAULT now(),
        seen TIMESTAMPTZ,
        draining BOOLEAN NOT NULL DEFAULT false,
        revoked BOOLEAN NOT NULL DEFAULT false
    )",
    "CREATE TABLE ralph_seal.tokens (
        digest TEXT PRIMARY KEY,
        made_at TIMESTAMPTZ NOT NULL DEFAULT now(),
        until TIMESTAMPTZ NOT NULL,
        used_by TEXT
    )",
    // What has started a run or steered one: nothing does so twice.
    "CREATE TABLE ralph_seal.occasions (
        key TEXT PRIMARY KEY,
        run TEXT,
        at TIMESTAMPTZ NOT NULL DEFAULT now()
    )",
    "CREATE TABLE ralph_seal.threads (
        place TEXT PRIMARY KEY,
        run TEXT NOT NULL,
        at TIMESTAMPTZ NOT NULL,
        comment BIGINT NOT NULL DEFAULT 0
    )",
    "CREATE TABLE ralph_seal.grants (
        run TEXT NOT NULL,
        epoch BIGINT NOT NULL,
        key BYTEA NOT NULL,
        sealed BYTEA,
        PRIMARY KEY (run, epoch)
    )",
    // An enrolled worker has its own login, and sees its own row and the runs that it was given. The owner of the tables (the
    // server, and workers started with its database URL) sees everything.
    "ALTER TABLE ralph_seal.runs ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE ralph_seal.leases ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE ralph_seal.events ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE ralph_seal.letters ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE ralph_seal.grants ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE ralph_seal.workers ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY own ON ralph_seal.workers USING (role = current_user)",
    "CREATE POLICY given ON ralph_seal.runs USING (given_role = current_user)",
    "CREATE POLICY given ON ralph_seal.leases USING (EXISTS
        (SELECT 1 FROM ralph_seal.runs r WHERE r.run = leases.run AND r.given_role = current_user))",
    "CREATE POLICY given ON ralph_seal.events USING (EXISTS
        (SELECT 1 FROM ralph_seal.runs r WHERE r.run = events.run AND r.given_role = current_user))",
    "CREATE POLICY given ON ralph_seal.letters USING (EXISTS
        (SELECT 1 FROM ralph_seal.runs r WHERE r.run = letters.run AND r.given_role = current_user))",
    "CREATE POLICY given ON ralph_seal.grants USING (EXISTS
        (SELECT 1 FROM ralph_seal.runs r WHERE r.run = grants.run AND r.given_role = current_user))",
    include_str!("take.sql"),
]];

/// Brings the tables to the newest version. Two that start at once do it one after the other.
pub(crate) async fn migrate(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut whole = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *whole).await?;
    sqlx::query("CREATE SCHEMA IF NOT EXISTS ralph_seal").execute(&mut *whole).await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS ralph_seal.version (version BIGINT PRIMARY KEY)")
        .execute(&mut *whole)
        .await?;
    let known: Option<i64> =
        sqlx::query_scalar("SELECT MAX(version) FROM ralph_seal.version").fetch_one(&mut *whole).await?;
    let known = usize::try_from(known.unwrap_or(0)).unwrap_or(0);
    for (at, step) in STEPS.iter().enumerate().skip(known) {
        for statement in *step {
            sqlx::query(*statement).execute(&mut *whole).await?;
        }
        sqlx::query("INSERT INTO ralph_seal.version (version) VALUES ($1)")
            .bind(i64::try_from(at + 1).unwrap_or(i64::MAX))
            .execute(&mut *whole)
            .await?;
    }
    whole.commit().await
}

/// Postgres' error code for a missing table or schema.
const NO_TABLE: &str = "42P01";

/// Whether the tables are there: one whose role may not make any looks before it tries.
pub(crate) async fn is_current(pool: &PgPool) -> Result<bool, sqlx::Error> {
    let known: Result<Option<i64>, _> =
        sqlx::query_scalar("SELECT MAX(version) FROM ralph_seal.version").fetch_one(pool).await;
    let known = match known {
        Err(error) if error.as_database_error().and_then(|e| e.code()).as_deref() == Some(NO_TABLE) => None,
        known => known?,
    };
    Ok(usize::try_from(known.unwrap_or(0)).unwrap_or(0) >= STEPS.len())
}
