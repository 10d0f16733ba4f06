//! The tables of the fleet, step by step. They are the record and are backed up; the index is another schema and can be thrown
//! away.

use crate::enrol;
use sqlx::{PgConnection, PgPool};

/// A number of our own for the lock under which tables are made.
const LOCK: i64 = 0x7261_6c70_6801;

/// The functions, in an order in which each finds those that it calls. They are replaced with every new version.
const FUNCTIONS: &[&str] = &[
    include_str!("pulse.sql"),
    include_str!("fault.sql"),
    include_str!("output.sql"),
    include_str!("start_over.sql"),
    include_str!("take.sql"),
];

/// One list of statements per version.
const STEPS: &[&[&str]] = &[FIRST, SECOND];

const FIRST: &[&str] = &[
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
];

const SECOND: &[&str] = &[
    "CREATE TABLE ralph_seal.pulse (
        one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
        at TIMESTAMPTZ NOT NULL DEFAULT now(),
        up_since TIMESTAMPTZ NOT NULL DEFAULT '-infinity'
    )",
    "INSERT INTO ralph_seal.pulse DEFAULT VALUES",
    "CREATE TABLE ralph_seal.faults (class TEXT PRIMARY KEY, total BIGINT NOT NULL DEFAULT 0)",
    "INSERT INTO ralph_seal.faults (class) VALUES ('outage'), ('lost'), ('crash'), ('worker')",
    "CREATE UNLOGGED TABLE ralph_seal.output (
        n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run TEXT NOT NULL,
        epoch BIGINT NOT NULL,
        at TIMESTAMPTZ NOT NULL DEFAULT now(),
        lines BYTEA NOT NULL
    )",
    "CREATE INDEX output_of_run ON ralph_seal.output (run, at)",
    // How long the lease is, each time it is taken or renewed.
    "ALTER TABLE ralph_seal.leases ADD COLUMN lasts INTERVAL NOT NULL DEFAULT '30 seconds'",
    "ALTER TABLE ralph_seal.runs
        ADD COLUMN fault TEXT,
        -- Faults since the last iteration, counted or not.
        ADD COLUMN tries INT NOT NULL DEFAULT 0,
        ADD COLUMN avoid TEXT,
        ADD COLUMN avoid_until TIMESTAMPTZ",
    // What a worker's login is made again with, after a restore into another cluster.
    "ALTER TABLE ralph_seal.workers ADD COLUMN login TEXT",
    // The cluster and database that the tables are in: a restored copy is in another one.
    "CREATE TABLE ralph_seal.home (cluster BIGINT NOT NULL, database OID NOT NULL)",
    // Rights are everybody's, and rows belong to logins. So a dump names no login, and restores into any cluster.
    "DO $$ DECLARE login TEXT; BEGIN
        FOR login IN SELECT role FROM ralph_seal.workers JOIN pg_roles ON rolname = role LOOP
            EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA ralph_seal FROM %I', login);
            EXECUTE format('REVOKE ALL ON SCHEMA ralph_seal FROM %I', login);
            IF to_regprocedure('ralph_seal.take(text)') IS NOT NULL THEN
                EXECUTE format('REVOKE ALL ON FUNCTION ralph_seal.take FROM %I', login);
            END IF;
        END LOOP;
    END $$",
    "GRANT USAGE ON SCHEMA ralph_seal TO PUBLIC",
    "GRANT SELECT ON ralph_seal.version, ralph_seal.home, ralph_seal.runs, ralph_seal.leases, ralph_seal.events,
        ralph_seal.letters, ralph_seal.workers, ralph_seal.grants TO PUBLIC",
    "GRANT UPDATE (epoch, head, holder, until, lasts) ON ralph_seal.leases TO PUBLIC",
    // Not what it needs, what it is given, or to whom.
    "GRANT UPDATE (status, worker, spec, kinds, fails, tries, problem, not_before) ON ralph_seal.runs TO PUBLIC",
    "GRANT INSERT ON ralph_seal.grants, ralph_seal.events TO PUBLIC",
    "GRANT UPDATE (labels, capacity, version, kinds, load, health, seen, draining) ON ralph_seal.workers TO PUBLIC",
    // A worker keeps a run by renewing its lease, not by one long lease.
    "DROP POLICY given ON ralph_seal.leases",
    "CREATE POLICY given ON ralph_seal.leases USING (EXISTS
        (SELECT 1 FROM ralph_seal.runs r WHERE r.run = leases.run AND r.given_role = current_user))
        WITH CHECK (until IS NULL OR until <= now() + interval '1 day')",
];

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
    for function in FUNCTIONS {
        sqlx::query(*function).execute(&mut *whole).await?;
    }
    move_in(&mut whole).await?;
    whole.commit().await
}

/// Makes a restored copy another fleet than the one that was dumped: holds from before are over, and enrolled workers keep
/// their logins.
async fn move_in(db: &mut PgConnection) -> Result<(), sqlx::Error> {
    let moved = sqlx::query("DELETE FROM ralph_seal.home").execute(&mut *db).await?.rows_affected() > 0;
    sqlx::query(
        "INSERT INTO ralph_seal.home SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database())
         FROM pg_control_system()",
    )
    .execute(&mut *db)
    .await?;
    if !moved {
        return Ok(());
    }
    // A later hold than any that was given out after the dump.
    sqlx::query("UPDATE ralph_seal.leases SET epoch = epoch + 1000000, until = NULL, holder = NULL")
        .execute(&mut *db)
        .await?;
    sqlx::query("UPDATE ralph_seal.runs SET status = 'queued', worker = NULL WHERE status = 'driven'")
        .execute(&mut *db)
        .await?;
    enrol::restore_logins(db).await
}

/// Postgres' error code for a missing table or schema.
const NO_TABLE: &str = "42P01";

/// Whether the tables are there, and not restored from elsewhere: one whose role may not make any looks before it tries.
pub(crate) async fn is_current(pool: &PgPool) -> Result<bool, sqlx::Error> {
    let known: Result<(Option<i64>, bool), _> = sqlx::query_as(
        "SELECT (SELECT MAX(version) FROM ralph_seal.version), EXISTS (SELECT FROM ralph_seal.home h
            JOIN pg_control_system() c ON c.system_identifier = h.cluster
            JOIN pg_database d ON d.oid = h.database AND d.datname = current_database())",
    )
    .fetch_one(pool)
    .await;
    let (known, is_home) = match known {
        Err(error) if error.as_database_error().and_then(|e| e.code()).as_deref() == Some(NO_TABLE) => {
            (None, false)
        }
        known => known?,
    };
    Ok(is_home && usize::try_from(known.unwrap_or(0)).unwrap_or(0) >= STEPS.len())
}
