//! Lists runs and removes one.

use crate::auth::Caller;
use crate::http::extract::{Answer, QueryParams};
use crate::http::problem::Problem;
use crate::index::{ListQuery, Page};
use crate::people::Role;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_fleet::runs;
use ralph_loop_fleet::store::ArtifactStore;
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::id::RunId;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    _: Caller,
    QueryParams(query): QueryParams<ListQuery>,
) -> Answer<Json<Page>> {
    Ok(Json(server.index.list(&query).await?))
}

/// Removes a finished run with its record; commits and branches stay. A queued run leaves the queue.
pub(crate) async fn remove(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(run): Path<String>,
) -> Answer<StatusCode> {
    caller.may(Role::Operator)?;
    if server.scheduler.is_waiting(&run) {
        caller.note(&server, "remove", Some(&run), None)?;
        if !server.scheduler.take_out(&run).await? {
            return Err(Problem::conflict("the run begins at this moment").hint("try again in a few seconds"));
        }
        return Ok(StatusCode::NO_CONTENT);
    }
    if crate::routes::people::fleet::take_out(&server, &caller, &run, "cancel").await?.is_some() {
        return Ok(StatusCode::NO_CONTENT);
    }
    let entry = server.entry(&run)?;
    is_over(&server, &entry).await?;
    let own = server.clone();
    let of_fleet = server
        .blocking(move || {
            caller.note(&own, "remove", Some(entry.run_id.as_str()), None)?;
            let of_fleet = ralph_loop_app::adopt::is_of_fleet(&entry.run_dir());
            remove_record(&own, &entry)?;
            Ok(of_fleet)
        })
        .await?;
    if let Some(side) = server.fleet.as_ref().filter(|_| of_fleet) {
        // While its id is known, so that a failed removal can be retried.
        remove_objects(&server, &run).await?;
        // Otherwise a server would restore it.
        runs::forget(side.fleet.pool(), &run).await?;
    }
    server.live.remove(&run).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How long a process may take to exit after journaling the end: it is still cleaning up.
const LEAVING: Duration = Duration::from_secs(10);

/// Refuses an active run; waits for one that just ended. An unreadable run counts as ended.
async fn is_over(server: &Arc<Server>, entry: &Registration) -> Result<(), Problem> {
    let began = Instant::now();
    loop {
        let (own, looked_at) = (server.clone(), entry.clone());
        let seen =
            server.blocking(move || Ok(RunSnapshot::load(own.app.environment(), looked_at).ok())).await?;
        let Some(reading) = seen else { return Ok(()) };
        if reading.state.result.finished.is_none() {
            return Err(Problem::conflict(format!("run {} is not over", entry.run_id))
                .hint("stop or cancel it first"));
        }
        if reading.driver.is_none() {
            return Ok(());
        }
        if began.elapsed() > LEAVING {
            return Err(Problem::conflict(format!("run {} is still tidying up", entry.run_id))
                .hint("try again in a minute"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Removes a run that was rejected after registration, before its first session.
pub(super) fn forget_unbegun(server: &Server, run: &RunId) -> Result<(), Problem> {
    let Some(entry) = registry::find(&server.home, run) else { return Ok(()) };
    let reading = RunSnapshot::load(server.app.environment(), entry.clone());
    let begun = reading.is_ok_and(|r| r.driver.is_some() || r.state.iterations.count > 0);
    if begun { Ok(()) } else { remove_record(server, &entry) }
}

/// Removes a run's objects in the artifact store, if this server knows it.
async fn remove_objects(server: &Arc<Server>, run: &str) -> Result<(), Problem> {
    let vars = server.app.environment().vars().clone();
    let Ok(run) = RunId::parse(run) else { return Ok(()) };
    if vars.filled("RALPH_ARTIFACTS").is_none() {
        return Ok(());
    }
    server.blocking(move || Ok(ArtifactStore::of(&vars)?.remove_run(&run)?)).await
}

fn remove_record(server: &Server, entry: &Registration) -> Result<(), Problem> {
    let failed = |e: std::io::Error| Problem::internal(format!("the record could not be removed: {e}"));
    // The record first: a run without one is shown as gone.
    let record = server.home.record(&entry.run_id);
    if entry.run_dir() == record && record.path().is_dir() {
        ralph_loop_safe_fs::remove_tree(record.path()).map_err(failed)?;
    }
    std::fs::remove_file(server.home.registration(&entry.run_id)).map_err(failed)
}
