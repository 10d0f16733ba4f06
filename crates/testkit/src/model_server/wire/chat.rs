//! OpenAI Chat Completions, which many other vendors also use.

use super::{Event, Name, Reply, pieces};
use crate::model_server::script::{Stop, Usage};
use crate::model_server::tools::{Part, ToolCall, ToolShape};
use serde_json::{Value, json};

/// 2026-01-01, so that answers are reproducible.
const CREATED: u64 = 1_767_225_600;

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
        Stop::Natural if reply.calls() => "tool_calls",
        Stop::Natural => "stop",
    }
}

fn usage(usage: &Usage) -> Value {
    let input = usage.input + usage.cache_read;
    json!({"prompt_tokens": input, "completion_tokens": usage.output, "total_tokens": input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0}})
}

fn arguments(call: &ToolCall) -> String {
    match (&call.input, call.shape) {
        (Value::String(text), ToolShape::Custom) => text.clone(),
        (input, _) => input.to_string(),
    }
}

fn calls(reply: &Reply) -> Vec<&ToolCall> {
    let calls = reply.parts.iter().filter_map(|part| match part {
        Part::Call(call) => Some(call),
        Part::Text(_) => None,
    });
    calls.collect()
}

pub(super) fn plain(reply: &Reply) -> Value {
    let text = reply.text();
    let refused = reply.stop == Stop::Refusal;
    let mut message = json!({"role": "assistant", "content": null, "refusal": null});
    if refused {
        message["refusal"] = json!(text);
    } else if !text.is_empty() {
        message["content"] = json!(text);
    }
    let called: Vec<Value> = calls(reply)
        .into_iter()
        .map(|call| {
            json!({"id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)}})
        })
        .collect();
    if !called.is_empty() {
        message["tool_calls"] = json!(called);
    }
    json!({"id": reply.id, "object": "chat.completion", "created": CREATED, "model": reply.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply)}],
        "usage": usage(&reply.usage), "service_tier": "default", "system_fingerprint": "fp_scripted"})
}

pub(super) fn events(reply: &Reply, with_usage: bool) -> Vec<Event> {
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({"id": reply.id, "object": "chat.completion.chunk", "created": CREATED,
            "model": reply.model, "system_fingerprint": "fp_scripted", "choices": choices});
        if with_usage {
            chunk["usage"] = usage.unwrap_or(Value::Null);
        }
        Event::plain(&chunk)
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), None);
    let said = if reply.stop == Stop::Refusal { "refusal" } else { "content" };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    for piece in pieces(&reply.text()) {
        events.push(delta(json!({said: piece})));
    }
    for (index, call) in calls(reply).into_iter().enumerate() {
        events.push(delta(json!({"tool_calls": [{"index": index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": ""}}]})));
        for piece in pieces(&arguments(call)) {
            events.push(delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})));
        }
    }
    let last = json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(reply)}]);
    events.push(chunk(last, None));
    if with_usage {
        events.push(chunk(json!([]), Some(usage(&reply.usage))));
    }
    events.push(Event { name: Name::None, data: "[DONE]".into() });
    events
}
