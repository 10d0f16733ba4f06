//! The machine's clock; nothing else in this crate asks for the time.
#![allow(clippy::disallowed_methods, reason = "the home of the system clock")]

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use ralph_loop_domain::ports::Clock;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        now.round(TimestampRound::new().smallest(Unit::Millisecond).mode(RoundMode::Trunc)).unwrap_or(now)
    }
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
    fn pause(&self, length: Duration) {
        std::thread::sleep(length);
    }
    fn pause_by(&self, length: Duration, wait: &mut dyn FnMut(Duration)) {
        wait(length);
    }
}
