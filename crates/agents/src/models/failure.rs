//! Classifies a failed call by status and body, and whether a retry may help.

use super::retry::{self, Again};
use ralph_loop_domain::model::ModelErrorKind;
use ralph_loop_protocol::display::text::one_line;
use serde_json::Value;

const SAID_MAX: usize = 300;

/// A failure before it becomes a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub kind: ModelErrorKind,
    /// `answered 429: …`, `cannot be reached: …`.
    pub said: String,
    pub again: Again,
    /// The provider refused the answer's schema, not the request.
    pub about_schema: bool,
    /// What to do, if the kind alone doesn't say it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure that is never retried.
    pub fn of(kind: ModelErrorKind, said: impl Into<String>) -> Self {
        Self { kind, said: said.into(), again: Again::Never, about_schema: false, hint: None }
    }
    /// A failure that may pass.
    pub fn passing(kind: ModelErrorKind, said: impl Into<String>) -> Self {
        Self { again: Again::Soon, ..Self::of(kind, said) }
    }
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An answer with another status than success.
    pub fn of_status(status: u16, header: &dyn Fn(&str) -> Option<String>, body: &str) -> Self {
        let value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        let value = match value {
            Value::Array(mut list) if !list.is_empty() => list.swap_remove(0),
            other => other,
        };
        if (300..400).contains(&status) {
            let to = header("location").and_then(|l| ralph_loop_http::Url::parse(&l).ok());
            let to = to.as_ref().and_then(|u| u.host_str()).unwrap_or("another server").to_owned();
            return Self::of(ModelErrorKind::NotFound, format!("answered {status}, which leads to {to}"))
                .hint("redirects are not followed, so that the key stays here: set `base_url` to the last address");
        }
        let words = if value.is_null() { plain_text(body) } else { message(&value) };
        let said = match words.as_str() {
            "" => format!("answered {status} without a message"),
            words => format!("answered {status}: {}", one_line(words, SAID_MAX)),
        };
        Self::classed(status, header, &value, &words, said)
    }

    /// An error inside a successful answer.
    pub fn of_event(value: &Value) -> Self {
        let words = message(value);
        let status = status_of(value);
        let said = format!("broke off with an error: {}", one_line(&words, SAID_MAX));
        Self::classed(status, &|_| None, value, &words, said)
    }

    fn classed(
        status: u16,
        header: &dyn Fn(&str) -> Option<String>,
        value: &Value,
        words: &str,
        said: String,
    ) -> Self {
        let told = format!("{} {words}", labels(value)).to_lowercase();
        let kind = kind_of(status, &told);
        let wait = retry::named(header, value, words);
        let kind = match kind {
            ModelErrorKind::RateLimited { .. } => ModelErrorKind::RateLimited { retry_after: wait },
            other => other,
        };
        let again = match kind {
            ModelErrorKind::RateLimited { .. }
            | ModelErrorKind::Overloaded
            | ModelErrorKind::Unreachable
            | ModelErrorKind::TimedOut => wait.map_or(Again::Soon, Again::After),
            _ => Again::Never,
        };
        let about_schema = kind == ModelErrorKind::BadRequest && has(&told, SCHEMA);
        let hint = told
            .contains("no_db_connection")
            .then(|| "a LiteLLM proxy without a database says this to a wrong key: check it".to_owned());
        Self { kind, said, again, about_schema, hint }
    }
}

const BILLING: &[&str] = &[
    "insufficient_quota",
    "billing_not_active",
    "billing_hard_limit",
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "insufficient_credits",
    "not enough credits",
    "payment required",
];
const AUTH: &[&str] = &[
    "no_db_connection",
    "invalid_api_key",
    "api_key_invalid",
    "api key not valid",
    "authentication_error",
    "invalid x-api-key",
];
const CONTEXT: &[&str] = &[
    "context_length_exceeded",
    "contextwindowexceeded",
    "maximum context length",
    "prompt is too long",
    "input is too long",
    "exceeds the context window",
    "exceed context limit",
    "exceeds the maximum number of tokens",
    "request_too_large",
    "string too long",
];
const LIMITED: &[&str] = &[
    "rate_limit_error",
    "rate_limit_exceeded",
    "resource_exhausted",
    "throttling_error",
    "too many requests",
];
const ABSENT: &[&str] = &[
    "model_not_found",
    "not_found_error",
    "invalid model name",
    "model not found",
    "unknown model",
    "is not a valid model",
    "model does not exist",
    "model not exist",
];
const REFUSED: &[&str] =
    &["content_policy_violation", "contentpolicyviolation", "content_filter", "content management policy"];
const OVERLOADED: &[&str] = &["overloaded", "server_is_overloaded", "at capacity", "unavailable"];
const SCHEMA: &[&str] = &[
    "response_format",
    "json_schema",
    "output_config",
    "output_format",
    "text.format",
    "responsejsonschema",
    "response_json_schema",
    "responsemimetype",
];

fn has(told: &str, any: &[&str]) -> bool {
    any.iter().any(|word| told.contains(word))
}

/// The order matters: exact words come before a status that only hints.
fn kind_of(status: u16, told: &str) -> ModelErrorKind {
    let limited = ModelErrorKind::RateLimited { retry_after: None };
    let client = (400..500).contains(&status);
    match status {
        402 => ModelErrorKind::Billing,
        _ if client && has(told, BILLING) => ModelErrorKind::Billing,
        401 | 403 => ModelErrorKind::Auth,
        // A proxy wraps its provider's overload into its own error.
        _ if status >= 500 && has(told, OVERLOADED) => ModelErrorKind::Overloaded,
        429 => limited,
        400 | 422 if has(told, AUTH) => ModelErrorKind::Auth,
        413 => ModelErrorKind::ContextTooLong,
        _ if has(told, CONTEXT) => ModelErrorKind::ContextTooLong,
        404 => ModelErrorKind::NotFound,
        _ if client && has(told, ABSENT) => ModelErrorKind::NotFound,
        400 | 422 if told.contains("model") && told.contains("does not exist") => ModelErrorKind::NotFound,
        _ if client && has(told, REFUSED) => ModelErrorKind::Refused,
        _ if has(told, LIMITED) => limited,
        408 => ModelErrorKind::TimedOut,
        409 | 425 => ModelErrorKind::Overloaded,
        500.. => ModelErrorKind::Overloaded,
        _ => ModelErrorKind::BadRequest,
    }
}

/// The error of a body, wherever the provider puts it.
fn error_of(value: &Value) -> &Value {
    value.get("error").filter(|e| !e.is_null()).unwrap_or(value)
}

fn message(value: &Value) -> String {
    let error = error_of(value);
    let found = match error {
        Value::String(text) => Some(text.as_str()),
        error => ["message", "detail", "msg"].iter().find_map(|key| error.get(key)?.as_str()),
    };
    // Without a known field, shows all of it.
    found.map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned)
}

/// The machine-readable error labels.
fn labels(value: &Value) -> String {
    let error = error_of(value);
    let of = |v: &Value, key: &str| match v.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let mut all: Vec<String> = ["type", "code", "status"].iter().map(|key| of(error, key)).collect();
    if let Some(details) = error.get("details").and_then(Value::as_array) {
        all.extend(details.iter().map(|d| of(d, "reason")));
    }
    all.join(" ")
}

/// The status of an error inside a stream.
fn status_of(value: &Value) -> u16 {
    let error = error_of(value);
    let code = match error.get("code") {
        Some(Value::Number(n)) => n.as_u64(),
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    if let Some(code) = code.and_then(|c| u16::try_from(c).ok()).filter(|c| (400..600).contains(c)) {
        return code;
    }
    let labels = labels(value).to_lowercase();
    let by_word: &[(&[&str], u16)] = &[
        (&["rate_limit", "resource_exhausted", "insufficient_quota"], 429),
        (&["overloaded"], 529),
        (&["authentication", "permission", "invalid_api_key"], 401),
        (&["not_found"], 404),
        (&["invalid_request", "invalid_argument", "context_length", "invalid_prompt"], 400),
        (&["billing"], 402),
    ];
    by_word.iter().find(|(words, _)| has(&labels, words)).map_or(500, |(_, status)| *status)
}

/// The text of a page: proxies and load balancers answer in HTML.
fn plain_text(body: &str) -> String {
    let body = body.trim();
    if !body.starts_with('<') {
        return body.to_owned();
    }
    let mut text = String::new();
    let mut inside = false;
    for c in body.chars().take(4000) {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                text.push(' ');
            }
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
