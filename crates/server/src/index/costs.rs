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
    /// What is known of their cost; nothing if no session's cost is known.
    pub cost_usd: Option<f64>,
    /// Tokens; nothing if no session reported any.
    pub tokens: Option<i64>,
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
    /// Everything that is known; nothing if no session's cost is known.
    pub cost_usd: Option<f64>,
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
                cost_usd: known(cost_usd, unknown_sessions),
                tokens: (tokens > 0 || sessions == 0).then_some(tokens),
                unknown_sessions,
            })
            .collect();
        rows.sort_by(|a, b| match by {
            CostsBy::Day => a.name.cmp(&b.name),
            _ => {
                known_first(b.cost_usd).total_cmp(&known_first(a.cost_usd)).then_with(|| a.name.cmp(&b.name))
            }
        });
        let sum = rows.iter().filter_map(|row| row.cost_usd).sum();
        let cost_usd = known(sum, rows.iter().map(|row| row.unknown_sessions).sum());
        Ok(CostSums { by, since, rows, cost_usd })
    }
}

/// A sum of costs; nothing where all of it is of sessions whose cost is unknown.
fn known(sum: f64, unknown_sessions: i64) -> Option<f64> {
    (sum > 0.0 || unknown_sessions == 0).then_some(sum)
}

fn known_first(cost: Option<f64>) -> f64 {
    cost.unwrap_or(-1.0)
}

/// The day of this number, as `2026-11-17`.
fn day(number: &str) -> String {
    let at = number.parse::<i64>().ok().and_then(|n| Timestamp::from_millisecond(n.checked_mul(DAY)?).ok());
    at.unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y-%m-%d").to_string()
}
