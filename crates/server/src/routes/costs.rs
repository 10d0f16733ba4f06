//! Run costs.

use crate::auth::Caller;
use crate::http::extract::{Answer, QueryParams};
use crate::http::problem::Problem;
use crate::index::{CostSums, CostsBy};
use crate::server::Server;
use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use std::sync::Arc;

/// Default number of days.
const DAYS: i64 = 30;

/// Which sums.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CostsQuery {
    /// How costs are grouped.
    by: CostsBy,
    /// A number of days (`7d`) or a time.
    since: Option<String>,
}

pub(crate) async fn costs(
    State(server): State<Arc<Server>>,
    _: Caller,
    QueryParams(query): QueryParams<CostsQuery>,
) -> Answer<Json<CostSums>> {
    let since = since(query.since.as_deref(), server.now())?;
    Ok(Json(server.index.costs(query.by, since).await?))
}

fn since(text: Option<&str>, now: Timestamp) -> Result<Timestamp, Problem> {
    let back =
        |days: i64| now.checked_sub(SignedDuration::from_hours(days * 24)).unwrap_or(Timestamp::UNIX_EPOCH);
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(back(DAYS)) };
    let days =
        text.strip_suffix('d').and_then(|n| n.parse::<i64>().ok()).filter(|n| (0..=36_500).contains(n));
    days.map(back).or_else(|| text.parse().ok()).ok_or_else(|| {
        Problem::bad("`since` is a number of days like `7d`, or a moment like `2026-11-17T00:00:00Z`")
    })
}
