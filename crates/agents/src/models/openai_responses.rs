//! OpenAI Responses (`/responses`). Nothing is stored at the provider; reasoning is sent back and forth encrypted.

use super::sse::SseEvent;
use super::wire::{
    Outgoing, StreamReader, WireFault, WireReply, WireRequest, arguments, as_arguments, is_strict, json_of,
    number, result_text, string,
};
use ralph_loop_domain::model::{Image, Message, ReplyPart, StopReason, ToolCall, UserPart};
use ralph_loop_protocol::money::{Tokens, Usd};
use serde_json::{Value, json};

const WIRE: &str = "openai-responses";

pub(crate) fn outgoing(asked: &WireRequest<'_>) -> Outgoing {
    let request = asked.request;
    let mut input = Vec::new();
    for message in &request.messages {
        add_message(message, &mut input);
    }
    let mut body = json!({ "model": asked.route.model, "input": input, "store": false });
    // Without storage, reasoning survives between calls only if it is sent back; older models refuse to return it.
    if asked.route.reasons() {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if !asked.system().is_empty() {
        body["instructions"] = json!(asked.system());
    }
    if let Some(most) = asked.max_tokens() {
        body["max_output_tokens"] = json!(most);
    }
    if let Some(temperature) = asked.profile.temperature {
        body["temperature"] = json!(temperature);
    }
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|t| {
                json!({
                    "type": "function", "name": t.name, "description": t.description,
                    "parameters": t.input_schema, "strict": false,
                })
            })
            .collect();
    }
    if let Some(schema) = asked.schema() {
        body["text"] = json!({ "format": {
            "type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema),
        } });
    }
    if request.stream {
        body["stream"] = json!(true);
    }
    Outgoing { path: "/responses".into(), body }
}

fn add_message(message: &Message, input: &mut Vec<Value>) {
    match message {
        Message::User { parts } => {
            let content: Vec<Value> = parts
                .iter()
                .map(|part| match part {
                    UserPart::Text(part) => json!({ "type": "input_text", "text": part.text }),
                    UserPart::Image(image) => image_part(image),
                })
                .collect();
            input.push(json!({ "role": "user", "content": content }));
        }
        Message::Assistant { parts } => input.extend(parts.iter().filter_map(|part| match part {
            ReplyPart::Text { text } => Some(json!({
                "role": "assistant", "content": [{ "type": "output_text", "text": text }],
            })),
            ReplyPart::ToolCall(call) => Some(json!({
                "type": "function_call", "call_id": call.id, "name": call.name, "arguments": as_arguments(call),
            })),
            ReplyPart::Opaque { wire, value } => (wire == WIRE).then(|| value.clone()),
        })),
        Message::ToolResults { results } => input.extend(results.iter().map(|result| {
            let text = result_text(result);
            let output = if result.images.is_empty() {
                Value::String(text)
            } else {
                let words = json!({ "type": "input_text", "text": text });
                std::iter::once(words).chain(result.images.iter().map(image_part)).collect()
            };
            json!({ "type": "function_call_output", "call_id": result.id, "output": output })
        })),
    }
}

fn image_part(image: &Image) -> Value {
    let url = format!("data:{};base64,{}", image.media_type, image.base64);
    json!({ "type": "input_image", "image_url": url })
}

pub(crate) fn whole(body: &Value) -> Result<WireReply, WireFault> {
    match string(body, "status") {
        Some("failed") => return Err(WireFault::Said(body.clone())),
        Some("in_progress" | "queued") => return Err(WireFault::Cut),
        _ => {}
    }
    let Some(output) = body.get("output").and_then(Value::as_array) else {
        return Err(WireFault::Garbled("the answer has no `output`".into()));
    };
    let mut parts = Vec::new();
    let mut refused = false;
    for item in output {
        match string(item, "type") {
            Some("message") => {
                for part in item.get("content").and_then(Value::as_array).into_iter().flatten() {
                    let refusal = string(part, "refusal");
                    refused |= refusal.is_some();
                    let text = string(part, "text").or(refusal).unwrap_or_default();
                    if !text.is_empty() {
                        parts.push(ReplyPart::Text { text: text.to_owned() });
                    }
                }
            }
            Some("function_call") => parts.push(ReplyPart::ToolCall(ToolCall {
                id: string(item, "call_id").or_else(|| string(item, "id")).unwrap_or_default().to_owned(),
                name: string(item, "name").unwrap_or_default().to_owned(),
                input: arguments(string(item, "arguments").unwrap_or_default()),
            })),
            _ => parts.push(ReplyPart::Opaque { wire: WIRE.into(), value: item.clone() }),
        }
    }
    let called = parts.iter().any(|p| matches!(p, ReplyPart::ToolCall(_)));
    let cut = body.get("incomplete_details").and_then(|d| string(d, "reason"));
    let stop = match cut {
        _ if refused => StopReason::Refusal,
        Some("content_filter") => StopReason::Refusal,
        Some("max_output_tokens") => StopReason::MaxTokens,
        Some(_) => StopReason::Other,
        None if called => StopReason::ToolUse,
        None => StopReason::EndTurn,
    };
    let usage = body.get("usage").filter(|u| u.is_object());
    let cost = usage.and_then(|u| u.get("cost")).and_then(Value::as_f64);
    Ok(WireReply {
        parts,
        stop,
        tokens: usage.map(tokens),
        cost: cost.filter(|c| *c > 0.0).map(Usd::from_dollars),
        model: string(body, "model").map(str::to_owned),
    })
}

fn tokens(usage: &Value) -> Tokens {
    let of = |path: &[&str]| number(usage, path).unwrap_or(0);
    let cached = of(&["input_tokens_details", "cached_tokens"]);
    let cache_write = of(&["input_tokens_details", "cache_write_tokens"])
        .max(of(&["input_tokens_details", "cache_creation_tokens"]));
    Tokens {
        input: of(&["input_tokens"]).saturating_sub(cached).saturating_sub(cache_write),
        output: of(&["output_tokens"]),
        cached,
        cache_write,
    }
}

/// Reads a streamed answer. Its last event repeats the whole response.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Finished items, for servers whose last event leaves them out.
    items: Vec<Value>,
    response: Option<Value>,
}

impl StreamReader for Reader {
    fn event(&mut self, event: &SseEvent, tell: &mut dyn FnMut(&str)) -> Result<(), WireFault> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let mut value = json_of(event)?;
        let kind = string(&value, "type").unwrap_or(&event.name).to_owned();
        match kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                tell(string(&value, "delta").unwrap_or_default());
            }
            "response.output_item.done" => {
                if let Some(item) = value.get_mut("item") {
                    self.items.push(item.take());
                }
            }
            "response.completed" | "response.incomplete" => {
                self.response = value.get_mut("response").map(Value::take);
            }
            "response.failed" | "error" => {
                // The error is in the response, or is the event itself.
                let said = value.get_mut("response").map(Value::take).unwrap_or(value);
                return Err(WireFault::Said(said));
            }
            _ => {}
        }
        Ok(())
    }

    fn complete(&self) -> bool {
        self.response.is_some()
    }

    fn finish(self: Box<Self>) -> Result<WireReply, WireFault> {
        let mut response = self.response.ok_or(WireFault::Cut)?;
        if !response.is_object() {
            return Err(WireFault::Garbled("the last event has no response".into()));
        }
        let bare = response.get("output").and_then(Value::as_array).is_none_or(Vec::is_empty);
        if bare {
            response["output"] = Value::Array(self.items);
        }
        whole(&response)
    }
}
