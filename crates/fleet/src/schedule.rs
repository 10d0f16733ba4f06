//! Schedules for recurring tasks, in cron syntax, each with its own time zone.
//!
//! An occasion is a minute on the clock of that zone. An hour that comes twice (the clock is set back) is one occasion. Times that
//! are left out (the clock is set forward) are made up for in the minute after them, once for all of them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A larger jump of the clock isn't daylight saving time.
const GAP_MAX: i64 = 180;
/// How many minutes a schedule makes up for after the scheduler was down.
const MISSED_MAX: i64 = 60;

/// When a task starts: five fields of cron.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both fields of days are given: one of them is enough.
    any_day: bool,
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Cron {
    /// Reads `minute hour day month weekday`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(format!(
                "`{text}` has {} fields; a schedule has five: minute hour day month weekday",
                fields.len()
            ));
        };
        let mut weekdays = field(weekday, (0, 7), DAYS, 0)?;
        if weekdays & (1 << 7) != 0 {
            weekdays = (weekdays | 1) & !(1 << 7);
        }
        Ok(Self {
            minutes: field(minute, (0, 59), &[], 0)?,
            hours: field(hour, (0, 23), &[], 0)?,
            days: field(day, (1, 31), &[], 0)?,
            months: field(month, (1, 12), MONTHS, 1)?,
            weekdays,
            any_day: !day.starts_with('*') && !weekday.starts_with('*'),
        })
    }

    fn matches(&self, at: DateTime) -> bool {
        let has = |set: u64, number: i8| u32::try_from(number).is_ok_and(|number| set & (1 << number) != 0);
        let day = has(self.days, at.day());
        let weekday = has(self.weekdays, at.weekday().to_sunday_zero_offset());
        let of_day = if self.any_day { day || weekday } else { day && weekday };
        has(self.minutes, at.minute()) && has(self.hours, at.hour()) && has(self.months, at.month()) && of_day
    }

    /// The occasion in the minute of `at` on the clock of `zone`; the latest one where the clock jumped there.
    pub fn occasion(&self, at: Timestamp, zone: &TimeZone) -> Option<DateTime> {
        let minute = |at: Timestamp| {
            let local = at.to_zoned(zone.clone()).datetime();
            local.with().second(0).subsec_nanosecond(0).build().unwrap_or(local)
        };
        let now = minute(at);
        let before = at.checked_sub(SignedDuration::from_mins(1)).map_or(now, minute);
        let passed = now.duration_since(before).as_mins();
        let skipped = if (2..=GAP_MAX).contains(&passed) { passed } else { 1 };
        let back = |minutes: i64| now.checked_sub(SignedDuration::from_mins(minutes)).ok();
        (0..skipped).filter_map(back).find(|local| self.matches(*local))
    }

    /// The latest occasion after `since` and up to `now`: several that were missed are made up for once. More than an hour is not
    /// looked back.
    pub fn due(&self, since: Timestamp, now: Timestamp, zone: &TimeZone) -> Option<DateTime> {
        let missed = now.as_second().div_euclid(60) - since.as_second().div_euclid(60);
        let back = |minutes: i64| now.checked_sub(SignedDuration::from_mins(minutes)).ok();
        // The minute of `since` was looked at then.
        (0..missed.clamp(1, MISSED_MAX)).filter_map(back).find_map(|at| self.occasion(at, zone))
    }
}

/// One field: numbers, names, ranges, steps, lists; as a set of bits.
fn field(text: &str, (least, most): (u32, u32), names: &[&str], first: u32) -> Result<u64, String> {
    let number = |word: &str| -> Result<u32, String> {
        let lower = word.to_ascii_lowercase();
        let named = names.iter().position(|name| *name == lower).and_then(|at| u32::try_from(at).ok());
        let number = named.map(|at| at + first).or_else(|| word.parse().ok());
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("`{word}` is not between {least} and {most}"))
    };
    let mut set = 0u64;
    for part in text.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let step: u32 =
            step.parse().ok().filter(|step| *step > 0).ok_or_else(|| format!("`{part}` has no step"))?;
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (least, most),
            (_, Some((from, to))) => (number(from)?, number(to)?),
            (one, None) if part.contains('/') => (number(one)?, most),
            (one, None) => (number(one)?, number(one)?),
        };
        if from > to {
            return Err(format!("`{range}` goes backwards"));
        }
        (from..=to).step_by(usize::try_from(step).unwrap_or(1)).for_each(|number| set |= 1 << number);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, cron: &str, zone: &str) -> Vec<String> {
        let zone = TimeZone::get(zone).unwrap();
        let found = Cron::parse(cron).unwrap().occasion(text.parse().unwrap(), &zone);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_schedule_is_meant_in_its_time_zone() {
        assert_eq!(at("2026-11-17T02:00:30Z", "0 3 * * 1-5", "Europe/Berlin"), ["2026-11-17T03:00:00"]);
        assert!(at("2026-11-17T03:00:30Z", "0 3 * * 1-5", "Europe/Berlin").is_empty());
        // A Sunday.
        assert!(at("2026-11-15T02:00:00Z", "0 3 * * 1-5", "Europe/Berlin").is_empty());
        assert_eq!(at("2026-11-15T02:00:00Z", "0 3 * * 7", "Europe/Berlin").len(), 1);
    }

    #[test]
    fn an_hour_that_comes_twice_is_one_occasion() {
        // 25 October 2026, 03:00 becomes 02:00.
        let first = at("2026-10-25T00:30:00Z", "30 2 * * *", "Europe/Berlin");
        let second = at("2026-10-25T01:30:00Z", "30 2 * * *", "Europe/Berlin");
        assert_eq!(first, second);
    }

    #[test]
    fn an_hour_that_is_left_out_is_made_up_for() {
        // 29 March 2026, 02:00 becomes 03:00.
        assert_eq!(at("2026-03-29T01:00:00Z", "30 2 * * *", "Europe/Berlin"), ["2026-03-29T02:30:00"]);
        assert!(at("2026-03-29T01:01:00Z", "30 2 * * *", "Europe/Berlin").is_empty());
        // Once for all that was left out, and not in addition to an occasion that is due anyway.
        assert_eq!(at("2026-03-29T01:00:00Z", "*/15 * * * *", "Europe/Berlin"), ["2026-03-29T03:00:00"]);
        assert_eq!(at("2026-03-29T01:00:00Z", "*/15 2 * * *", "Europe/Berlin"), ["2026-03-29T02:45:00"]);
        // Where the clock jumps at midnight, the day itself begins later: 6 September 2026, 00:00 becomes 01:00.
        assert_eq!(at("2026-09-06T04:00:00Z", "0 0 * * *", "America/Santiago"), ["2026-09-06T00:00:00"]);
        // Half an hour: 4 October 2026, 02:00 becomes 02:30.
        assert_eq!(at("2026-10-03T15:30:00Z", "10 2 * * *", "Australia/Lord_Howe"), ["2026-10-04T02:10:00"]);
    }

    #[test]
    fn what_nobody_looked_at_is_made_up_for_once() {
        let due = |cron: &str, since: &str, now: &str| {
            let found = Cron::parse(cron).unwrap();
            let found = found.due(since.parse().unwrap(), now.parse().unwrap(), &TimeZone::UTC);
            found.map(|at| at.to_string())
        };
        let at = |text: &str| Some(text.to_owned());
        assert_eq!(
            due("0 3 * * *", "2026-11-17T02:59:58Z", "2026-11-17T03:04:10Z"),
            at("2026-11-17T03:00:00")
        );
        assert_eq!(
            due("* * * * *", "2026-11-17T02:59:58Z", "2026-11-17T03:04:10Z"),
            at("2026-11-17T03:04:00")
        );
        assert_eq!(
            due("0 3 * * *", "2026-11-17T03:00:58Z", "2026-11-17T03:04:10Z"),
            None,
            "looked at before"
        );
        assert_eq!(due("0 3 * * *", "2026-11-17T01:00:00Z", "2026-11-17T09:04:10Z"), None, "too long ago");
        // The usual look, within a minute and across its end.
        assert_eq!(
            due("0 3 * * *", "2026-11-17T03:00:01Z", "2026-11-17T03:00:06Z"),
            at("2026-11-17T03:00:00")
        );
        assert_eq!(due("0 3 * * *", "2026-11-17T03:00:58Z", "2026-11-17T03:01:03Z"), None);
        // A clock that was set back.
        assert_eq!(
            due("0 3 * * *", "2026-11-17T03:09:00Z", "2026-11-17T03:00:06Z"),
            at("2026-11-17T03:00:00")
        );
    }

    #[test]
    fn lists_steps_names_and_either_day() {
        assert_eq!(at("2026-11-17T10:45:00Z", "*/15 9-17 * nov tue", "UTC").len(), 1);
        assert!(at("2026-11-17T10:46:00Z", "*/15 9-17 * nov tue", "UTC").is_empty());
        // The 1st, or a Tuesday.
        assert_eq!(at("2026-11-17T00:00:00Z", "0 0 1 * tue", "UTC").len(), 1);
        assert_eq!(at("2026-11-01T00:00:00Z", "0 0 1 * tue", "UTC").len(), 1);
        for wrong in ["* * * *", "60 * * * *", "5-1 * * * *", "*/0 * * * *", "x * * * *", ""] {
            assert!(Cron::parse(wrong).is_err(), "{wrong}");
        }
    }
}
