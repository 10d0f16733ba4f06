//! Cached counts. Counting a hundred thousand rows takes longer than reading a page, so an old count is used
//! while a new one is computed.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Age up to which a count is fresh.
const NEW: Duration = Duration::from_secs(2);
/// Age up to which it is used during recounting.
const USABLE: Duration = Duration::from_secs(60);
/// Cached counts.
const MOST: usize = 64;

/// By query, latest first.
#[derive(Debug)]
pub(super) struct Counts<T>(Mutex<Vec<Kept<T>>>);

#[derive(Debug)]
struct Kept<T> {
    key: String,
    value: T,
    at: Instant,
}

/// A cached count's state.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known<T> {
    /// Fresh.
    New(T),
    /// Stale: the caller should recount.
    Old(T),
    /// Not cached.
    Nothing,
}

impl<T> Default for Counts<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Counts<T> {
    /// The cached count. A stale one is reported as stale to only one caller, so that one recounts.
    pub(super) fn look(&self, key: &str, now: Instant) -> Known<T> {
        let mut all = self.0.lock().unwrap_or_else(|e| e.into_inner());
        all.retain(|kept| now.saturating_duration_since(kept.at) < USABLE);
        let Some(kept) = all.iter_mut().find(|kept| kept.key == key) else { return Known::Nothing };
        if now.saturating_duration_since(kept.at) < NEW {
            return Known::New(kept.value.clone());
        }
        kept.at = now;
        Known::Old(kept.value.clone())
    }

    pub(super) fn keep(&self, key: String, value: T, at: Instant) {
        let mut all = self.0.lock().unwrap_or_else(|e| e.into_inner());
        all.retain(|kept| kept.key != key);
        all.truncate(MOST - 1);
        all.insert(0, Kept { key, value, at });
    }

    /// Drops all counts.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_count_is_returned_while_one_caller_refreshes_it() {
        let counts = Counts::default();
        let start = Instant::now();
        assert_eq!(counts.look("all", start), Known::Nothing);
        counts.keep("all".into(), 7, start);
        assert_eq!(counts.look("all", start + Duration::from_secs(1)), Known::New(7));
        let later = start + Duration::from_secs(5);
        assert_eq!(counts.look("all", later), Known::Old(7));
        assert_eq!(counts.look("all", later), Known::New(7), "one asker is enough");
        counts.keep("all".into(), 8, later);
        assert_eq!(counts.look("all", later), Known::New(8));
        assert_eq!(counts.look("all", later + Duration::from_secs(61)), Known::Nothing);
        counts.keep("all".into(), 9, later);
        counts.forget();
        assert_eq!(counts.look("all", later), Known::Nothing);
    }

    #[test]
    fn few_are_kept() {
        let counts = Counts::default();
        let now = Instant::now();
        for number in 0..200 {
            counts.keep(number.to_string(), number, now);
        }
        assert_eq!(counts.look("199", now), Known::New(199));
        assert_eq!(counts.look("0", now), Known::Nothing);
    }
}
