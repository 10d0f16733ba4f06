//! Waits before retries.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

/// Waits that double from `first` up to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first try.
    pub first: Duration,
    /// The longest wait.
    pub max: Duration,
}

impl Backoff {
    /// The wait after try number `tries`, with random jitter of a quarter (an eighth less to an eighth more), so that
    /// many clients don't return together.
    pub fn wait(&self, tries: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(self.max);
        doubled.mul_f64(0.875 + (random() % 256) as f64 / 1024.0)
    }
}

/// Hasher seeds are random, which is good enough for waits and names.
fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// 32 unique hexadecimal digits: for boundaries, temporary names and marks of processes. Not for secrets.
pub fn random_word() -> String {
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_stay_bounded_and_differ() {
        let backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };
        for tries in 0..40_u32 {
            let full = Duration::from_secs(1 << tries.saturating_sub(1).min(16)).min(backoff.max);
            let wait = backoff.wait(tries);
            assert!(wait >= full.mul_f64(0.87) && wait <= full.mul_f64(1.13), "{tries}: {wait:?}");
        }
        let all: std::collections::BTreeSet<Duration> = (0..40).map(|_| backoff.wait(1)).collect();
        assert!(all.len() > 1, "{all:?}");
    }
}
