//! Compares the index with the records after a start, newest first. Known finished runs aren't read again.

use super::Live;
use crate::index::{Indexed, entries, read_run};
use ralph_loop_journal::folder::registry;
use ralph_loop_protocol::id::RunId;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

/// Rows written at once.
const BATCH: usize = 200;

impl Live {
    pub(super) fn reconcile(&self, runtime: &tokio::runtime::Handle) {
        let known = runtime.block_on(self.index.known()).unwrap_or_else(|error| {
            tracing::warn!(%error, "the index could not be read");
            HashMap::new()
        });
        let ids = entries(&self.home);
        let registered: HashSet<&str> = ids.iter().map(RunId::as_str).collect();
        let mut batch = Vec::new();
        for run in ids.iter().rev() {
            if self.is_stopping() {
                return;
            }
            if known.get(run.as_str()).is_some_and(|known| !known.open) {
                continue;
            }
            if known.contains_key(run.as_str()) {
                // It may be active, so hold and watch it like a changed run.
                batch.extend(self.refresh(run));
            } else {
                batch.extend(self.read_new(run));
            }
            if batch.len() >= BATCH {
                self.write(&mut batch, runtime);
            }
        }
        self.write(&mut batch, runtime);
        let queue = crate::home::ServerHome::make(&self.home).map(|home| home.queue());
        let waits = |id: &str| queue.as_ref().is_ok_and(|queue| queue.join(format!("{id}.json")).exists());
        let own = known.iter().filter(|(_, known)| known.is_own).map(|(id, _)| id);
        for gone in own.filter(|id| !registered.contains(id.as_str()) && !waits(id)) {
            let _ = runtime.block_on(self.index.remove(gone));
            self.publish_removed(gone);
        }
        self.index.forget_counts();
        self.reconciled.store(true, Ordering::Relaxed);
    }

    fn read_new(&self, run: &RunId) -> Option<Indexed> {
        let entry = registry::find(&self.home, run)?;
        let (indexed, _) = read_run(self.app.environment(), &entry);
        if indexed.row.is_over() {
            self.publish_row(&indexed.row);
            return Some(indexed);
        }
        self.refresh(run)
    }

    fn write(&self, batch: &mut Vec<Indexed>, runtime: &tokio::runtime::Handle) {
        if batch.is_empty() {
            return;
        }
        let _alone = self.writing.blocking_lock();
        batch.retain(|one| !self.is_removed(&one.row.id));
        if let Err(error) = runtime.block_on(self.index.put(batch)) {
            tracing::warn!(%error, "the index could not be written");
        }
        batch.clear();
    }
}
