//! Idempotency keys: a repeated request creates one run.

use super::{Index, on};
use crate::http::problem::Problem;

/// Lifetime of a key in milliseconds.
const AGE: i64 = 24 * 3600 * 1000;

/// A stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    pub run: String,
    pub request: String,
    /// Whether the run was stored; otherwise the client may have got an error.
    pub kept: i64,
}

impl Index {
    /// Reserves a key for a run that isn't stored yet. Returns the existing entry if there is one.
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
            let known: Option<(String, String, i64)> =
                sqlx::query_as("SELECT run, request, kept FROM idempotency WHERE name = $1")
                    .bind(name)
                    .fetch_optional(pool)
                    .await?;
            Ok(known.map(|(run, request, kept)| KnownKey { run, request, kept }))
        })
    }

    /// Marks a key's run as stored, so that it is never created again.
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

    /// Removes the key of a rejected run, so that the request can be repeated.
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
