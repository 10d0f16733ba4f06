//! Migrations of the index: each version adds to the previous one.

use super::{Index, on};

/// Statements per version.
const STEPS: &[&[&str]] = &[
    &[
        "CREATE TABLE runs (
        id TEXT NOT NULL PRIMARY KEY,
        status TEXT NOT NULL,
        repo TEXT NOT NULL,
        person TEXT NOT NULL,
        open BIGINT NOT NULL,
        created BIGINT NOT NULL,
        updated BIGINT NOT NULL,
        cost DOUBLE PRECISION NOT NULL,
        iteration BIGINT NOT NULL,
        score DOUBLE PRECISION NOT NULL,
        search TEXT NOT NULL,
        body TEXT NOT NULL
    )",
        // Lists sort by one column and id, with at most one filter.
        "CREATE INDEX runs_updated ON runs (updated, id)",
        "CREATE INDEX runs_created ON runs (created, id)",
        "CREATE INDEX runs_cost ON runs (cost, id)",
        "CREATE INDEX runs_iteration ON runs (iteration, id)",
        "CREATE INDEX runs_score ON runs (score, id)",
        "CREATE INDEX runs_status ON runs (status, updated, id)",
        "CREATE INDEX runs_open ON runs (open, updated, id)",
        "CREATE INDEX runs_repo ON runs (repo, updated, id)",
        "CREATE INDEX runs_person ON runs (person, updated, id)",
        "CREATE TABLE spend (
        run TEXT NOT NULL,
        part TEXT NOT NULL,
        at BIGINT NOT NULL,
        agent TEXT NOT NULL,
        model TEXT NOT NULL,
        repo TEXT NOT NULL,
        cost DOUBLE PRECISION NOT NULL,
        tokens BIGINT NOT NULL,
        sessions BIGINT NOT NULL,
        unpriced BIGINT NOT NULL,
        PRIMARY KEY (run, part)
    )",
        "CREATE INDEX spend_at ON spend (at)",
        "CREATE TABLE idempotency (
        name TEXT NOT NULL PRIMARY KEY,
        request TEXT NOT NULL,
        run TEXT NOT NULL,
        at BIGINT NOT NULL
    )",
    ],
    &[
        // Search text, separate from the row bodies.
        "CREATE INDEX runs_search ON runs (updated, id, search)",
    ],
    &[
        // A key is stored before its run: tells the two states apart.
        "ALTER TABLE idempotency ADD COLUMN kept BIGINT NOT NULL DEFAULT 1",
    ],
    &[
        // The machine whose records a row comes from: servers that share a database remove only their own rows.
        "ALTER TABLE runs ADD COLUMN home TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX runs_home ON runs (home)",
    ],
];

/// Migrates to the newest version; concurrent starts do it once.
pub(super) async fn migrate(index: &Index) -> Result<(), sqlx::Error> {
    on!(index, pool => {
        sqlx::query("CREATE TABLE IF NOT EXISTS ralph_index_version (version BIGINT NOT NULL PRIMARY KEY)")
            .execute(pool)
            .await?;
        let known: Option<i64> =
            sqlx::query_scalar("SELECT MAX(version) FROM ralph_index_version").fetch_one(pool).await?;
        let known = usize::try_from(known.unwrap_or(0)).unwrap_or(0);
        for (at, step) in STEPS.iter().enumerate().skip(known) {
            let mut whole = pool.begin().await?;
            // The second one stops here and finds everything done.
            let version = i64::try_from(at + 1).unwrap_or(i64::MAX);
            let mine = sqlx::query("INSERT INTO ralph_index_version (version) VALUES ($1) ON CONFLICT DO NOTHING")
                .bind(version)
                .execute(&mut *whole)
                .await?;
            if mine.rows_affected() == 0 {
                continue;
            }
            for statement in *step {
                sqlx::query(*statement).execute(&mut *whole).await?;
            }
            whole.commit().await?;
        }
        Ok(())
    })
}

/// Drops all tables for a rebuild.
pub(super) async fn drop_all(index: &Index) -> Result<(), sqlx::Error> {
    on!(index, pool => {
        for statement in [
            "DROP TABLE IF EXISTS runs",
            "DROP TABLE IF EXISTS spend",
            "DROP TABLE IF EXISTS idempotency",
            "DROP TABLE IF EXISTS ralph_index_version",
        ] {
            sqlx::query(statement).execute(pool).await?;
        }
        Ok(())
    })
}
