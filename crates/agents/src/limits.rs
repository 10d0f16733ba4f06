//! Reads rate limits from a provider's messages: whether a text is about one, and when it ends.
//!
//! Its input is only structured errors, results marked as errors, and stderr of a failed exit.

use crate::scan::{Cursor, contains_any, fold, match_ends};
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// A later reset is a misreading: the longest windows are weekly.
const FARTHEST: SignedDuration = SignedDuration::from_hours(8 * 24);
/// A reset that has just passed still counts: the wait is over.
const JUST_PASSED: SignedDuration = SignedDuration::from_secs(60);
const TEXT_MAX: usize = 64 * 1024;

const PHRASES: &[&str] = &[
    "rate limit",
    "rate-limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "usage limit",
    "usage_limit",
    "limit reached",
    "5-hour limit",
    "weekly limit",
    "hit your limit",
    "quota exceeded",
    "exceeded your current quota",
    "exhausted your daily quota",
    "exhausted your quota",
    "exhausted your capacity",
    "insufficient_quota",
    "resource_exhausted",
    "resource has been exhausted",
    "status 429",
    "status: 429",
    "status code 429",
    "error 429",
    "error: 429",
    "http 429",
    "(429)",
];

/// Whether an error text is about a rate or usage limit.
pub fn looks_limited(text: &str) -> bool {
    contains_any(&fold(ralph_loop_protocol::display::text::tail(text, TEXT_MAX)), PHRASES)
}

/// When the limit in `text` ends; clock times without a zone are local.
pub fn reset_time(text: &str, now: Timestamp) -> Option<Timestamp> {
    reset_time_in(text, now, &TimeZone::system())
}

/// Like [`reset_time`], with the zone for clock times without one.
pub fn reset_time_in(text: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    let text = fold(ralph_loop_protocol::display::text::tail(text, TEXT_MAX));
    epoch(&text, now)
        .or_else(|| rfc3339(&text, now))
        .or_else(|| clock_time(&text, now, local))
        .or_else(|| wait(&text, now))
}

/// A reset given as epoch seconds or milliseconds in a structured field.
pub(crate) fn reset_epoch(number: i64, now: Timestamp) -> Option<Timestamp> {
    let at = if number > 100_000_000_000 {
        Timestamp::from_millisecond(number)
    } else {
        Timestamp::from_second(number)
    };
    at.ok().and_then(|at| plausible(at, now))
}

fn plausible(at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let ahead = at.duration_since(now);
    (ahead <= FARTHEST && ahead >= -JUST_PASSED).then_some(at)
}

/// Ten or thirteen digits after a `|` or shortly after the word "reset".
fn epoch(text: &str, now: Timestamp) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        if matches!(end - at, 10 | 13) {
            let before = &bytes[at.saturating_sub(24)..at];
            let cued = before.ends_with(b"|") || before.windows(5).any(|w| w == b"reset");
            let number = std::str::from_utf8(&bytes[at..end]).ok().and_then(|digits| digits.parse().ok());
            if let Some(reset) = number.filter(|_| cued).and_then(|number| reset_epoch(number, now)) {
                return Some(reset);
            }
        }
        at = end;
    }
    None
}

/// A full timestamp shortly after a word about the end of a limit. Others are a log line's own.
fn rfc3339(text: &str, now: Timestamp) -> Option<Timestamp> {
    const CUES: &[&str] = &["reset", "again", "retry", "until", "available", "after"];
    for cue in CUES {
        for end in match_ends(text, cue) {
            let near = ralph_loop_protocol::display::text::head(&text[end..], 32);
            let Some(digit) = near.find(|c: char| c.is_ascii_digit()) else { continue };
            let mut cursor = Cursor::new(&text[end + digit..]);
            let written = cursor.take(40, |c| c.is_ascii_digit() || "-:.tz+ ".contains(c));
            let parsed = (10..=written.len())
                .rev()
                .filter_map(|cut| written.get(..cut))
                .find_map(|piece| piece.to_ascii_uppercase().trim_end().parse::<Timestamp>().ok());
            if let Some(at) = parsed.and_then(|at| plausible(at, now)) {
                return Some(at);
            }
        }
    }
    None
}

/// `resets 4:02am (UTC)`, `resets Nov 16, 4pm (UTC)`, `try again at 3:54 AM.`
fn clock_time(text: &str, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    const CUES: &[&str] =
        &["resets", "reset at", "again at", "again on", "again after", "until", "available at"];
    CUES.iter()
        .flat_map(|cue| match_ends(text, cue))
        .find_map(|end| clock_time_at(Cursor::new(&text[end..]), now, local))
}

fn clock_time_at(mut cursor: Cursor<'_>, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
    const BLANK: &[char] = &[' ', ':', ',', '\u{b7}'];
    cursor.skip(BLANK);
    let _ = cursor.eat("at ") || cursor.eat("on ");
    let day = named_day(&mut cursor);
    cursor.skip(BLANK);
    if cursor.eat("at ") {
        cursor.skip(&[' ']);
    }
    let time = time_of_day(&mut cursor)?;
    let zone = match named_zone(cursor) {
        Named::None => local.clone(),
        Named::Known(zone) => zone,
        Named::Unknown => return None,
    };
    let today = now.to_zoned(zone.clone()).date();
    let on = |date: Date| Some(date.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp());
    let at = match day {
        None => {
            let at = on(today)?;
            if at < now.checked_sub(JUST_PASSED).ok()? { on(today.checked_add(1.day()).ok()?)? } else { at }
        }
        Some(Day { year: Some(year), month, day }) => on(Date::new(year, month, day).ok()?)?,
        Some(Day { year: None, month, day }) => {
            let at = Date::new(today.year(), month, day).ok().and_then(on);
            match at {
                Some(at) if at >= now.checked_sub(JUST_PASSED).ok()? => at,
                _ => on(Date::new(today.year().checked_add(1)?, month, day).ok()?)?,
            }
        }
    };
    plausible(at, now)
}

struct Day {
    year: Option<i16>,
    month: i8,
    day: i8,
}

/// `nov 16`, `nov 16th, 2026`, `november 16,`.
fn named_day(cursor: &mut Cursor<'_>) -> Option<Day> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let mut ahead = *cursor;
    let word = ahead.word();
    let month = MONTHS.iter().position(|m| word.starts_with(m))?;
    ahead.skip(&[' ', '.']);
    let day = i8::try_from(ahead.whole()?).ok()?;
    let _ = ahead.eat("st") || ahead.eat("nd") || ahead.eat("rd") || ahead.eat("th");
    *cursor = ahead;
    ahead.skip(&[' ', ',']);
    let year = ahead.whole().filter(|year| (2000..3000).contains(year)).and_then(|y| i16::try_from(y).ok());
    if year.is_some() {
        *cursor = ahead;
    }
    Some(Day { year, month: i8::try_from(month + 1).ok()?, day })
}

/// `4am`, `4:02am`, `3:54 AM`, `15:30`; not a bare number.
fn time_of_day(cursor: &mut Cursor<'_>) -> Option<Time> {
    let hour = cursor.whole()?;
    let mut minute = None;
    let mut second = 0;
    if cursor.eat(":") {
        minute = Some(cursor.whole()?);
        if cursor.eat(":") {
            second = cursor.whole()?;
        }
    }
    let mut ahead = *cursor;
    ahead.skip(&[' ', '\u{202f}', '\u{a0}']);
    let half = match ahead.peek() {
        Some('a') if ahead.eat("am") || ahead.eat("a.m.") => Some(0),
        Some('p') if ahead.eat("pm") || ahead.eat("p.m.") => Some(12),
        _ => None,
    };
    let hour = match half {
        Some(plus) if (1..=12).contains(&hour) => {
            *cursor = ahead;
            hour % 12 + plus
        }
        None if minute.is_some() => hour,
        _ => return None,
    };
    let small = |number: u32| i8::try_from(number).ok();
    Time::new(small(hour)?, small(minute.unwrap_or(0))?, small(second)?, 0).ok()
}

enum Named {
    None,
    Known(TimeZone),
    Unknown,
}

/// `(UTC)`, `(Europe/Berlin)`, ` UTC`. An unknown zone must not be guessed.
fn named_zone(mut cursor: Cursor<'_>) -> Named {
    cursor.skip(&[' ']);
    let bracketed = cursor.eat("(");
    let name = cursor.take(40, |c| c.is_ascii_alphanumeric() || "/_+-".contains(c));
    match (known_zone(name), bracketed) {
        (Some(zone), _) => Named::Known(zone),
        (None, true) if cursor.rest().starts_with(')') && !name.is_empty() => Named::Unknown,
        (None, _) => Named::None,
    }
}

fn known_zone(name: &str) -> Option<TimeZone> {
    let name = match name {
        "utc" | "gmt" | "z" => return Some(TimeZone::UTC),
        "pt" | "pst" | "pdt" => "America/Los_Angeles",
        "mt" | "mst" | "mdt" => "America/Denver",
        "ct" | "cst" | "cdt" => "America/Chicago",
        "et" | "est" | "edt" => "America/New_York",
        "cet" | "cest" => "Europe/Paris",
        name if name.contains('/') => name,
        _ => return None,
    };
    TimeZone::get(name).ok()
}

/// `try again in 1h 20m`, `retry after 12.5s`, `Retry-After: 120`, `"retryDelay": "34s"`: the longest one.
fn wait(text: &str, now: Timestamp) -> Option<Timestamp> {
    // Whether a number without a unit means seconds (a header) or nothing.
    const CUES: &[(&str, bool)] = &[
        ("again in", false),
        ("again after", false),
        ("retry in", false),
        ("retrying in", false),
        ("retry after", false),
        ("retry-after", true),
        ("retry_after", true),
        ("retrydelay", false),
        ("retry_delay", false),
        ("resets in", false),
        ("reset in", false),
        ("reset after", false),
        ("available in", false),
    ];
    CUES.iter()
        .flat_map(|(cue, bare)| match_ends(text, cue).map(move |end| (end, *bare)))
        .filter_map(|(end, bare)| length(Cursor::new(&text[end..]), bare))
        .filter_map(|seconds| {
            let length = SignedDuration::try_from_secs_f64(seconds).ok()?;
            plausible(now.checked_add(length).ok()?, now)
        })
        .max()
}

fn length(mut cursor: Cursor<'_>, bare_seconds: bool) -> Option<f64> {
    cursor.skip(&[' ', ':', '=', '"', '\'', '~']);
    let _ = cursor.eat("about ");
    let mut sum = None;
    loop {
        let mut ahead = cursor;
        ahead.skip(&[' ', ',']);
        if ahead.eat("and ") {
            ahead.skip(&[' ']);
        }
        let Some(number) = ahead.decimal() else { break };
        ahead.skip(&[' ']);
        let unit = match ahead.word() {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ if sum.is_none() && bare_seconds => return Some(number),
            _ => break,
        };
        sum = Some(sum.unwrap_or(0.0) + number * unit);
        cursor = ahead;
    }
    sum
}

#[cfg(test)]
mod tests;
