//! Viewers of a run, woken on changes.

use super::Live;
use ralph_loop_protocol::id::RunId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Viewers by run.
#[derive(Debug, Default)]
pub(super) struct Viewers(Mutex<HashMap<RunId, watch::Sender<u64>>>);

impl Viewers {
    pub(super) fn wake(&self, run: &RunId) {
        if let Some(sender) = self.lock().get(run) {
            sender.send_modify(|count| *count += 1);
        }
    }

    pub(super) fn wake_all(&self) {
        self.lock().values().for_each(|sender| sender.send_modify(|count| *count += 1));
    }

    pub(super) fn is_viewed(&self, run: &RunId) -> bool {
        self.lock().contains_key(run)
    }

    pub(super) fn count(&self) -> usize {
        self.lock().values().map(watch::Sender::receiver_count).sum()
    }

    fn add(&self, run: &RunId) -> watch::Receiver<u64> {
        let mut all = self.lock();
        let sender = all.entry(run.clone()).or_insert_with(|| watch::channel(0).0);
        let mut receiver = sender.subscribe();
        receiver.mark_unchanged();
        receiver
    }

    fn remove(&self, run: &RunId) {
        let mut all = self.lock();
        // The leaving viewer is still counted.
        if all.get(run).is_some_and(|sender| sender.receiver_count() <= 1) {
            all.remove(run);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, watch::Sender<u64>>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A viewer of a run.
#[derive(Debug)]
pub struct Viewer {
    live: Arc<Live>,
    run: RunId,
    woken: watch::Receiver<u64>,
}

impl Viewer {
    pub(super) fn new(live: Arc<Live>, run: RunId) -> Self {
        let woken = live.viewers.add(&run);
        Self { live, run, woken }
    }

    /// Waits for a change since the last call.
    pub async fn changed(&mut self) {
        if self.woken.changed().await.is_err() {
            // Unreachable: the sender lives as long as its viewers.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.live.viewers.remove(&self.run);
        // The run may now be released from memory.
        self.live.touch(&self.run);
    }
}

impl Live {
    /// Number of viewers.
    pub fn viewer_count(&self) -> usize {
        self.viewers.count()
    }
}
