use super::*;
use proptest::prelude::*;

const NOW: &str = "2026-11-15T03:00:00Z";

fn reset(text: &str) -> Option<String> {
    let now: Timestamp = NOW.parse().unwrap();
    let local = TimeZone::fixed(jiff::tz::offset(-5));
    reset_time_in(text, now, &local).map(|at| at.to_string())
}

#[test]
fn reset_times_are_read_as_providers_write_them() {
    let table: &[(&str, &str)] = &[
        // Epochs.
        (r#"{"status":"rejected","resetsAt":1794715340}"#, "2026-11-15T04:02:20Z"),
        ("Claude AI usage limit reached|1794715340", "2026-11-15T04:02:20Z"),
        ("usage limit reached|1794715340000", "2026-11-15T04:02:20Z"),
        ("x-ratelimit-reset: 1794715340", "2026-11-15T04:02:20Z"),
        // Full timestamps.
        ("limit resets at 2026-11-15T05:00:00Z.", "2026-11-15T05:00:00Z"),
        ("try again after 2026-11-15 05:00:00+01:00", "2026-11-15T04:00:00Z"),
        // Clock times with a zone.
        ("You've hit your 5-hour limit · resets 4:02am (UTC)", "2026-11-15T04:02:00Z"),
        ("resets 3am (Europe/Berlin)", "2026-11-16T02:00:00Z"),
        ("resets 5am (Europe/Berlin)", "2026-11-15T04:00:00Z"),
        ("resets at 2am (UTC)", "2026-11-16T02:00:00Z"),
        ("resets 2:59am (UTC)", "2026-11-15T02:59:00Z"),
        ("weekly limit · resets Nov 16, 4pm (UTC)", "2026-11-16T16:00:00Z"),
        ("resets Nov 16 at 4:30pm (America/New_York)", "2026-11-16T21:30:00Z"),
        ("resets 12am (UTC)", "2026-11-16T00:00:00Z"),
        ("resets 12:10pm (UTC)", "2026-11-15T12:10:00Z"),
        ("resets 15:30 UTC", "2026-11-15T15:30:00Z"),
        ("resets 8pm PST", "2026-11-15T04:00:00Z"),
        // Clock times without a zone are local, here five hours behind.
        ("purchase more credits or try again at 3:54 AM.", "2026-11-15T08:54:00Z"),
        ("You’ve hit your usage limit. Try again at 10:30 PM.", "2026-11-15T03:30:00Z"),
        ("try again at Nov 20th, 2026 9:00 AM.", "2026-11-20T14:00:00Z"),
        // Waits.
        ("try again in 5 minutes", "2026-11-15T03:05:00Z"),
        ("Try again in 1h 20m.", "2026-11-15T04:20:00Z"),
        ("try again in 30s", "2026-11-15T03:00:30Z"),
        ("try again in 2 days 3 hours 5 minutes.", "2026-11-17T06:05:00Z"),
        ("try again in 2 hours and 5 minutes", "2026-11-15T05:05:00Z"),
        ("Suggested retry after 1s.", "2026-11-15T03:00:01Z"),
        ("Please retry in 1.5s.\nSuggested retry after 1s.", "2026-11-15T03:00:01.5Z"),
        ("retry after 12.5s", "2026-11-15T03:00:12.5Z"),
        ("retry in 34.07s", "2026-11-15T03:00:34.07Z"),
        ("Retry-After: 120", "2026-11-15T03:02:00Z"),
        (r#"{"retry_after": 120}"#, "2026-11-15T03:02:00Z"),
        (r#"{"retryDelay": "34s"}"#, "2026-11-15T03:00:34Z"),
        ("resets in 3h", "2026-11-15T06:00:00Z"),
    ];
    for (text, expected) in table {
        assert_eq!(reset(text).as_deref(), Some(*expected), "{text:?}");
    }
}

#[test]
fn implausible_times_are_ignored() {
    for text in [
        "",
        "API Error: Request rejected (429)",
        "try again later",
        "try again in a moment",
        "resets soon",
        "resets 4",
        "resets 25:99am (UTC)",
        "resets 4am (Middle/Earth)",
        "resets Nov 31, 4pm (UTC)",
        "try again in 30 days",
        "try again in 99999999999 hours",
        r#"{"resetsAt":1894715340}"#,
        r#"{"resetsAt":1794711000}"#,
        "request 1794715340 failed",
        "2026-11-15T05:00:00Z ERROR too many requests",
        "retry after lunch",
        "retry in 5",
        "resets 4:",
    ] {
        assert_eq!(reset(text), None, "{text:?}");
    }
}

#[test]
fn the_turn_of_the_year_is_crossed() {
    let now: Timestamp = "2026-12-31T22:00:00Z".parse().unwrap();
    let at = reset_time_in("resets Jan 2, 4am (UTC)", now, &TimeZone::UTC);
    assert_eq!(at.unwrap().to_string(), "2027-01-02T04:00:00Z");
}

#[test]
fn limits_are_recognised_and_other_errors_are_not() {
    for text in [
        "You’ve hit your usage limit.",
        "You've hit your usage limit.",
        "You've hit your 5-hour limit · resets 4:02am (UTC)",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "Quota exceeded. Check your plan and billing details.",
        "RESOURCE_EXHAUSTED",
        "You have exhausted your daily quota on this model.",
        "rate_limit_error",
    ] {
        assert!(looks_limited(text), "{text:?}");
    }
    for text in ["", "line 429: syntax error", "Invalid API key", "file size limit", "the limit is 5"] {
        assert!(!looks_limited(text), "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let now: Timestamp = NOW.parse().unwrap();
        let _ = reset_time_in(&text, now, &TimeZone::UTC);
        let _ = looks_limited(&text);
    }

    #[test]
    fn no_near_miss_makes_it_panic(
        cue in prop::sample::select(vec!["resets ", "try again at ", "try again in ", "Retry-After: ", "resets at ", "|", "retryDelay\":\""]),
        rest in "[0-9a-zA-Zé:., ()/+-]{0,40}",
    ) {
        let now: Timestamp = NOW.parse().unwrap();
        let text = format!("{cue}{rest}");
        if let Some(at) = reset_time_in(&text, now, &TimeZone::UTC) {
            let ahead = at.duration_since(now);
            prop_assert!(ahead <= FARTHEST && ahead >= -JUST_PASSED, "{text:?} gave {at}");
        }
    }
}
