//! Writes rows.

use super::{Index, Pool, Spend, on, schema};
use crate::row::RunRow;
use ralph_loop_protocol::money::Usd;
use std::collections::HashMap;

/// The indexed data of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Indexed {
    pub row: RunRow,
    /// Its session costs; `None` if unchanged.
    pub spend: Option<Vec<Spend>>,
}

/// What is known of a run without its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Whether it may still change.
    pub open: bool,
    /// Whether its row comes from a record of this machine.
    pub is_own: bool,
}

const PUT: &str = "INSERT INTO runs (id, status, repo, person, open, created, updated, cost, iteration, score, search, body, home) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (id) DO UPDATE SET \
     status = excluded.status, repo = excluded.repo, person = excluded.person, open = excluded.open, \
     created = excluded.created, updated = excluded.updated, cost = excluded.cost, iteration = excluded.iteration, \
     score = excluded.score, search = excluded.search, body = excluded.body, home = excluded.home";
const SPEND: &str = "INSERT INTO spend (run, part, at, agent, model, repo, cost, tokens, sessions, unpriced) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

impl Index {
    /// Writes rows in one transaction.
    pub async fn put(&self, rows: &[Indexed]) -> Result<(), sqlx::Error> {
        on!(self, pool => {
            let mut whole = pool.begin().await?;
            for Indexed { row, spend } in rows {
                sqlx::query(PUT)
                    .bind(&row.id)
                    .bind(&row.status)
                    .bind(&row.repo)
                    .bind(row.person.as_deref().unwrap_or_default())
                    .bind(i64::from(!row.is_over()))
                    .bind(row.created_at.as_millisecond())
                    .bind(row.updated_at.as_millisecond())
                    // Sorts last by cost.
                    .bind(row.cost.known().map_or(-1.0, Usd::dollars))
                    .bind(i64::from(row.iteration))
                    .bind(row.loop_score.unwrap_or(-1.0))
                    .bind(row.search_text())
                    .bind(serde_json::to_string(row).unwrap_or_default())
                    .bind(&self.home)
                    .execute(&mut *whole)
                    .await?;
                let Some(spend) = spend else { continue };
                sqlx::query("DELETE FROM spend WHERE run = $1").bind(&row.id).execute(&mut *whole).await?;
                for part in spend {
                    sqlx::query(SPEND)
                        .bind(&row.id)
                        .bind(&part.part)
                        .bind(part.at.as_millisecond())
                        .bind(&part.agent)
                        .bind(&part.model)
                        .bind(&row.repo)
                        .bind(part.cost_usd)
                        .bind(part.tokens)
                        .bind(part.sessions)
                        .bind(part.unpriced)
                        .execute(&mut *whole)
                        .await?;
                }
            }
            whole.commit().await?;
        });
        self.words.put(rows.iter().map(|one| (one.row.id.clone(), one.row.search_text()))).await;
        Ok(())
    }

    /// Removes a run.
    pub async fn remove(&self, run: &str) -> Result<(), sqlx::Error> {
        on!(self, pool => {
            sqlx::query("DELETE FROM spend WHERE run = $1").bind(run).execute(pool).await?;
            sqlx::query("DELETE FROM runs WHERE id = $1").bind(run).execute(pool).await?;
        });
        // Afterwards, because of concurrent counts.
        self.words.remove(run).await;
        self.forget_counts();
        Ok(())
    }

    /// Every indexed run.
    pub async fn known(&self) -> Result<HashMap<String, Known>, sqlx::Error> {
        let rows: Vec<(String, i64, String)> =
            on!(self, pool => sqlx::query_as("SELECT id, open, home FROM runs").fetch_all(pool).await?);
        let known = |open, home| Known { open: open != 0, is_own: home == self.home };
        Ok(rows.into_iter().map(|(id, open, home)| (id, known(open, home))).collect())
    }

    /// Empties the index. A database that other servers may share loses only the rows of this machine.
    pub async fn clear(&self) -> Result<(), sqlx::Error> {
        self.forget_counts();
        self.words.clear().await;
        let Pool::Postgres(pool) = &self.pool else {
            schema::drop_all(self).await?;
            return schema::migrate(self).await;
        };
        let mut whole = pool.begin().await?;
        for statement in [
            "DELETE FROM spend WHERE run IN (SELECT id FROM runs WHERE home IN ($1, ''))",
            "DELETE FROM runs WHERE home IN ($1, '')",
        ] {
            sqlx::query(statement).bind(&self.home).execute(&mut *whole).await?;
        }
        whole.commit().await
    }

    /// The whole content in a fixed order, for comparisons.
    pub async fn dump(&self) -> Result<Vec<String>, sqlx::Error> {
        let rows: Vec<(String, String, i64)> = on!(self, pool => {
            sqlx::query_as("SELECT body, search, open FROM runs ORDER BY id").fetch_all(pool).await?
        });
        let spend: Vec<(String, String, i64, String, String, f64, i64)> = on!(self, pool => {
            sqlx::query_as("SELECT run, part, at, agent, model, cost, tokens FROM spend ORDER BY run, part")
                .fetch_all(pool)
                .await?
        });
        let rows = rows.into_iter().map(|row| format!("{row:?}"));
        Ok(rows.chain(spend.into_iter().map(|row| format!("{row:?}"))).collect())
    }
}
