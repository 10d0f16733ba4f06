//! What the APIs share: one request out, one answer back, whole or as a stream of events.

use super::sse::SseEvent;
use super::{anthropic, gemini, openai_chat, openai_responses};
use crate::models::provider::Route;
use ralph_loop_domain::model::{ModelRequest, ReplyPart, StopReason, ToolCall};
use ralph_loop_protocol::money::{Tokens, Usd};
use ralph_loop_task::config::{Profile, Wire};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub path: String,
    pub body: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WireReply {
    pub parts: Vec<ReplyPart>,
    pub stop: StopReason,
    pub tokens: Option<Tokens>,
    pub cost: Option<Usd>,
    pub model: Option<String>,
}

/// Why an answer that began well is invalid.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WireFault {
    /// The provider put an error into it.
    Said(Value),
    /// It can't be parsed.
    Garbled(String),
    /// It was cut off.
    Cut,
}

/// Reads a streamed answer.
pub(crate) trait StreamReader {
    /// Handles an event; passes pieces of text to `tell`.
    fn event(&mut self, event: &SseEvent, tell: &mut dyn FnMut(&str)) -> Result<(), WireFault>;
    fn complete(&self) -> bool;
    fn finish(self: Box<Self>) -> Result<WireReply, WireFault>;
}

/// The context of a request.
pub(crate) struct WireRequest<'a> {
    pub profile: &'a Profile,
    pub route: &'a Route,
    pub request: &'a ModelRequest,
    /// Whether to send the schema; false after a provider refused it.
    pub with_schema: bool,
}

impl WireRequest<'_> {
    /// Most tokens of the answer: the profile's, unless the request has less.
    pub fn max_tokens(&self) -> Option<u64> {
        match (self.profile.max_output_tokens, self.request.max_output_tokens) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    pub fn schema(&self) -> Option<&Value> {
        self.request.json_schema.as_ref().filter(|_| self.with_schema)
    }
    pub fn system(&self) -> String {
        let parts: Vec<&str> =
            self.request.system.iter().map(|p| p.text.as_str()).filter(|t| !t.is_empty()).collect();
        parts.join("\n\n")
    }
}

pub(crate) fn outgoing(asked: &WireRequest<'_>) -> Outgoing {
    match asked.route.wire {
        Wire::Anthropic => anthropic::outgoing(asked),
        Wire::OpenaiChat => openai_chat::outgoing(asked),
        Wire::OpenaiResponses => openai_responses::outgoing(asked),
        Wire::Gemini => gemini::outgoing(asked),
    }
}

/// Parses a whole answer. `turn` makes call ids unique if the API has none.
pub(crate) fn whole(wire: Wire, body: &Value, turn: usize) -> Result<WireReply, WireFault> {
    if body.get("error").is_some_and(|e| !e.is_null()) {
        return Err(WireFault::Said(body.clone()));
    }
    match wire {
        Wire::Anthropic => anthropic::whole(body),
        Wire::OpenaiChat => openai_chat::whole(body),
        Wire::OpenaiResponses => openai_responses::whole(body),
        Wire::Gemini => gemini::whole(body, turn),
    }
}

pub(crate) fn reader(wire: Wire, turn: usize) -> Box<dyn StreamReader> {
    match wire {
        Wire::Anthropic => Box::<anthropic::Reader>::default(),
        Wire::OpenaiChat => Box::<openai_chat::Reader>::default(),
        Wire::OpenaiResponses => Box::<openai_responses::Reader>::default(),
        Wire::Gemini => Box::new(gemini::Reader::new(turn)),
    }
}

pub(crate) fn json_of(event: &SseEvent) -> Result<Value, WireFault> {
    serde_json::from_str(&event.data).map_err(|e| {
        let seen = ralph_loop_protocol::display::text::one_line(&event.data, 120);
        WireFault::Garbled(format!("an event of the stream is not JSON ({e}): {seen}"))
    })
}

/// Why a stream was cut: an error as bare JSON, outside every event.
pub(crate) fn stray_error(text: &str) -> WireFault {
    let text = text.trim().trim_start_matches([',', '[']).trim_end_matches(']');
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.get("error").is_some() => WireFault::Said(value),
        _ => WireFault::Cut,
    }
}

/// Arguments of a tool call as the model wrote them; a string if invalid.
pub(crate) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Arguments to send back: always an object, because APIs refuse others.
pub(crate) fn as_object(input: &Value) -> Value {
    if input.is_object() { input.clone() } else { json!({ "unreadable_arguments": input }) }
}

/// Arguments to send back as text.
pub(crate) fn as_arguments(call: &ToolCall) -> String {
    as_object(&call.input).to_string()
}

pub(crate) fn number(value: &Value, path: &[&str]) -> Option<u64> {
    let found = path.iter().try_fold(value, |v, key| v.get(key))?;
    found.as_u64().or_else(|| found.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64))
}

pub(crate) fn string<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The text of a tool's answer for APIs that can't mark a failure.
pub(crate) fn result_text(result: &ralph_loop_domain::model::ToolResult) -> String {
    if result.is_error { format!("The tool failed:\n{}", result.text) } else { result.text.clone() }
}

/// Whether OpenAI's strict mode accepts a schema: every object closed, every property required.
pub(crate) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let closed = match map.get("properties").and_then(Value::as_object) {
                Some(properties) => {
                    let required = map.get("required").and_then(Value::as_array);
                    map.get("additionalProperties") == Some(&Value::Bool(false))
                        && required.is_some_and(|r| {
                            properties.keys().all(|k| r.iter().any(|name| name.as_str() == Some(k)))
                        })
                }
                None => map.get("type") != Some(&json!("object")) || map.contains_key("$ref"),
            };
            closed && !map.contains_key("oneOf") && map.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
