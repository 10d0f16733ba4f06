//! What the wires have in common: one request out, one answer back, whole or as a stream of events.

use super::sse::SseEvent;
use super::{anthropic, gemini, openai_chat, openai_responses};
use crate::models::provider::Route;
use ralph_loop_domain::model::{ModelRequest, ReplyPart, StopReason, ToolCall};
use ralph_loop_protocol::money::{Tokens, Usd};
use ralph_loop_task::config::{Profile, Wire};
use serde_json::{Value, json};

/// What is sent: the path below the server's address and the body.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// Path, with its query where it has one.
    pub path: String,
    /// The body, as JSON.
    pub body: Value,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WireReply {
    pub parts: Vec<ReplyPart>,
    pub stop: StopReason,
    pub tokens: Option<Tokens>,
    pub cost: Option<Usd>,
    pub model: Option<String>,
}

/// Why an answer that began well is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WireFault {
    /// The provider put an error into it.
    Said(Value),
    /// It cannot be understood.
    Garbled(String),
    /// It ended before its end.
    Cut,
}

/// Reads an answer that comes as a stream.
pub(crate) trait StreamReader {
    /// One event; pieces of text go to `tell` as they come.
    fn event(&mut self, event: &SseEvent, tell: &mut dyn FnMut(&str)) -> Result<(), WireFault>;
    /// Whether the answer is complete, so that nothing after it matters.
    fn complete(&self) -> bool;
    /// The answer.
    fn finish(self: Box<Self>) -> Result<WireReply, WireFault>;
}

/// What a request needs beside itself.
pub(crate) struct Asked<'a> {
    pub profile: &'a Profile,
    pub route: &'a Route,
    pub request: &'a ModelRequest,
    /// Whether the schema goes along; left out after a provider refused it.
    pub with_schema: bool,
}

impl Asked<'_> {
    /// Most tokens of the answer: the profile's, unless the request wants less.
    pub fn max_tokens(&self) -> Option<u64> {
        match (self.profile.max_output_tokens, self.request.max_output_tokens) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    /// The schema, where one is wanted.
    pub fn schema(&self) -> Option<&Value> {
        self.request.json_schema.as_ref().filter(|_| self.with_schema)
    }
    /// The system prompt in one piece.
    pub fn system(&self) -> String {
        let parts: Vec<&str> =
            self.request.system.iter().map(|p| p.text.as_str()).filter(|t| !t.is_empty()).collect();
        parts.join("\n\n")
    }
}

/// A request in the words of a wire.
pub(crate) fn outgoing(asked: &Asked<'_>) -> Outgoing {
    match asked.route.wire {
        Wire::Anthropic => anthropic::outgoing(asked),
        Wire::OpenaiChat => openai_chat::outgoing(asked),
        Wire::OpenaiResponses => openai_responses::outgoing(asked),
        Wire::Gemini => gemini::outgoing(asked),
    }
}

/// A whole answer. `turn` makes ids of calls unique where the wire has none.
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

/// A reader of a streamed answer.
pub(crate) fn reader(wire: Wire, turn: usize) -> Box<dyn StreamReader> {
    match wire {
        Wire::Anthropic => Box::<anthropic::Reader>::default(),
        Wire::OpenaiChat => Box::<openai_chat::Reader>::default(),
        Wire::OpenaiResponses => Box::<openai_responses::Reader>::default(),
        Wire::Gemini => Box::new(gemini::Reader::new(turn)),
    }
}

/// The JSON of an event.
pub(crate) fn json_of(event: &SseEvent) -> Result<Value, WireFault> {
    serde_json::from_str(&event.data).map_err(|e| {
        let seen = ralph_loop_protocol::text::one_line(&event.data, 120);
        WireFault::Garbled(format!("an event of the stream is not JSON ({e}): {seen}"))
    })
}

/// Why a stream was cut: an error that stands in it as bare JSON, outside every event.
pub(crate) fn stray_error(text: &str) -> WireFault {
    let text = text.trim().trim_start_matches([',', '[']).trim_end_matches(']');
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.get("error").is_some() => WireFault::Said(value),
        _ => WireFault::Cut,
    }
}

/// Arguments of a tool call as the model wrote them; a string where they cannot be read.
pub(crate) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Arguments as they go back: always an object, because wires refuse others.
pub(crate) fn as_object(input: &Value) -> Value {
    if input.is_object() { input.clone() } else { json!({ "unreadable_arguments": input }) }
}

/// Arguments as they go back on wires that carry them as text.
pub(crate) fn as_arguments(call: &ToolCall) -> String {
    as_object(&call.input).to_string()
}

/// A number at a path of keys.
pub(crate) fn number(value: &Value, path: &[&str]) -> Option<u64> {
    let found = path.iter().try_fold(value, |v, key| v.get(key))?;
    found.as_u64().or_else(|| found.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64))
}

/// A text at a key.
pub(crate) fn string<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The text of a tool's answer on wires that cannot mark a failure.
pub(crate) fn result_text(result: &ralph_loop_domain::model::ToolResult) -> String {
    if result.is_error { format!("The tool failed:\n{}", result.text) } else { result.text.clone() }
}

/// Whether OpenAI's strict mode takes a schema: every object closed, every property required.
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
