//! Maps paths to endpoints.

use super::ask::Wire;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Health,
    State,
    Reset,
    Scenario { scenario: &'a str, run: &'a str, endpoint: Endpoint<'a> },
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Endpoint<'a> {
    Answer { wire: Wire, model: Option<&'a str>, streams: Streams },
    CountTokens { wire: Wire },
    Models { wire: Wire },
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streams {
    Body,
    /// Never.
    No,
    Events,
    Array,
}

/// Path segments that clients add between the base URL and the endpoint.
const PREFIXES: &[&str] = &["v1beta/openai/", "api/paas/v4/", "v1beta/", "v1alpha/", "v1/", "v4/"];

pub(super) fn route(target: &str) -> Route<'_> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/__health" => return Route::Health,
        "/__state" => return Route::State,
        "/__reset" => return Route::Reset,
        _ => {}
    }
    let mut names = path.strip_prefix("/s/").unwrap_or_default().splitn(3, '/');
    match (names.next(), names.next(), names.next()) {
        (Some(scenario), Some(run), rest) if !scenario.is_empty() && !run.is_empty() => {
            Route::Scenario { scenario, run, endpoint: endpoint(rest.unwrap_or_default(), query) }
        }
        _ => Route::Unknown,
    }
}

fn endpoint<'a>(rest: &'a str, query: &str) -> Endpoint<'a> {
    let prefix = PREFIXES.iter().find(|prefix| rest.starts_with(**prefix)).copied().unwrap_or_default();
    let name = &rest[prefix.len()..];
    let answer = |wire| Endpoint::Answer { wire, model: None, streams: Streams::Body };
    match name {
        "messages" => answer(Wire::Anthropic),
        "messages/count_tokens" => Endpoint::CountTokens { wire: Wire::Anthropic },
        "responses" => answer(Wire::Responses),
        "chat/completions" => answer(Wire::Chat),
        "models" if prefix == "v1beta/" => Endpoint::Models { wire: Wire::Gemini },
        "models" => Endpoint::Models { wire: Wire::Chat },
        _ => name.strip_prefix("models/").map_or(Endpoint::Unknown, |name| gemini(name, query)),
    }
}

fn gemini<'a>(name: &'a str, query: &str) -> Endpoint<'a> {
    let Some((model, verb)) = name.rsplit_once(':') else { return Endpoint::Unknown };
    let answer = |streams| Endpoint::Answer { wire: Wire::Gemini, model: Some(model), streams };
    match verb {
        "generateContent" => answer(Streams::No),
        "streamGenerateContent" if query.split('&').any(|q| q == "alt=sse") => answer(Streams::Events),
        "streamGenerateContent" => answer(Streams::Array),
        "countTokens" => Endpoint::CountTokens { wire: Wire::Gemini },
        _ => Endpoint::Unknown,
    }
}
