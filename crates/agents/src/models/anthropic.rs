//! Anthropic Messages (`/v1/messages`).

use super::sse::SseEvent;
use super::wire::{
    Outgoing, StreamReader, WireFault, WireReply, WireRequest, arguments, as_object, json_of, number, string,
};
use ralph_loop_domain::model::{Image, Message, ReplyPart, StopReason, ToolCall, UserPart};
use ralph_loop_protocol::money::Tokens;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const WIRE: &str = "anthropic";
/// Required by this API; every served model supports it.
const MAX_TOKENS: u64 = 16_000;
/// Most cache marks in one request.
const BREAKPOINTS: usize = 4;

pub(crate) fn outgoing(asked: &WireRequest<'_>) -> Outgoing {
    let request = asked.request;
    let mut system: Vec<Value> = Vec::new();
    let mut marks: Vec<Mark> = Vec::new();
    for part in request.system.iter().filter(|p| !p.text.is_empty()) {
        if part.cache {
            marks.push(Mark::System(system.len()));
        }
        system.push(json!({ "type": "text", "text": part.text }));
    }
    let mut messages: Vec<Value> = Vec::new();
    for message in &request.messages {
        add_message(message, &mut messages, &mut marks);
    }
    // The next call rereads a continuing conversation, so its newest end is worth a cache mark.
    let goes_on = request.messages.iter().any(|m| matches!(m, Message::Assistant { .. }));
    if (goes_on || !request.tools.is_empty())
        && let Some(last) = messages.len().checked_sub(1)
        // Thinking can't carry a mark, and only our turn can be last.
        && string(&messages[last], "role") == Some("user")
        && let Some(block) = blocks(&messages[last]).len().checked_sub(1)
    {
        marks.push(Mark::Message(last, block));
    }
    for mark in chosen(marks) {
        let block = match mark {
            Mark::System(at) => system.get_mut(at),
            Mark::Message(message, block) => {
                messages.get_mut(message).and_then(|m| m.get_mut("content")).and_then(|c| c.get_mut(block))
            }
        };
        if let Some(block) = block {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
    }
    let mut body = json!({
        "model": asked.route.model,
        "max_tokens": asked.max_tokens().unwrap_or(MAX_TOKENS),
        "messages": messages,
    });
    if !system.is_empty() {
        body["system"] = Value::Array(system);
    }
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|t| json!({ "name": t.name, "description": t.description, "input_schema": t.input_schema }))
            .collect();
    }
    if let Some(temperature) = asked.profile.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(schema) = asked.schema() {
        body["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
    }
    if request.stream {
        body["stream"] = json!(true);
    }
    Outgoing { path: "/v1/messages".into(), body }
}

/// Where a cache mark may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    System(usize),
    Message(usize, usize),
}

/// At most [`BREAKPOINTS`] marks: the end of the system prompt, which every call shares, and the newest others.
fn chosen(mut marks: Vec<Mark>) -> Vec<Mark> {
    marks.dedup();
    let system = marks.iter().rev().find(|m| matches!(m, Mark::System(_))).copied();
    let mut kept: Vec<Mark> = system.into_iter().collect();
    for mark in marks.into_iter().rev() {
        if kept.len() < BREAKPOINTS && !kept.contains(&mark) {
            kept.push(mark);
        }
    }
    kept
}

fn blocks(message: &Value) -> &[Value] {
    message.get("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn add_message(message: &Message, messages: &mut Vec<Value>, marks: &mut Vec<Mark>) {
    let (role, content, marked) = match message {
        Message::User { parts } => {
            let (content, marked) = user_content(parts);
            ("user", content, marked)
        }
        Message::Assistant { parts } => ("assistant", parts.iter().filter_map(reply_block).collect(), vec![]),
        Message::ToolResults { results } => {
            let content = results.iter().map(|r| {
                let mut content: Vec<Value> = Vec::new();
                if !r.text.is_empty() {
                    content.push(json!({ "type": "text", "text": r.text }));
                }
                content.extend(r.images.iter().map(image));
                json!({ "type": "tool_result", "tool_use_id": r.id, "content": content, "is_error": r.is_error })
            });
            ("user", content.collect::<Vec<_>>(), vec![])
        }
    };
    if content.is_empty() {
        return;
    }
    // Turns must alternate: consecutive ones of the same role are joined.
    let joins = messages.last().is_some_and(|last| string(last, "role") == Some(role));
    if !joins {
        messages.push(json!({ "role": role, "content": [] }));
    }
    let at = messages.len() - 1;
    if let Some(Value::Array(list)) = messages[at].get_mut("content") {
        marks.extend(marked.into_iter().map(|block| Mark::Message(at, list.len() + block)));
        list.extend(content);
    }
}

fn user_content(parts: &[UserPart]) -> (Vec<Value>, Vec<usize>) {
    let mut content = Vec::new();
    let mut marked = Vec::new();
    for part in parts {
        match part {
            UserPart::Text(part) if part.text.is_empty() => {}
            UserPart::Text(part) => {
                if part.cache {
                    marked.push(content.len());
                }
                content.push(json!({ "type": "text", "text": part.text }));
            }
            UserPart::Image(picture) => content.push(image(picture)),
        }
    }
    (content, marked)
}

fn reply_block(part: &ReplyPart) -> Option<Value> {
    match part {
        // Empty or blank text blocks are refused.
        ReplyPart::Text { text } => {
            (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
        }
        ReplyPart::ToolCall(call) => Some(json!({
            "type": "tool_use", "id": call.id, "name": call.name, "input": as_object(&call.input),
        })),
        ReplyPart::Opaque { wire, value } => (wire == WIRE).then(|| value.clone()),
    }
}

fn image(image: &Image) -> Value {
    json!({
        "type": "image",
        "source": { "type": "base64", "media_type": image.media_type, "data": image.base64 },
    })
}

pub(crate) fn whole(body: &Value) -> Result<WireReply, WireFault> {
    let Some(content) = body.get("content").and_then(Value::as_array) else {
        return Err(WireFault::Garbled("the answer has no `content`".into()));
    };
    let parts: Vec<ReplyPart> = content.iter().filter_map(reply_part).collect();
    Ok(WireReply {
        stop: stop(string(body, "stop_reason")),
        tokens: body.get("usage").map(tokens),
        cost: None,
        model: string(body, "model").map(str::to_owned),
        parts,
    })
}

fn reply_part(block: &Value) -> Option<ReplyPart> {
    match string(block, "type") {
        Some("text") => {
            let text = string(block, "text").unwrap_or_default();
            (!text.is_empty()).then(|| ReplyPart::Text { text: text.to_owned() })
        }
        Some("tool_use") => Some(ReplyPart::ToolCall(ToolCall {
            id: string(block, "id").unwrap_or_default().to_owned(),
            name: string(block, "name").unwrap_or_default().to_owned(),
            input: block.get("input").cloned().unwrap_or_else(|| json!({})),
        })),
        _ => Some(ReplyPart::Opaque { wire: WIRE.into(), value: block.clone() }),
    }
}

fn stop(reason: Option<&str>) -> StopReason {
    match reason {
        Some("end_turn" | "stop_sequence") => StopReason::EndTurn,
        Some("tool_use") => StopReason::ToolUse,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
        Some("refusal") => StopReason::Refusal,
        _ => StopReason::Other,
    }
}

fn tokens(usage: &Value) -> Tokens {
    let of = |key: &str| number(usage, &[key]).unwrap_or(0);
    Tokens {
        input: of("input_tokens"),
        output: of("output_tokens"),
        cached: of("cache_read_input_tokens"),
        cache_write: of("cache_creation_input_tokens"),
    }
}

#[derive(Debug, Default)]
pub(crate) struct Reader {
    blocks: BTreeMap<u64, Value>,
    /// Arguments of tool calls, which come as pieces of JSON.
    partial: BTreeMap<u64, String>,
    usage: Map<String, Value>,
    model: Option<String>,
    stop: Option<String>,
    ended: bool,
}

impl Reader {
    fn delta(&mut self, index: u64, delta: &Value, tell: &mut dyn FnMut(&str)) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        let mut append = |key: &str, piece: &str| {
            if let Some(Value::String(text)) = block.get_mut(key) {
                text.push_str(piece);
            } else if block.is_object() {
                block[key] = json!(piece);
            }
        };
        match string(delta, "type") {
            Some("text_delta") => {
                let piece = string(delta, "text").unwrap_or_default();
                append("text", piece);
                tell(piece);
            }
            Some("input_json_delta") => {
                let piece = string(delta, "partial_json").unwrap_or_default();
                self.partial.entry(index).or_default().push_str(piece);
            }
            Some("thinking_delta") => append("thinking", string(delta, "thinking").unwrap_or_default()),
            Some("signature_delta") => append("signature", string(delta, "signature").unwrap_or_default()),
            _ => {}
        }
    }

    fn count(&mut self, usage: Option<&Value>) {
        // Later counts replace earlier ones; missing ones stay.
        for (key, value) in usage.and_then(Value::as_object).into_iter().flatten() {
            if !value.is_null() {
                self.usage.insert(key.clone(), value.clone());
            }
        }
    }
}

impl StreamReader for Reader {
    fn event(&mut self, event: &SseEvent, tell: &mut dyn FnMut(&str)) -> Result<(), WireFault> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let value = json_of(event)?;
        let index = number(&value, &["index"]).unwrap_or(0);
        match string(&value, "type").unwrap_or(&event.name) {
            "message_start" => {
                let message = value.get("message").unwrap_or(&Value::Null);
                self.model = string(message, "model").map(str::to_owned);
                self.count(message.get("usage"));
            }
            "content_block_start" => {
                if let Some(block) = value.get("content_block").filter(|b| b.is_object()) {
                    if let Some(text) = string(block, "text").filter(|t| !t.is_empty()) {
                        tell(text);
                    }
                    self.blocks.insert(index, block.clone());
                }
            }
            "content_block_delta" => self.delta(index, value.get("delta").unwrap_or(&Value::Null), tell),
            "message_delta" => {
                let reason = value.get("delta").and_then(|d| string(d, "stop_reason"));
                self.stop = reason.map(str::to_owned).or(self.stop.take());
                self.count(value.get("usage"));
            }
            "message_stop" => self.ended = true,
            "error" => return Err(WireFault::Said(value)),
            _ => {}
        }
        Ok(())
    }

    fn complete(&self) -> bool {
        self.ended
    }

    fn finish(self: Box<Self>) -> Result<WireReply, WireFault> {
        if !self.ended && self.stop.is_none() {
            return Err(WireFault::Cut);
        }
        let Self { mut blocks, partial, usage, model, stop: reason, .. } = *self;
        for (index, text) in partial {
            if let Some(block) = blocks.get_mut(&index)
                && !text.is_empty()
            {
                block["input"] = arguments(&text);
            }
        }
        let tokens = (!usage.is_empty()).then(|| tokens(&Value::Object(usage)));
        Ok(WireReply {
            parts: blocks.values().filter_map(reply_part).collect(),
            stop: stop(reason.as_deref()),
            tokens,
            cost: None,
            model,
        })
    }
}
