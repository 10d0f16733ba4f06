//! Classifies a provider's error by status and text. Never gets the agent's own prose.

use super::parser::{ProcessClose, REASON_MAX};
use crate::limits;
use crate::scan::{contains_any, fold, match_ends};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use serde_json::Value;

const CONTEXT: &[&str] = &[
    "prompt is too long",
    "context_length_exceeded",
    "context window",
    "maximum context length",
    "input token count",
    "exceeds the maximum number of tokens",
];
const BILLING: &[&str] = &[
    "credit balance is too low",
    "billing_not_active",
    "billing is not active",
    "account is not active",
    "insufficient credits",
    "payment required",
];
const AUTH: &[&str] = &[
    "not logged in",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "api_key_invalid",
    "401 unauthorized",
    "error: 401",
    "403 forbidden",
    "missing environment variable",
    "unauthenticated",
    "failed to authenticate",
    "authentication_error",
    "please run /login",
    "invalid auth method",
    "please set an auth method",
    "oauth token has expired",
];
const OVERLOADED: &[&str] = &[
    "overloaded",
    "at capacity",
    "high demand",
    "stream disconnected",
    "incomplete json segment",
    "connection reset",
    "econnreset",
    "socket hang up",
    "internal server error",
    "service unavailable",
    "bad gateway",
    "gateway timeout",
    "temporarily unavailable",
];
/// The host didn't accept the connection.
const UNREACHABLE: &[&str] = &[
    "waiting for network",
    "connection failed",
    "cannot connect",
    "unable to connect",
    "connection refused",
    "connection error",
    "error sending request",
    "econnrefused",
    "enotfound",
    "eai_again",
    "ehostunreach",
    "enetunreach",
    "etimedout",
    "fetch failed",
    "no route to host",
    "network is unreachable",
    "could not resolve host",
    "name or service not known",
    "temporary failure in name resolution",
    "dns error",
];

/// Classifies an error; `status` is the HTTP status if known.
pub(crate) fn classify(words: &str, status: Option<u16>, close: &ProcessClose<'_>) -> SessionEnd {
    let inner = inner_error(words);
    let status = status.or(inner.as_ref().and_then(|inner| inner.status));
    let reason = text::one_line(inner.as_ref().map_or(words, |inner| &inner.message), REASON_MAX);
    let folded = fold(words);
    if contains_any(&folded, CONTEXT) {
        SessionEnd::ContextTooLong { reason }
    } else if contains_any(&folded, BILLING) || status == Some(402) {
        SessionEnd::Billing { reason }
    } else if status == Some(429) || matches_patterns(&folded, close.patterns) {
        limited(words, reason, close)
    } else if matches!(status, Some(401 | 403)) || contains_any(&folded, AUTH) {
        SessionEnd::Auth { reason }
    } else if limits::looks_limited(words) {
        limited(words, reason, close)
    } else if status.is_some_and(|s| s >= 500 || s == 408)
        || speaks_of_5xx(&folded)
        || contains_any(&folded, OVERLOADED)
    {
        SessionEnd::Overloaded { reason }
    } else if contains_any(&folded, UNREACHABLE) {
        SessionEnd::Unreachable { reason }
    } else {
        SessionEnd::Failed { reason }
    }
}

fn limited(words: &str, reason: String, close: &ProcessClose<'_>) -> SessionEnd {
    SessionEnd::RateLimited { reset_at: limits::reset_time(words, close.now), reason }
}

/// A limit, an outage or a refused login: what a CLI waits for, or retries in vain.
pub(crate) fn is_provider_error(end: &SessionEnd) -> bool {
    matches!(
        end,
        SessionEnd::RateLimited { .. }
            | SessionEnd::Overloaded { .. }
            | SessionEnd::Unreachable { .. }
            | SessionEnd::Auth { .. }
    )
}

/// Whether an error text is about a refused login or key.
pub(crate) fn is_auth_error(words: &str) -> bool {
    contains_any(&fold(words), AUTH)
}

/// What an error line refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Login,
    Credit,
}

/// The beginnings of login errors. After those of the second list a sentence may continue.
const LOGIN: (&[&str], &[&str]) = (
    &[
        "not logged in",
        "you are not logged in",
        "not authenticated",
        "you are not authenticated",
        "invalid api key",
        "incorrect api key",
        "unauthorized",
        "unauthenticated",
        "401",
        "http 401",
        "status 401",
        "authentication failed",
        "authentication required",
        "authentication_error",
        "login required",
        "login failed",
    ],
    &[
        "401 unauthorized",
        "401 invalid",
        "403 forbidden",
        "api key not valid",
        "api key is missing",
        "api key is not set",
        "no api key",
        "missing api key",
        "please log in",
        "please login",
        "please sign in",
        "please authenticate",
        "please run /login",
        "failed to authenticate",
        "oauth token has expired",
    ],
);
/// The same about credit.
const CREDIT: (&[&str], &[&str]) = (
    &[
        "insufficient credits",
        "insufficient_quota",
        "insufficient quota",
        "payment required",
        "quota exceeded",
        "out of credits",
    ],
    &[
        "credit balance is too low",
        "402 payment required",
        "you exceeded your current quota",
        "you have exceeded your quota",
        "quota exceeded for",
    ],
);

/// The refusal in a line that begins like such errors: `Error: not logged in`, `401 Unauthorized`. The same words
/// later in a sentence may be a quote.
pub(crate) fn refusal(line: &str) -> Option<Refusal> {
    let folded = fold(line);
    let plain =
        |text: &str| -> usize { text.len() - text.trim_start_matches(|c: char| !c.is_alphanumeric()).len() };
    let mut rest = &folded[plain(&folded)..];
    for label in ["api error", "error", "fatal"] {
        if let Some(after) =
            rest.strip_prefix(label).filter(|after| !after.starts_with(char::is_alphanumeric))
        {
            rest = &after[plain(after)..];
        }
    }
    let begins = |(alone, open): (&[&str], &[&str])| {
        let ends = |after: &str| !after.trim_start().starts_with(char::is_alphanumeric);
        alone.iter().any(|sign| rest.strip_prefix(sign).is_some_and(ends))
            || open.iter().any(|sign| rest.starts_with(sign))
    };
    if begins(LOGIN) { Some(Refusal::Login) } else { begins(CREDIT).then_some(Refusal::Credit) }
}

/// Whether `folded` contains one of the configured signs.
pub(crate) fn matches_patterns(folded: &str, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| !pattern.trim().is_empty() && folded.contains(&fold(pattern)))
}

/// `status 529`, `api error: 503`.
fn speaks_of_5xx(folded: &str) -> bool {
    ["status ", "status: ", "api error: "].iter().flat_map(|cue| match_ends(folded, cue)).any(|end| {
        let digits = folded[end..].bytes().take_while(u8::is_ascii_digit).count();
        digits == 3 && folded[end..].starts_with('5')
    })
}

struct Inner {
    message: String,
    status: Option<u16>,
}

/// The message inside `{"error":{"code":…,"message":"…"}}`, which CLIs pass on as text.
fn inner_error(words: &str) -> Option<Inner> {
    let at = words.find('{')?;
    let body = serde_json::Deserializer::from_str(&words[at..]).into_iter::<Value>().next()?.ok()?;
    let error = body.get("error").unwrap_or(&body);
    Some(Inner {
        message: error.get("message")?.as_str()?.to_owned(),
        status: error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_domain::ports::ExecEnd;

    #[test]
    fn errors_are_classed_by_status_first_and_words_second() {
        let patterns = vec!["Slow Down".to_owned(), String::new()];
        let now = "2026-11-15T03:00:00Z".parse().unwrap();
        let close = ProcessClose { exec: ExecEnd::Exited(1), now, patterns: &patterns };
        let table: &[(&str, Option<u16>, &str)] = &[
            ("anything", Some(429), "rate limited"),
            ("please SLOW down now", None, "rate limited"),
            (
                "You’ve hit your usage limit. Purchase more credits or try again at 3:54 AM.",
                None,
                "rate limited",
            ),
            ("Quota exceeded. Check your plan and billing details.", None, "rate limited"),
            ("unexpected status 401 Unauthorized: Incorrect API key", None, "not logged in"),
            ("Missing environment variable: `X`.", None, "not logged in"),
            ("no entry", Some(403), "not logged in"),
            (r#"{"error":{"code":401,"message":"nope"}}"#, None, "not logged in"),
            ("Credit balance is too low", Some(400), "no credit"),
            (
                "{\"error\":{\"message\":\"x\",\"code\":\"context_length_exceeded\"}}",
                None,
                "context too long",
            ),
            ("unexpected status 529 <unknown status code>: x", None, "provider overloaded"),
            ("We’re currently experiencing high demand", None, "provider overloaded"),
            ("Connection refused (ECONNREFUSED)", None, "provider not reachable"),
            ("getaddrinfo ENOTFOUND api.example.com", None, "provider not reachable"),
            ("x", Some(500), "provider overloaded"),
            ("There's an issue with the selected model", Some(404), "agent failed"),
            ("", None, "agent failed"),
        ];
        for (words, status, expected) in table {
            assert_eq!(classify(words, *status, &close).word(), *expected, "{words:?}");
        }
        let inner = classify(r#"{"error":{"code":401,"message":"nope"}}"#, None, &close);
        assert_eq!(inner.reason(), Some("nope"));
    }
}
