//! What runs cost, added up.

use super::{Index, on};
use crate::problem::Problem;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

/// What costs are added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CostsBy {
    /// The day, UTC.
    #[default]
    Day,
    /// Who worked.
    Agent,
    /// With which model.
    Model,
    /// In which repo.
    Repo,
}

/// One sum.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostRow {
    /// The day, agent, model or repo.
    pub name: String,
    /// Runs that took part.
    pub runs: i64,
    /// Sessions.
    pub sessions: i64,
    /// What is known of their cost.
    pub cost_usd: f64,
    /// Tokens, where they are known.
    pub tokens: i64,
    /// Sessions whose cost nobody knows.
    pub unknown_sessions: i64,
}

/// All sums: days in their order, else the dearest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostSums {
    /// What they are added up by.
    pub by: CostsBy,
    /// Since when.
    pub since: Timestamp,
    /// The sums.
    pub rows: Vec<CostRow>,
    /// Everything that is known.
    pub cost_usd: f64,
}

const DAY: i64 = 24 * 3600 * 1000;

impl Index {
    /// Adds up what ended since then.
    pub async fn costs(&self, by: CostsBy, since: Timestamp) -> Result<CostSums, Problem> {
        let column = match by {
            // Whole days since 1970, as text: both databases divide whole numbers the same way.
            CostsBy::Day => "CAST(at / 86400000 AS TEXT)",
            CostsBy::Agent => "agent",
            CostsBy::Model => "model",
            CostsBy::Repo => "repo",
        };
        let text = format!(
            "SELECT {column}, COUNT(DISTINCT run), CAST(SUM(sessions) AS BIGINT), SUM(cost), CAST(SUM(tokens) AS BIGINT), \
             CAST(SUM(unpriced) AS BIGINT) FROM spend WHERE at >= $1 GROUP BY {column}"
        );
        let rows: Vec<(String, i64, i64, f64, i64, i64)> = on!(self, pool => {
            sqlx::query_as(AssertSqlSafe(text)).bind(since.as_millisecond()).fetch_all(pool).await?
        });
        let mut rows: Vec<CostRow> = rows
            .into_iter()
            .map(|(name, runs, sessions, cost_usd, tokens, unknown_sessions)| CostRow {
                name: if by == CostsBy::Day { day(&name) } else { name },
                runs,
                sessions,
                cost_usd,
                tokens,
                unknown_sessions,
            })
            .collect();
        rows.sort_by(|a, b| match by {
            CostsBy::Day => a.name.cmp(&b.name),
            _ => b.cost_usd.total_cmp(&a.cost_usd).then_with(|| a.name.cmp(&b.name)),
        });
        let cost_usd = rows.iter().map(|row| row.cost_usd).sum();
        Ok(CostSums { by, since, rows, cost_usd })
    }
}

/// The day of this number, as `2026-11-17`.
fn day(number: &str) -> String {
    let at = number.parse::<i64>().ok().and_then(|n| Timestamp::from_millisecond(n.checked_mul(DAY)?).ok());
    at.unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y-%m-%d").to_string()
}
