use super::*;
use std::time::Duration;

fn kind(status: u16, body: &str) -> ModelErrorKind {
    Failure::of_status(status, &|_| None, body).kind
}

#[test]
fn errors_of_every_provider_are_classified() {
    use ModelErrorKind as K;
    let limited = |wait: Option<u64>| K::RateLimited { retry_after: wait.map(Duration::from_secs) };
    let cases = [
        (429, r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#, limited(None)),
        (
            429,
            r#"{"error":{"message":"Rate limit reached. Please try again in 20s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            limited(Some(20)),
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            K::Billing,
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36s"}]}}]"#,
            limited(Some(36)),
        ),
        (
            429,
            r#"{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}"#,
            K::Billing,
        ),
        (401, r#"{"error":{"message":"Incorrect API key provided"}}"#, K::Auth),
        (403, "", K::Auth),
        (
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            K::Auth,
        ),
        (
            400,
            r#"{"error":{"message":"No connected db.","type":"no_db_connection","param":null,"code":"400"}}"#,
            K::Auth,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            K::Billing,
        ),
        (402, "{}", K::Billing),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","code":"context_length_exceeded"}}"#,
            K::ContextTooLong,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            K::ContextTooLong,
        ),
        (413, "", K::ContextTooLong),
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}"#,
            K::NotFound,
        ),
        (
            400,
            r#"{"error":{"message":"/chat/completions: Invalid model name passed in model=zzz.","type":"invalid_request_error","code":"400"}}"#,
            K::NotFound,
        ),
        (
            400,
            r#"{"error":{"message":"The model `x` does not exist or you do not have access","code":null}}"#,
            K::NotFound,
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            K::Overloaded,
        ),
        (503, "<html><body><h1>503 Service Temporarily Unavailable</h1></body></html>", K::Overloaded),
        (
            500,
            r#"{"error":{"message":"litellm.InternalServerError: AnthropicError - {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}","code":"500"}}"#,
            K::Overloaded,
        ),
        (408, "", K::TimedOut),
        (400, r#"{"error":{"message":"messages: at least one message is required"}}"#, K::BadRequest),
        (400, r#"{"error":{"message":"blocked","code":"content_policy_violation"}}"#, K::Refused),
        (418, "not json", K::BadRequest),
    ];
    for (status, body, want) in cases {
        assert_eq!(kind(status, body), want, "{status} {body}");
    }
}

#[test]
fn errors_inside_a_stream_are_classified() {
    let of = |text: &str| Failure::of_event(&serde_json::from_str(text).unwrap());
    let overloaded = of(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    assert_eq!((overloaded.kind, overloaded.again), (ModelErrorKind::Overloaded, Again::Soon));
    let limited = of(r#"{"error":{"code":"rate_limit_exceeded","message":"try again in 2s"}}"#);
    assert_eq!(limited.again, Again::After(Duration::from_secs(2)));
    let long = of(r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#);
    assert_eq!((long.kind, long.again), (ModelErrorKind::ContextTooLong, Again::Never));
    let gemini = of(r#"{"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}"#);
    assert_eq!(gemini.kind, ModelErrorKind::Overloaded);
    assert_eq!(of(r#"{"error":{"code":"401","message":"no"}}"#).kind, ModelErrorKind::Auth);
}

#[test]
fn html_errors_are_shown_as_text_and_redirects_by_host() {
    let page = Failure::of_status(502, &|_| None, "<html><h1>Bad   Gateway</h1></html>");
    assert_eq!(page.said, "answered 502: Bad Gateway");
    let to = |name: &str| (name == "location").then(|| "https://other.example/x?key=secret".to_owned());
    let moved = Failure::of_status(302, &to, "");
    assert_eq!(moved.said, "answered 302, which leads to other.example");
    assert_eq!(moved.again, Again::Never);
}

#[test]
fn refused_schema_and_refused_request_are_distinguished() {
    let refused = Failure::of_status(
        400,
        &|_| None,
        r#"{"error":{"message":"Invalid schema for response_format 'answer'"}}"#,
    );
    assert!(refused.about_schema);
    let other = Failure::of_status(400, &|_| None, r#"{"error":{"message":"no messages"}}"#);
    assert!(!other.about_schema);
}
