//! Whether the server can work: a probe checks its database all the time, so that `/readyz` answers at once.

use crate::server::Server;
use ralph_loop_fleet::db;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::timeout;

/// Pause between two probes, and how long one may take: an answer is at most three seconds old.
const PAUSE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(2);

/// What the last probe found.
#[derive(Debug, Clone, Copy)]
pub struct Readiness {
    /// The index answers.
    pub index: bool,
    /// The fleet's database commits only what a standby has, too; `None` without a fleet, or if it isn't known.
    pub standby: Option<bool>,
}

/// The latest finding. A server starts only with an index that answers.
#[derive(Debug)]
pub struct LastProbe(Mutex<Readiness>);

impl Default for LastProbe {
    fn default() -> Self {
        Self(Mutex::new(Readiness { index: true, standby: None }))
    }
}

impl LastProbe {
    /// The latest finding.
    pub fn get(&self) -> Readiness {
        *self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Probes once, and then until the server ends.
pub(crate) async fn begin(server: &Arc<Server>) {
    probe(server).await;
    let server = server.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(PAUSE).await;
            probe(&server).await;
        }
    });
}

async fn probe(server: &Server) {
    let standby = async {
        let side = server.fleet.as_ref()?;
        let _ = timeout(PATIENCE / 2, db::pulse(side.fleet.pool())).await;
        timeout(PATIENCE / 2, side.fleet.has_synchronous_standby()).await.ok()?.ok()
    };
    let (index, standby) = tokio::join!(timeout(PATIENCE, server.index.answers()), standby);
    let found = Readiness { index: index.unwrap_or(false), standby };
    *server.probe.0.lock().unwrap_or_else(|e| e.into_inner()) = found;
}
