//! Limits wrong tokens per minute and address. Valid ones are never refused.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The time window.
const WINDOW: Duration = Duration::from_secs(60);
/// Wrong tokens of an address per window.
const MOST: usize = 10;
/// Addresses tracked.
const ADDRESSES: usize = 4096;

/// Counts wrong tokens.
#[derive(Debug, Default)]
pub struct LoginLimiter(Mutex<HashMap<IpAddr, Vec<Instant>>>);

impl LoginLimiter {
    /// How long this address must wait; `None` if it may try.
    pub fn wait(&self, from: IpAddr) -> Option<Duration> {
        let mut failures = self.0.lock().unwrap_or_else(|e| e.into_inner());
        failures.retain(|_, at| {
            at.retain(|at| at.elapsed() < WINDOW);
            !at.is_empty()
        });
        let own = failures.get(&from).filter(|own| own.len() >= MOST)?;
        own.first().map(|at| WINDOW.saturating_sub(at.elapsed()).max(Duration::from_secs(1)))
    }

    /// Counts a wrong token.
    pub fn failed(&self, from: IpAddr) {
        let mut failures = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if failures.len() >= ADDRESSES && !failures.contains_key(&from) {
            failures.clear();
        }
        failures.entry(from).or_default().push(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_guessing_client_is_blocked() {
        let limiter = LoginLimiter::default();
        let (bad, good) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..MOST {
            assert!(limiter.wait(bad).is_none());
            limiter.failed(bad);
        }
        assert!(limiter.wait(bad).is_some());
        assert!(limiter.wait(good).is_none());
    }
}
