//! Exports traces of runs: OTLP over HTTP as JSON, with the generative AI conventions. A run is a trace, an
//! iteration an agent span, a check a tool span. Nothing waits for it; failed exports are dropped.

mod send;
mod spans;

use crate::live::RowChange;
use crate::server::Server;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_journal::folder::registry;
use ralph_loop_protocol::id::RunId;
use send::Collector;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;

/// Runs whose exported iterations are remembered.
const REMEMBERED: usize = 10_000;

/// Starts exporting if an endpoint is set.
pub(crate) fn begin(server: &Arc<Server>) {
    let Some(collector) = Collector::of(server.app.environment().vars()) else { return };
    let (collector, server) = (Arc::new(collector), server.clone());
    let mut rows = server.live.rows();
    let begun = server.now();
    tokio::spawn(async move {
        let mut sent: HashMap<String, u32> = HashMap::new();
        loop {
            let row = match rows.recv().await {
                Ok(RowChange::Row(row)) => row,
                Ok(RowChange::Removed(_)) | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
            // Runs that ended before this server started were exported before.
            if row.ended_at.is_some_and(|at| at < begun) || row.queued.is_some() {
                continue;
            }
            let from = sent.get(&row.id).copied().unwrap_or(0);
            let (own, collector, id) = (server.clone(), collector.clone(), row.id.clone());
            let told = server.apart(move || Ok(export(&own, &collector, &id, from))).await;
            if let Ok(Some(count)) = told {
                if sent.len() >= REMEMBERED {
                    sent.clear();
                }
                sent.insert(row.id.clone(), count);
            }
        }
    });
}

/// Exports a run's new iterations; returns how many are exported.
fn export(server: &Server, collector: &Collector, run: &str, from: u32) -> Option<u32> {
    let entry = registry::find(&server.home, &RunId::parse(run).ok()?)?;
    let reading = RunSnapshot::load(server.app.environment(), entry).ok()?;
    let count = reading.state.iterations.count;
    let over = reading.state.result.finished.is_some();
    if count <= from && !over {
        return Some(from);
    }
    let spans = spans::of(&reading, from);
    if spans.is_empty() {
        return Some(count);
    }
    match collector.send(&spans::request(&spans)) {
        Ok(()) => Some(count),
        Err(error) => {
            tracing::warn!(error, run, "traces could not be sent");
            // They come with the next iteration.
            Some(from)
        }
    }
}
