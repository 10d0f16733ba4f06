//! The server of a fleet: gives out runs, shows those of other machines, starts what comes by itself. It drives nothing.

use crate::index::Indexed;
use crate::live::RowChange;
use crate::row::RunRow;
use crate::server::Server;
use jiff::Timestamp;
use ralph_fleet::dispatch;
use ralph_fleet::mirror::Mirror;
use ralph_fleet::occasion;
use ralph_fleet::runs::{self, NotBegun};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks for what waits, for what has changed, and for what is due.
const GIVE: Duration = Duration::from_millis(500);
const SHOW: Duration = Duration::from_secs(1);
const DUE: Duration = Duration::from_secs(5);

/// Runs that wait, as they are shown.
const WAITING: i64 = 1000;

/// Rows of runs that nobody has begun, where they are new or other than before.
fn show_waiting(server: &Server, all: Vec<NotBegun>, known: &mut BTreeMap<String, NotBegun>) {
    for one in &all {
        if known.get(&one.run) == Some(one) {
            continue;
        }
        let at = Timestamp::from_millisecond(one.at).unwrap_or_default();
        let row = RunRow {
            status: if one.resting { "failed" } else { "queued" }.to_owned(),
            person: Some(one.person.clone()),
            problem: one.problem.clone(),
            ended_at: one.resting.then_some(at),
            ..RunRow::waiting(&one.run, &one.title, &one.repo, at)
        };
        server.live.tell(RowChange::Row(Arc::new(row.clone())));
        server.live.write_later(Indexed { row, spend: None });
    }
    *known = all.into_iter().map(|one| (one.run.clone(), one)).collect();
}

/// Begins what a server does for its fleet, until it ends.
pub(crate) fn begin(server: &Arc<Server>) {
    let Some(side) = server.fleet.clone() else { return };
    let giving = side.clone();
    tokio::spawn(async move {
        loop {
            if let Err(error) = giving.fleet.within(dispatch::dispatch(giving.fleet.pool())).await {
                tracing::warn!(%error, "nothing could be given out");
            }
            tokio::time::sleep(GIVE).await;
        }
    });
    let (showing, shown) = (side.clone(), server.clone());
    tokio::spawn(async move {
        let (mut mirror, mut waiting) = (Mirror::default(), BTreeMap::new());
        loop {
            match mirror.turn(&showing.fleet, &shown.home, &showing.triggers).await {
                Ok(changed) => changed
                    .iter()
                    .filter_map(|run| shown.live.refresh(run))
                    .for_each(|row| shown.live.write_later(row)),
                Err(error) => tracing::warn!(error = error.message, "runs of other machines cannot be shown"),
            }
            match showing.fleet.within(runs::not_begun_yet(showing.fleet.pool(), WAITING)).await {
                Ok(all) => show_waiting(&shown, all, &mut waiting),
                Err(error) => tracing::warn!(%error, "runs that wait for a worker cannot be shown"),
            }
            tokio::time::sleep(SHOW).await;
        }
    });
    if side.webhook_secret.is_some() && !side.triggers.repos.is_empty() {
        let telling = side.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = occasion::are_told(telling.fleet.pool(), &telling.triggers).await {
                    tracing::warn!(%error, "runs could not be told that news come by themselves");
                }
                tokio::time::sleep(DUE).await;
            }
        });
    }
    if side.triggers.schedules.is_empty() {
        return;
    }
    let server = server.clone();
    tokio::spawn(async move {
        loop {
            match side.fleet.within(occasion::due(side.fleet.pool(), &side.triggers, server.now())).await {
                Ok(runs) => runs.iter().for_each(|run| tracing::info!(%run, "a schedule has added a run")),
                Err(error) => tracing::warn!(%error, "schedules cannot be kept"),
            }
            tokio::time::sleep(DUE).await;
        }
    });
}
