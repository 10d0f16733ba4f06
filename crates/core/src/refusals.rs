//! Hosts that the sandbox refused to reach: noted by the sandbox's threads, journalled by the engine when it comes by.

use ralph_loop_protocol::text::one_line;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Different refusals that wait to be journalled; more are counted with the last one.
const WAITING_MAX: usize = 50;

/// By host and port: why, and how often.
type PendingRefusals = BTreeMap<(String, u16), (String, u32)>;

/// A list that the sandbox's side adds to and the engine empties.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<PendingRefusals>>);

impl Refusals {
    /// Adds one.
    pub fn add(&self, host: &str, port: u16, reason: &str) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (one_line(host, 200), port);
        if let Some((_, times)) = waiting.get_mut(&key) {
            *times = times.saturating_add(1);
        } else if waiting.len() < WAITING_MAX {
            waiting.insert(key, (one_line(reason, 200), 1));
        }
    }

    /// The hosts that wait, with their ports.
    pub fn hosts(&self) -> Vec<(String, u16)> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.keys().cloned().collect()
    }

    /// Takes what waits.
    pub(crate) fn take(&self) -> PendingRefusals {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
