//! Anthropic Messages.

use super::{Event, Reply, pieces};
use crate::model_server::script::{Stop, Usage};
use crate::model_server::tools::Part;
use serde_json::{Value, json};

fn stop_reason(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Natural if reply.calls() => "tool_use",
        Stop::Natural => "end_turn",
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output,
        "service_tier": "standard",
    })
}

fn block(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Call(call) => {
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input})
        }
    }
}

fn message(reply: &Reply, content: Vec<Value>, stop: Option<&str>, usage: Value) -> Value {
    json!({"id": reply.id, "type": "message", "role": "assistant", "model": reply.model, "content": content,
        "stop_reason": stop, "stop_sequence": null, "usage": usage})
}

pub(super) fn plain(reply: &Reply) -> Value {
    let content = reply.parts.iter().map(block).collect();
    message(reply, content, Some(stop_reason(reply)), usage(&reply.usage))
}

pub(super) fn events(reply: &Reply) -> Vec<Event> {
    let first = Usage { output: 1, ..reply.usage };
    let start = json!({"type": "message_start", "message": message(reply, Vec::new(), None, usage(&first))});
    let mut events =
        vec![Event::named("message_start", &start), Event::named("ping", &json!({"type": "ping"}))];
    for (index, part) in reply.parts.iter().enumerate() {
        let (empty, deltas): (Value, Vec<Value>) = match part {
            Part::Text(text) => (
                json!({"type": "text", "text": ""}),
                pieces(text).iter().map(|p| json!({"type": "text_delta", "text": p})).collect(),
            ),
            Part::Call(call) => (
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}),
                pieces(&call.input.to_string())
                    .iter()
                    .map(|p| json!({"type": "input_json_delta", "partial_json": p}))
                    .collect(),
            ),
        };
        let start = json!({"type": "content_block_start", "index": index, "content_block": empty});
        events.push(Event::named("content_block_start", &start));
        for delta in deltas {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.push(Event::named("content_block_delta", &delta));
        }
        let stop = json!({"type": "content_block_stop", "index": index});
        events.push(Event::named("content_block_stop", &stop));
    }
    let delta = json!({"type": "message_delta",
        "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null}, "usage": usage(&reply.usage)});
    events.push(Event::named("message_delta", &delta));
    events.push(Event::named("message_stop", &json!({"type": "message_stop"})));
    events
}
