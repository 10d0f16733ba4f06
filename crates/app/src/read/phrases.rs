//! Durations and times for display.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ralph_loop_protocol::describe::clock_time;
use ralph_loop_protocol::display::text::duration;
use std::time::Duration;

/// `4 s`, `12 min`, `3 h`, `5 days`: an age in its largest unit.
pub fn age(length: Duration) -> String {
    match length.as_secs() {
        s @ 0..=59 => format!("{s} s"),
        s @ 60..=3599 => format!("{} min", s / 60),
        s @ 3600..=172_799 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// Time since an instant; zero if the clock went backwards.
pub fn since(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(at)).unwrap_or_default()
}

/// `4 s ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ago", age(since(at, now)))
}

/// `12 min (04:02)`: time left until an instant, and the instant.
pub fn left(until: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let left = Duration::from_secs(since(now, until).as_secs());
    format!("{} ({})", duration(left), clock_time(until, now, Some(zone)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn ages_have_one_unit() {
        let said: Vec<String> =
            [4, 125, 7300, 200_000].iter().map(|s| age(Duration::from_secs(*s))).collect();
        assert_eq!(said, ["4 s", "2 min", "2 h", "2 days"]);
    }

    #[test]
    fn times_name_their_day_when_it_is_another() {
        let now = at("2026-11-15T23:50:00Z");
        let left = |until, now| left(until, now, &TimeZone::UTC);
        assert_eq!(left(at("2026-11-15T23:59:30Z"), now), "9 min 30 s (23:59)");
        assert_eq!(left(at("2026-11-16T04:02:00Z"), now), "4 h 12 min (2026-11-16 04:02)");
        assert_eq!(left(at("2026-11-15T23:00:00Z"), now), "0 s (23:00)");
    }
}
