//! Races: several runs of one task in parallel.

use crate::auth::Caller;
use crate::http::extract::Answer;
use crate::http::problem::Problem;
use crate::people::Role;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::race::RaceView;
use ralph_loop_app::race::races;
use ralph_loop_protocol::id::RunId;
use std::sync::Arc;

/// Races listed.
const LATEST: usize = 50;

/// The latest races, newest first.
pub(crate) async fn list(State(server): State<Arc<Server>>, caller: Caller) -> Answer<Json<Vec<RaceView>>> {
    caller.may(Role::Viewer)?;
    let env = server.app.environment().clone();
    Ok(Json(server.blocking(move || Ok(races::latest(&env, LATEST)?)).await?))
}

/// A run's race.
pub(crate) async fn one(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(run): Path<String>,
) -> Answer<Json<RaceView>> {
    caller.may(Role::Viewer)?;
    let missing = || Problem::missing("that run is in no race");
    let run = RunId::parse(&run).map_err(|_| missing())?;
    let env = server.app.environment().clone();
    let found = server.blocking(move || Ok(races::of_run(&env, &run)?)).await?;
    Ok(Json(found.ok_or_else(missing)?))
}
