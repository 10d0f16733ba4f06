//! Hosts that the sandbox blocked: collected by its threads, journaled by the engine.

use ralph_loop_protocol::display::text::one_line;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Distinct refusals held; more are counted with the last one.
const WAITING_MAX: usize = 50;

/// Reason and count by host and port.
type PendingRefusals = BTreeMap<(String, u16), (String, u32)>;

/// A list that the sandbox fills and the engine drains.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<PendingRefusals>>, Arc<Mutex<Vec<String>>>);

impl Refusals {
    pub fn add(&self, host: &str, port: u16, reason: &str) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (one_line(host, 200), port);
        if let Some((_, times)) = waiting.get_mut(&key) {
            *times = times.saturating_add(1);
        } else if waiting.len() < WAITING_MAX {
            waiting.insert(key, (one_line(reason, 200), 1));
        }
    }

    /// Adds a sentence about a connection that wasn't refused.
    pub fn note(&self, sentence: &str) {
        let mut waiting = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_MAX {
            waiting.push(one_line(sentence, 300));
        }
    }

    /// Pending hosts and ports.
    pub fn hosts(&self) -> Vec<(String, u16)> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.keys().cloned().collect()
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.1.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn take(&self) -> PendingRefusals {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
