//! Gemini `generateContent`.

use super::{Event, Reply, pieces};
use crate::model_server::script::{Stop, Usage};
use crate::model_server::tools::Part;
use serde_json::{Value, json};

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::MaxTokens => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
        Stop::Natural => "STOP",
    }
}

fn usage(usage: &Usage) -> Value {
    let prompt = usage.input + usage.cache_read;
    json!({"promptTokenCount": prompt, "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output, "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": prompt + usage.output + usage.reasoning})
}

fn call(part: &Part) -> Option<Value> {
    match part {
        Part::Call(call) => {
            Some(json!({"functionCall": {"id": call.id, "name": call.name, "args": call.input}}))
        }
        Part::Text(_) => None,
    }
}

fn chunk(reply: &Reply, parts: Vec<Value>, finish: Option<&str>, output: u64) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({"candidates": [candidate], "usageMetadata": usage(&Usage { output, ..reply.usage }),
        "modelVersion": reply.model, "responseId": reply.id})
}

pub(super) fn plain(reply: &Reply) -> Value {
    let parts = reply.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(json!({"text": text})),
        part => call(part),
    });
    chunk(reply, parts.collect(), Some(finish_reason(reply)), reply.usage.output)
}

pub(super) fn events(reply: &Reply) -> Vec<Event> {
    let mut groups: Vec<Value> = Vec::new();
    for part in &reply.parts {
        match part {
            Part::Text(text) => groups.extend(pieces(text).iter().map(|p| json!({"text": p}))),
            part => groups.extend(call(part)),
        }
    }
    let last = groups.len().saturating_sub(1);
    let mut events: Vec<Event> = Vec::new();
    for (index, part) in groups.into_iter().enumerate() {
        let (finish, output) =
            if index == last { (Some(finish_reason(reply)), reply.usage.output) } else { (None, 1) };
        events.push(Event::plain(&chunk(reply, vec![part], finish, output)));
    }
    if events.is_empty() {
        events.push(Event::plain(&chunk(reply, Vec::new(), Some(finish_reason(reply)), reply.usage.output)));
    }
    events
}

pub(super) fn begun(reply: &Reply) -> Event {
    Event::plain(&chunk(reply, vec![json!({"text": "I "})], None, 1))
}
