//! A fleet's server: shows runs of other machines, fires triggers. It drives nothing.

use crate::fleet::FleetSide;
use crate::index::Indexed;
use crate::row::RunRow;
use crate::server::Server;
use jiff::Timestamp;
use ralph_loop_fleet::mirror::Mirror;
use ralph_loop_fleet::output::Receiver;
use ralph_loop_fleet::runs::{self, NotBegun};
use ralph_loop_fleet::{Fleet, FleetError, occasion};
use ralph_loop_journal::folder::registry;
use ralph_loop_protocol::id::RunId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Polling interval for changed and due work.
const SHOW: Duration = Duration::from_secs(1);
const OUTPUT: Duration = Duration::from_millis(400);
const DUE: Duration = Duration::from_secs(5);
/// Interval for cleaning up old webhook deliveries.
const TIDY: Duration = Duration::from_secs(3600);

/// Waiting runs shown.
const WAITING: i64 = 1000;

/// The row of a run without a local record.
pub(crate) fn row(one: &NotBegun) -> RunRow {
    let at = Timestamp::from_millisecond(one.at).unwrap_or_default();
    let status = match (one.resting, one.begun) {
        (true, _) => "failed",
        (false, true) => "preparing",
        (false, false) => "queued",
    };
    RunRow {
        status: status.to_owned(),
        person: Some(one.person.clone()),
        problem: one.problem.clone(),
        ended_at: one.resting.then_some(at),
        now: (!one.resting).then(|| waits_for(&one.missing)),
        ..RunRow::waiting(&one.run, &one.title, &one.repo, at)
    }
}

/// What a run waits for: a worker, and the labels that none has.
fn waits_for(missing: &[String]) -> String {
    match missing {
        [] => "waits for a worker".to_owned(),
        missing => format!("waits for a worker: none has `{}`", missing.join("` and `")),
    }
}

/// Runs that haven't started.
#[derive(Debug, Default)]
struct Waiting {
    known: BTreeMap<String, NotBegun>,
    /// All records were read since the start, which removed rows without one.
    settled: bool,
}

impl Waiting {
    /// Updates changed rows and removes those of deleted runs.
    async fn show(&mut self, server: &Server, fleet: &Fleet, all: Vec<NotBegun>) -> Result<(), FleetError> {
        if !self.settled && server.live.is_reconciled() {
            self.settled = true;
            self.known.clear();
        }
        for one in &all {
            if self.known.get(&one.run) == Some(one) {
                continue;
            }
            let row = row(one);
            server.live.publish_row(&row);
            server.live.write_later(Indexed { row, spend: None });
        }
        let all: BTreeMap<String, NotBegun> = all.into_iter().map(|one| (one.run.clone(), one)).collect();
        let before = std::mem::take(&mut self.known);
        for (run, one) in before.into_iter().filter(|(run, _)| !all.contains_key(run)) {
            if RunId::parse(&run).is_ok_and(|run| registry::find(&server.home, &run).is_some()) {
                continue;
            }
            match fleet.within(runs::not_over(fleet.pool(), &run)).await? {
                None => server.live.remove(&run).await?,
                // Started, but not copied yet.
                Some(_) => drop(self.known.insert(run, one)),
            }
        }
        self.known.extend(all);
        Ok(())
    }
}

/// Copies live output.
fn bring_output(server: &Arc<Server>, side: &Arc<FleetSide>) {
    let (server, side) = (server.clone(), side.clone());
    tokio::spawn(async move {
        let (mut output, mut tidied) = (Receiver::default(), Instant::now());
        loop {
            let pool = side.fleet.pool();
            let mut done = side.fleet.within(output.turn(pool, &server.home)).await;
            if done.is_ok() && tidied.elapsed() > TIDY {
                tidied = Instant::now();
                done = side.fleet.within(Receiver::tidy(pool)).await;
            }
            if let Err(error) = done {
                tracing::warn!(%error, "can't show the output of other machines");
            }
            tokio::time::sleep(OUTPUT).await;
        }
    });
}

/// Copies files from the artifact store.
fn bring_files(server: &Arc<Server>, side: &Arc<FleetSide>) {
    let (server, side) = (server.clone(), side.clone());
    tokio::spawn(async move {
        loop {
            let (files, home) = (side.files.clone(), server.home.clone());
            let changed = tokio::task::spawn_blocking(move || files.turn(&home)).await;
            changed.unwrap_or_default().iter().for_each(|run| server.live.touch(run));
            tokio::time::sleep(SHOW).await;
        }
    });
}

/// Starts a server's fleet tasks, until it ends.
pub(crate) fn begin(server: &Arc<Server>) {
    let Some(side) = server.fleet.clone() else { return };
    let (showing, shown) = (side.clone(), server.clone());
    tokio::spawn(async move {
        let (mut mirror, mut waiting) = (Mirror::default(), Waiting::default());
        loop {
            match mirror.turn(&showing.fleet, &shown.home, &showing.triggers, &showing.files).await {
                Ok(changed) => changed
                    .iter()
                    .filter_map(|run| shown.live.refresh(run))
                    .for_each(|row| shown.live.write_later(row)),
                Err(error) => tracing::warn!(error = error.message, "can't show runs of other machines"),
            }
            let all = showing.fleet.within(runs::not_begun_yet(showing.fleet.pool(), WAITING)).await;
            let done = match all {
                Ok(all) => waiting.show(&shown, &showing.fleet, all).await,
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                tracing::warn!(%error, "can't show runs that wait for a worker");
            }
            tokio::time::sleep(SHOW).await;
        }
    });
    bring_output(server, &side);
    bring_files(server, &side);
    if side.webhook_secret.is_some() && !side.triggers.repos.is_empty() {
        let telling = side.clone();
        tokio::spawn(async move {
            let mut tidied: Option<Instant> = None;
            loop {
                if let Err(error) = occasion::are_told(telling.fleet.pool(), &telling.triggers).await {
                    tracing::warn!(%error, "couldn't tell runs that the server pushes updates");
                }
                if tidied.is_none_or(|at| at.elapsed() > TIDY) {
                    tidied = Some(Instant::now());
                    if let Err(error) = occasion::forget_old(telling.fleet.pool()).await {
                        tracing::warn!(%error, "old deliveries could not be forgotten");
                    }
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
        let mut looked = server.now();
        loop {
            let now = server.now();
            let due = occasion::due(side.fleet.pool(), &side.triggers, (looked, now));
            match side.fleet.within(due).await {
                Ok(runs) => {
                    looked = now;
                    runs.iter().for_each(|run| tracing::info!(%run, "a schedule has added a run"));
                }
                // What is due in the meantime is caught up later.
                Err(error) => tracing::warn!(%error, "can't store schedules"),
            }
            tokio::time::sleep(DUE).await;
        }
    });
}
