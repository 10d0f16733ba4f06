//! Idempotency keys: a request that comes twice makes one run.

use super::{Index, on};
use crate::problem::Problem;

/// How long a key is remembered, in milliseconds.
const AGE: i64 = 24 * 3600 * 1000;

impl Index {
    /// Notes that a key stands for a run. Where it already does, the run and the request that it was for come back.
    pub async fn remember_key(
        &self,
        name: &str,
        request: &str,
        run: &str,
        now: i64,
    ) -> Result<Option<(String, String)>, Problem> {
        on!(self, pool => {
            sqlx::query("DELETE FROM idempotency WHERE at < $1").bind(now - AGE).execute(pool).await?;
            let mine = sqlx::query(
                "INSERT INTO idempotency (name, request, run, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
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
            Ok(sqlx::query_as("SELECT run, request FROM idempotency WHERE name = $1")
                .bind(name)
                .fetch_optional(pool)
                .await?)
        })
    }

    /// Forgets a key whose run was refused: the same request may be sent again.
    pub async fn forget_key(&self, name: &str) -> Result<(), Problem> {
        on!(self, pool => {
            sqlx::query("DELETE FROM idempotency WHERE name = $1").bind(name).execute(pool).await?;
            Ok(())
        })
    }
}
