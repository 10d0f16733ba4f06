//! How long the host asks to wait.

use super::client::ApiResponse;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use std::time::Duration;

/// The documented wait for a secondary limit without a duration.
const UNNAMED: Duration = Duration::from_secs(60);
/// Longer waits are cut to this.
const LONGEST: u64 = 24 * 60 * 60;

/// The wait that an answer requires; `None` if it isn't about limits.
pub(crate) fn wait(answer: &ApiResponse, now: Timestamp) -> Option<Duration> {
    if !matches!(answer.status, 403 | 429) {
        return None;
    }
    let number = |name: &str| answer.header(name)?.trim().parse::<u64>().ok();
    if let Some(seconds) = number("retry-after") {
        return Some(Duration::from_secs(seconds.min(LONGEST)));
    }
    if number("x-ratelimit-remaining") == Some(0)
        && let Some(reset) = number("x-ratelimit-reset")
    {
        // By the host's clock: ours may be wrong.
        let now = answer
            .header("date")
            .and_then(|date| rfc2822::parse(date).ok())
            .map_or(now, |date| date.timestamp());
        let now = u64::try_from(now.as_second()).unwrap_or(0);
        return Some(Duration::from_secs(reset.saturating_sub(now).min(LONGEST) + 1));
    }
    let said = String::from_utf8_lossy(answer.body.get(..4096).unwrap_or(&answer.body)).to_lowercase();
    let named = ["secondary rate limit", "abuse detection", "rate limit exceeded"]
        .iter()
        .any(|words| said.contains(words));
    (answer.status == 429 || named).then_some(UNNAMED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_http::{HeaderMap, HeaderName, HeaderValue};

    fn wait_of(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Option<u64> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let answer = ApiResponse { status, headers, body: body.as_bytes().to_vec() };
        wait(&answer, Timestamp::from_second(1_000).unwrap()).map(|wait| wait.as_secs())
    }

    #[test]
    fn limits_and_refusals_are_distinguished() {
        assert_eq!(wait_of(403, &[], "Resource not accessible by integration"), None);
        assert_eq!(wait_of(403, &[("x-ratelimit-remaining", "41")], "no"), None);
        assert_eq!(wait_of(404, &[("retry-after", "5")], ""), None);
        assert_eq!(wait_of(429, &[("retry-after", "5")], ""), Some(5));
        assert_eq!(wait_of(403, &[], "You have exceeded a secondary rate limit."), Some(60));
        assert_eq!(
            wait_of(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1030")], ""),
            Some(31)
        );
        let date = ("date", "Thu, 01 Jan 1970 01:00:00 GMT");
        assert_eq!(
            wait_of(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "3610"), date], ""),
            Some(11)
        );
        assert_eq!(wait_of(429, &[("retry-after", "99999999")], ""), Some(86_400));
    }
}
