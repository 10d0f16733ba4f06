//! Vendor errors per wire, based on the vendors' documentation. Clients react to status, type, code and headers, so those are
//! exact; the texts are only similar.
#![allow(clippy::disallowed_methods, reason = "a reset is sent as a time of day")]

use super::ask::Wire;
use super::fault::FaultKind as Kind;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone)]
pub(super) struct ErrorAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

/// The error of this kind on this wire; `None` for kinds that aren't HTTP errors.
pub(super) fn error(wire: Wire, kind: &Kind, model: &str) -> Option<ErrorAnswer> {
    let status = match kind {
        Kind::RateLimit { .. } | Kind::UsageLimit { .. } | Kind::Quota | Kind::StreamRateLimit => 429,
        Kind::Auth => 401,
        Kind::Forbidden => 403,
        Kind::Credit | Kind::TooLong => 400,
        Kind::Overloaded | Kind::StreamError => 529,
        Kind::Unavailable => 503,
        Kind::ServerError => 500,
        Kind::NoModel => 404,
        _ => return None,
    };
    let (mut headers, body) = match wire {
        Wire::Anthropic => (anthropic_headers(kind), anthropic(kind, model)),
        Wire::Responses | Wire::Chat => (openai_headers(kind), openai(kind, model)),
        Wire::Gemini => (Vec::new(), gemini(kind, status, model)),
    };
    if let (Kind::RateLimit { retry_after_s: wait } | Kind::UsageLimit { resets_in_s: wait }, false) =
        (kind, wire == Wire::Gemini)
    {
        headers.push(("retry-after".into(), wait.to_string()));
    }
    Some(ErrorAnswer { status, headers, body })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn anthropic(kind: &Kind, model: &str) -> Value {
    let (name, message) = match kind {
        Kind::RateLimit { .. } | Kind::StreamRateLimit => (
            "rate_limit_error",
            "This request would exceed your account's rate limit. Please try again later.".to_owned(),
        ),
        Kind::UsageLimit { .. } => ("rate_limit_error", "You've reached your usage limit.".to_owned()),
        Kind::Quota => (
            "rate_limit_error",
            "You have reached your specified API usage limits. You will regain access next month.".to_owned(),
        ),
        Kind::Auth => ("authentication_error", "invalid x-api-key".to_owned()),
        Kind::Forbidden => (
            "permission_error",
            "Your API key does not have permission to use the specified resource.".to_owned(),
        ),
        Kind::Credit => (
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
                .to_owned(),
        ),
        Kind::TooLong => ("invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum".to_owned()),
        Kind::NoModel => ("not_found_error", format!("model: {model}")),
        Kind::Overloaded | Kind::Unavailable | Kind::StreamError => ("overloaded_error", "Overloaded".to_owned()),
        _ => ("api_error", "Internal server error".to_owned()),
    };
    json!({"type": "error", "error": {"type": name, "message": message}, "request_id": "req_scripted"})
}

fn anthropic_headers(kind: &Kind) -> Vec<(String, String)> {
    let own = |list: &[(&str, String)]| list.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    match kind {
        Kind::RateLimit { .. } => own(&[
            ("anthropic-ratelimit-requests-limit", "50".into()),
            ("anthropic-ratelimit-requests-remaining", "0".into()),
            ("anthropic-ratelimit-tokens-limit", "30000".into()),
            ("anthropic-ratelimit-tokens-remaining", "0".into()),
        ]),
        Kind::UsageLimit { resets_in_s } => {
            let reset = (now() + resets_in_s).to_string();
            own(&[
                ("anthropic-ratelimit-unified-status", "rejected".into()),
                ("anthropic-ratelimit-unified-reset", reset.clone()),
                ("anthropic-ratelimit-unified-representative-claim", "five_hour".into()),
                ("anthropic-ratelimit-unified-5h-status", "rejected".into()),
                ("anthropic-ratelimit-unified-5h-reset", reset),
                ("anthropic-ratelimit-unified-5h-utilization", "1.0".into()),
                ("anthropic-ratelimit-unified-overage-status", "rejected".into()),
                ("anthropic-ratelimit-unified-overage-disabled-reason", "org_level_disabled".into()),
            ])
        }
        _ => Vec::new(),
    }
}

fn openai(kind: &Kind, model: &str) -> Value {
    let (kind_name, code, message) = match kind {
        Kind::RateLimit { .. } | Kind::StreamRateLimit => (
            "tokens",
            json!("rate_limit_exceeded"),
            format!("Rate limit reached for {model} in organization org-scripted on tokens per min (TPM): Limit 30000, Used 30000, Requested 2000. Please try again in 1s. Visit https://platform.openai.com/account/rate-limits to learn more."),
        ),
        Kind::UsageLimit { resets_in_s } => {
            return json!({"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached",
                "plan_type": "plus", "resets_at": now() + resets_in_s, "resets_in_seconds": resets_in_s}});
        }
        Kind::Quota => (
            "insufficient_quota",
            json!("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.".to_owned(),
        ),
        Kind::Auth => (
            "invalid_request_error",
            json!("invalid_api_key"),
            "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."
                .to_owned(),
        ),
        Kind::Forbidden => (
            "request_forbidden",
            json!("unsupported_country_region_territory"),
            "Country, region, or territory not supported".to_owned(),
        ),
        Kind::Credit => (
            "billing_not_active",
            json!("billing_not_active"),
            "Your account is not active, please check your billing details on our website.".to_owned(),
        ),
        Kind::TooLong => (
            "invalid_request_error",
            json!("context_length_exceeded"),
            "Your input exceeds the context window of this model. Please adjust your input and try again.".to_owned(),
        ),
        Kind::NoModel => (
            "invalid_request_error",
            json!("model_not_found"),
            format!("The model `{model}` does not exist or you do not have access to it."),
        ),
        Kind::Unavailable | Kind::Overloaded | Kind::StreamError => (
            "server_error",
            if *kind == Kind::Overloaded { Value::Null } else { json!("server_is_overloaded") },
            "Our servers are currently overloaded. Please try again later.".to_owned(),
        ),
        _ => (
            "server_error",
            Value::Null,
            "The server had an error while processing your request. Sorry about that!".to_owned(),
        ),
    };
    json!({"error": {"message": message, "type": kind_name, "param": null, "code": code}})
}

fn openai_headers(kind: &Kind) -> Vec<(String, String)> {
    let Kind::RateLimit { retry_after_s } = kind else { return Vec::new() };
    vec![
        ("x-ratelimit-limit-tokens".into(), "30000".into()),
        ("x-ratelimit-remaining-tokens".into(), "0".into()),
        ("x-ratelimit-reset-tokens".into(), format!("{retry_after_s}s")),
    ]
}

fn gemini(kind: &Kind, code: u16, model: &str) -> Value {
    let quota = "You exceeded your current quota, please check your plan and billing details.";
    let (status, message, details) = match kind {
        Kind::RateLimit { retry_after_s } => (
            "RESOURCE_EXHAUSTED",
            format!("{quota} Please retry in {retry_after_s}s."),
            quota_details("PerMinute", Some(*retry_after_s), model),
        ),
        Kind::StreamRateLimit => {
            ("RESOURCE_EXHAUSTED", format!("{quota} Please retry in 1s."), quota_details("PerMinute", Some(1), model))
        }
        Kind::UsageLimit { resets_in_s } => {
            ("RESOURCE_EXHAUSTED", quota.to_owned(), quota_details("PerDay", Some(*resets_in_s), model))
        }
        Kind::Quota => ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).".to_owned(), Value::Null),
        Kind::Auth => (
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."
                .to_owned(),
            Value::Null,
        ),
        Kind::Forbidden => ("PERMISSION_DENIED", "The caller does not have permission".to_owned(), Value::Null),
        Kind::Credit => (
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.".to_owned(),
            json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
                "domain": "googleapis.com", "metadata": {"service": "generativelanguage.googleapis.com"}}]),
        ),
        Kind::TooLong => (
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).".to_owned(),
            Value::Null,
        ),
        Kind::NoModel => (
            "NOT_FOUND",
            format!("models/{model} is not found for API version v1beta, or is not supported for generateContent. ToolCall ListModels to see the list of available models and their supported methods."),
            Value::Null,
        ),
        Kind::ServerError => (
            "INTERNAL",
            "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
                .to_owned(),
            Value::Null,
        ),
        _ => ("UNAVAILABLE", "The model is overloaded. Please try again later.".to_owned(), Value::Null),
    };
    let mut error = json!({"code": code, "message": message, "status": status});
    if !details.is_null() {
        error["details"] = details;
    }
    json!({"error": error})
}

fn quota_details(window: &str, retry_s: Option<u64>, model: &str) -> Value {
    let mut details = vec![
        json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
            "quotaId": format!("GenerateRequests{window}PerProjectPerModel-FreeTier"),
            "quotaDimensions": {"location": "global", "model": model}, "quotaValue": "50"}]}),
        json!({"@type": "type.googleapis.com/google.rpc.Help", "links": [{
            "description": "Learn more about Gemini API quotas",
            "url": "https://ai.google.dev/gemini-api/docs/rate-limits"}]}),
    ];
    if let Some(seconds) = retry_s {
        details.push(
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")}),
        );
    }
    Value::Array(details)
}
