//! OpenAI Responses.

use super::{Event, Reply, pieces};
use crate::model_server::script::{Stop, Usage};
use crate::model_server::tools::{Part, ToolShape};
use serde_json::{Value, json};

/// 2026-01-01, so that answers are reproducible.
const CREATED: u64 = 1_767_225_600;

fn usage(usage: &Usage) -> Value {
    let input = usage.input + usage.cache_read;
    json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": input + usage.output})
}

fn response(reply: &Reply, status: &str, output: Vec<Value>, usage: Value) -> Value {
    let incomplete =
        if status == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
    json!({"id": reply.id, "object": "response", "created_at": CREATED, "status": status, "error": null,
        "incomplete_details": incomplete, "instructions": null, "max_output_tokens": null, "model": reply.model,
        "output": output, "parallel_tool_calls": true, "previous_response_id": null, "reasoning": {"effort": null, "summary": null},
        "store": false, "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
        "top_p": 1.0, "truncation": "disabled", "usage": usage, "metadata": {}})
}

fn content(reply: &Reply, text: &str) -> Value {
    if reply.stop == Stop::Refusal {
        json!({"type": "refusal", "refusal": text})
    } else {
        json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
    }
}

fn item(reply: &Reply, index: usize, part: &Part, whole: bool) -> Value {
    let status = if whole { "completed" } else { "in_progress" };
    match part {
        Part::Text(text) => {
            let content = if whole { vec![content(reply, text)] } else { Vec::new() };
            json!({"id": format!("msg_{}_{index}", reply.id), "type": "message", "status": status,
                "role": "assistant", "content": content})
        }
        Part::Call(call) if call.shape == ToolShape::Custom => {
            let input = call.input.as_str().unwrap_or_default();
            json!({"id": format!("ctc_{}_{index}", reply.id), "type": "custom_tool_call", "status": status,
                "call_id": call.id, "name": call.name, "input": if whole { input } else { "" }})
        }
        Part::Call(call) => {
            let arguments = if whole { call.input.to_string() } else { String::new() };
            json!({"id": format!("fc_{}_{index}", reply.id), "type": "function_call", "status": status,
                "call_id": call.id, "name": call.name, "arguments": arguments})
        }
    }
}

fn status(reply: &Reply) -> &'static str {
    if reply.stop == Stop::MaxTokens { "incomplete" } else { "completed" }
}

pub(super) fn plain(reply: &Reply) -> Value {
    let output = reply.parts.iter().enumerate().map(|(i, part)| item(reply, i, part, true));
    response(reply, status(reply), output.collect(), usage(&reply.usage))
}

struct Sequence {
    events: Vec<Event>,
}

impl Sequence {
    fn push(&mut self, name: &'static str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.events.len());
        self.events.push(Event::named(name, &data));
    }
}

pub(super) fn events(reply: &Reply) -> Vec<Event> {
    let begun = response(reply, "in_progress", Vec::new(), Value::Null);
    let mut sequence = Sequence { events: Vec::new() };
    sequence.push("response.created", json!({"response": begun}));
    sequence.push("response.in_progress", json!({"response": begun}));
    for (index, part) in reply.parts.iter().enumerate() {
        let begun = item(reply, index, part, false);
        sequence.push("response.output_item.added", json!({"output_index": index, "item": begun}));
        let id = begun["id"].clone();
        match part {
            Part::Text(text) => say(&mut sequence, reply, index, &id, text),
            Part::Call(call) if call.shape == ToolShape::Custom => {
                let input = call.input.as_str().unwrap_or_default();
                for piece in pieces(input) {
                    let delta = json!({"item_id": id, "output_index": index, "delta": piece});
                    sequence.push("response.custom_tool_call_input.delta", delta);
                }
                let done = json!({"item_id": id, "output_index": index, "input": input});
                sequence.push("response.custom_tool_call_input.done", done);
            }
            Part::Call(call) => {
                let arguments = call.input.to_string();
                for piece in pieces(&arguments) {
                    let delta = json!({"item_id": id, "output_index": index, "delta": piece});
                    sequence.push("response.function_call_arguments.delta", delta);
                }
                let done = json!({"item_id": id, "output_index": index, "arguments": arguments});
                sequence.push("response.function_call_arguments.done", done);
            }
        }
        let whole = item(reply, index, part, true);
        sequence.push("response.output_item.done", json!({"output_index": index, "item": whole}));
    }
    let last = if status(reply) == "incomplete" { "response.incomplete" } else { "response.completed" };
    sequence.push(last, json!({"response": plain(reply)}));
    sequence.events
}

fn say(sequence: &mut Sequence, reply: &Reply, index: usize, id: &Value, text: &str) {
    let at = |mut data: Value| {
        data["item_id"] = id.clone();
        data["output_index"] = json!(index);
        data["content_index"] = json!(0);
        data
    };
    sequence.push("response.content_part.added", at(json!({"part": content(reply, "")})));
    let refused = reply.stop == Stop::Refusal;
    for piece in pieces(text) {
        let name = if refused { "response.refusal.delta" } else { "response.output_text.delta" };
        sequence.push(name, at(json!({"delta": piece})));
    }
    if refused {
        sequence.push("response.refusal.done", at(json!({"refusal": text})));
    } else {
        sequence.push("response.output_text.done", at(json!({"text": text})));
    }
    sequence.push("response.content_part.done", at(json!({"part": content(reply, text)})));
}

pub(super) fn failed(reply: &Reply, error: &Value) -> Event {
    let mut response = response(reply, "failed", Vec::new(), Value::Null);
    let code = error["error"]["code"].as_str().unwrap_or("server_error");
    response["error"] = json!({"code": code, "message": error["error"]["message"]});
    Event::named(
        "response.failed",
        &json!({"type": "response.failed", "sequence_number": 1, "response": response}),
    )
}
