//! Which run a worker gets: `take.sql`, by labels, free places and fairness between people. It points a worker at a run; who may
//! drive it is decided by the lease alone, so a run that is pointed at twice or too late does no harm.

use crate::error::FleetError;
use sqlx::PgExecutor;

/// The channel on which workers hear of a new run. Those that don't hear it ask a little later.
pub const WAITS: &str = "ralph_waits";

/// Gives a worker the run that is next for it, if one waits that it can take. It has ten seconds to take its lease.
pub async fn next_run(db: impl PgExecutor<'_>, worker: &str) -> Result<Option<String>, FleetError> {
    Ok(sqlx::query_scalar("SELECT ralph_seal.take($1)").bind(worker).fetch_one(db).await?)
}
