//! Waits before retries: what the server asks for, else longer each time.

use jiff::Timestamp;
use ralph_loop_http::Backoff;
use serde_json::Value;
use std::time::Duration;

pub(crate) const RETRIES: u32 = 4;
/// The caller gets longer waits, because it may have other work.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);
/// The longest backoff.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Longer waits that a server asks for are cut to this.
const NAMED_MAX: Duration = Duration::from_secs(8 * 24 * 3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    Never,
    /// Once: more would only cost more.
    Once,
    /// After a backoff.
    Soon,
    /// After the wait that the server asked for.
    After(Duration),
}

/// The wait before try `tries + 1`: doubled each time, with a quarter of jitter so that many clients don't return
/// together.
pub(crate) fn backoff(base: Duration, tries: u32) -> Duration {
    Backoff { first: base, max: BACKOFF_MAX }.wait(tries)
}

/// The wait in a server's headers or body.
pub(crate) fn named(header: &dyn Fn(&str) -> Option<String>, body: &Value, words: &str) -> Option<Duration> {
    let wait = header("retry-after-ms")
        .and_then(|ms| ms.trim().parse::<f64>().ok())
        .and_then(|ms| seconds(ms / 1000.0))
        .or_else(|| header("retry-after").and_then(|v| after(&v, header("date").as_deref())))
        .or_else(|| {
            header("llm_provider-retry-after").and_then(|v| after(&v, header("llm_provider-date").as_deref()))
        })
        .or_else(|| retry_info(body))
        .or_else(|| in_words(words))?;
    (wait <= NAMED_MAX).then_some(wait)
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// Seconds, or a date relative to the server's clock.
fn after(value: &str, date: Option<&str>) -> Option<Duration> {
    if let Ok(number) = value.trim().parse::<f64>() {
        return seconds(number);
    }
    let at = http_date(value)?;
    let now = http_date(date?)?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text.trim()).ok().map(|at| at.timestamp())
}

/// Google's `RetryInfo` in the error details.
fn retry_info(body: &Value) -> Option<Duration> {
    let details = body.get("error")?.get("details")?.as_array()?;
    let delay = details.iter().find_map(|d| d.get("retryDelay")?.as_str())?;
    duration(delay)
}

/// `try again in 20s`, `retry in 1m30.5s`, `retry after 20 seconds`.
fn in_words(words: &str) -> Option<Duration> {
    let words = words.to_ascii_lowercase();
    ["try again in ", "retry in ", "retry after ", "again after "].iter().find_map(|cue| {
        let start = words.find(cue)? + cue.len();
        duration(words.get(start..)?)
    })
}

/// Numbers with units at the start of a text; a bare number is seconds.
fn duration(text: &str) -> Option<Duration> {
    let mut total = 0.0;
    let mut found = false;
    let mut rest = text.trim_start();
    loop {
        let digits = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
        rest = rest[digits..].trim_start();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = match &rest[..letters] {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ if !found => {
                total += number;
                found = true;
                break;
            }
            _ => break,
        };
        total += number * unit;
        found = true;
        rest = rest[letters..].trim_start();
    }
    found.then(|| seconds(total)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wait(headers: &[(&str, &str)], body: Value, words: &str) -> Option<f64> {
        let header = |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        named(&header, &body, words).map(|d| d.as_secs_f64())
    }

    #[test]
    fn every_format_of_a_wait_is_parsed() {
        assert_eq!(wait(&[("retry-after", "7")], json!({}), ""), Some(7.0));
        assert_eq!(wait(&[("retry-after-ms", "1500"), ("retry-after", "2")], json!({}), ""), Some(1.5));
        assert_eq!(wait(&[("llm_provider-retry-after", "3")], json!({}), ""), Some(3.0));
        let date =
            [("retry-after", "Sun, 15 Nov 2026 03:10:19 GMT"), ("date", "Sun, 15 Nov 2026 03:09:19 GMT")];
        assert_eq!(wait(&date, json!({}), ""), Some(60.0));
        let info = json!({ "error": { "details": [{ "@type": "x" }, { "retryDelay": "21.5s" }] } });
        assert_eq!(wait(&[], info, ""), Some(21.5));
        assert_eq!(wait(&[], json!({}), "Rate limit reached. Please try again in 1m30s. See"), Some(90.0));
        assert_eq!(wait(&[], json!({}), "Please try again in 250ms."), Some(0.25));
        assert_eq!(wait(&[], json!({}), "retry after 20 seconds"), Some(20.0));
        assert_eq!(wait(&[], json!({}), "try again later"), None);
        assert_eq!(wait(&[("retry-after", "-1")], json!({}), ""), None);
        assert_eq!(wait(&[("retry-after", "1e300")], json!({}), ""), None);
    }

    #[test]
    fn backoff_grows_and_stays_bounded() {
        let base = Duration::from_secs(1);
        for tries in 1..40 {
            let wait = backoff(base, tries);
            let full = base.saturating_mul(1 << (tries - 1).min(16)).min(BACKOFF_MAX);
            assert!(wait >= full.mul_f64(0.87) && wait <= full.mul_f64(1.13), "{tries}: {wait:?}");
        }
    }
}
