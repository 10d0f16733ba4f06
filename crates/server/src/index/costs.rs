//! Totals of run costs.

use super::{Index, on};
use crate::http::problem::Problem;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

/// How costs are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CostsBy {
    /// The day, UTC.
    #[default]
    Day,
    /// The agent.
    Agent,
    /// The model.
    Model,
    /// The repo.
    Repo,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostRow {
    /// The day, agent, model or repo.
    pub name: String,
    /// Runs that took part.
    pub runs: i64,
    /// Sessions.
    pub sessions: i64,
    /// Known cost; null if no session's cost is known.
    pub cost_usd: Option<f64>,
    /// Tokens; null if no session reported any.
    pub tokens: Option<i64>,
    /// Sessions with unknown cost.
    pub unknown_sessions: i64,
}

/// All sums: days in order, otherwise the most expensive first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostSums {
    /// How they are grouped.
    pub by: CostsBy,
    /// Since when.
    pub since: Timestamp,
    /// The sums.
    pub rows: Vec<CostRow>,
    /// Known total; null if no session's cost is known.
    pub cost_usd: Option<f64>,
}

const DAY: i64 = 24 * 3600 * 1000;

impl Index {
    /// Totals what ended since then.
    pub async fn costs(&self, by: CostsBy, since: Timestamp) -> Result<CostSums, Problem> {
        let column = match by {
            // Whole days since 1970 as text: both databases divide integers the same way.
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

/// A known sum; `None` if the cost of every session is unknown.
fn known(sum: f64, unknown_sessions: i64) -> Option<f64> {
    (sum > 0.0 || unknown_sessions == 0).then_some(sum)
}

fn known_first(cost: Option<f64>) -> f64 {
    cost.unwrap_or(-1.0)
}

/// A day number as `2026-11-17`.
fn day(number: &str) -> String {
    let at = number.parse::<i64>().ok().and_then(|n| Timestamp::from_millisecond(n.checked_mul(DAY)?).ok());
    at.unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y-%m-%d").to_string()
}
