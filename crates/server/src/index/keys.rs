//! Idempotency keys: a request that comes twice makes one run.

use super::{Index, on};
use crate::problem::Problem;

/// How long a key is remembered, in milliseconds.
const AGE: i64 = 24 * 3600 * 1000;

/// What a key stands for.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct KnownKey {
    /// The run.
    pub run: String,
    /// The request that it was for.
    pub request: String,
    /// Whether the run was kept; else whoever asked may have been told that it was not.
    pub kept: i64,
}

impl Index {
    /// Notes that a key stands for a run, which is not kept yet. Where it already stands for one, that comes back.
    pub async fn remember_key(
        &self,
        name: &str,
        request: &str,
        run: &str,
        now: i64,
    ) -> Result<Option<KnownKey>, Problem> {
        on!(self, pool => {
            sqlx::query("DELETE FROM idempotency WHERE at < $1").bind(now - AGE).execute(pool).await?;
            let mine = sqlx::query(
                "INSERT INTO idempotency (name, request, run, at, kept) VALUES ($1, $2, $3, $4, 0) ON CONFLICT DO NOTHING",
            )
            .bind(name)
            .bind(request)
            .bind(run)
            .bind(now)
            .execute(pool)
            .await?;
            if mine.rows_affected() > 0 {
                return Ok(None);
            }
            Ok(sqlx::query_as("SELECT run, request, kept FROM idempotency WHERE name = $1")
                .bind(name)
                .fetch_optional(pool)
                .await?)
        })
    }

    /// The run of a key is kept: it is never made again.
    pub async fn keep_key(&self, name: &str, run: &str) -> Result<(), Problem> {
        on!(self, pool => {
            sqlx::query("UPDATE idempotency SET kept = 1 WHERE name = $1 AND run = $2")
                .bind(name)
                .bind(run)
                .execute(pool)
                .await?;
            Ok(())
        })
    }

    /// Forgets a key whose run was refused: the same request may be sent again.
    pub async fn forget_key(&self, name: &str, run: &str) -> Result<(), Problem> {
        on!(self, pool => {
            sqlx::query("DELETE FROM idempotency WHERE name = $1 AND run = $2")
                .bind(name)
                .bind(run)
                .execute(pool)
                .await?;
            Ok(())
        })
    }
}
