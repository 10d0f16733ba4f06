//! OpenAI Chat Completions (`/chat/completions`) and compatible APIs.

use super::sse::SseEvent;
use super::wire::{
    Outgoing, StreamReader, WireFault, WireReply, WireRequest, arguments, as_arguments, is_strict, json_of,
    number, result_text, string,
};
use ralph_loop_domain::model::{
    Image, Message, ReplyPart, StopReason, TextPart, ToolCall, ToolResult, UserPart,
};
use ralph_loop_protocol::money::{Tokens, Usd};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const WIRE: &str = "openai-chat";
/// Provider additions to a message that must be sent back: reasoning of open models, Anthropic's through a proxy.
const CARRIED: &[&str] = &["reasoning_content", "reasoning_details", "thinking_blocks"];

pub(crate) fn outgoing(asked: &WireRequest<'_>) -> Outgoing {
    let request = asked.request;
    // Proxies to Anthropic accept its cache marks in message parts; all others cache by prefix.
    let marks = asked.route.provider.takes_cache_marks && asked.route.model.contains("claude");
    let mut messages = Vec::new();
    if !asked.system().is_empty() {
        let content = if marks && request.system.iter().any(|p| p.cache) {
            request.system.iter().filter(|p| !p.text.is_empty()).map(|p| text_part(p, true)).collect()
        } else {
            Value::String(asked.system())
        };
        messages.push(json!({ "role": "system", "content": content }));
    }
    for message in &request.messages {
        add_message(message, marks, &mut messages);
    }
    let mut body = json!({ "model": asked.route.model, "messages": messages });
    if let Some(most) = asked.max_tokens() {
        // OpenAI's newer models refuse the old name, and other servers don't know the new one.
        let word = if asked.route.is_openai_itself() { "max_completion_tokens" } else { "max_tokens" };
        body[word] = json!(most);
    }
    if let Some(temperature) = asked.profile.temperature {
        body["temperature"] = json!(temperature);
    }
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|t| {
                let function =
                    json!({ "name": t.name, "description": t.description, "parameters": t.input_schema });
                json!({ "type": "function", "function": function })
            })
            .collect();
    }
    if let Some(schema) = asked.schema() {
        body["response_format"] = if asked.route.provider.json_schema {
            let format = json!({ "name": "answer", "schema": schema, "strict": is_strict(schema) });
            json!({ "type": "json_schema", "json_schema": format })
        } else {
            json!({ "type": "json_object" })
        };
    }
    if request.stream {
        body["stream"] = json!(true);
        body["stream_options"] = json!({ "include_usage": true });
    }
    Outgoing { path: "/chat/completions".into(), body }
}

fn text_part(part: &TextPart, marks: bool) -> Value {
    let mut value = json!({ "type": "text", "text": part.text });
    if marks && part.cache {
        value["cache_control"] = json!({ "type": "ephemeral" });
    }
    value
}

fn add_message(message: &Message, marks: bool, messages: &mut Vec<Value>) {
    match message {
        Message::User { parts } => {
            let content = match parts.as_slice() {
                [UserPart::Text(part)] if !(marks && part.cache) => Value::String(part.text.clone()),
                parts => parts
                    .iter()
                    .map(|part| match part {
                        UserPart::Text(part) => text_part(part, marks),
                        UserPart::Image(image) => image_part(image),
                    })
                    .collect(),
            };
            messages.push(json!({ "role": "user", "content": content }));
        }
        Message::Assistant { parts } => messages.push(assistant(parts)),
        Message::ToolResults { results } => {
            for result in results {
                messages.push(
                    json!({ "role": "tool", "tool_call_id": result.id, "content": result_text(result) }),
                );
            }
            messages.extend(pictures(results));
        }
    }
}

/// Tool images in a separate message after all results: this API doesn't allow them in a result.
fn pictures(results: &[ToolResult]) -> Option<Value> {
    let mut content = Vec::new();
    for result in results.iter().filter(|r| !r.images.is_empty()) {
        content.push(
            json!({ "type": "text", "text": format!("Picture from `{}` ({}):", result.name, result.id) }),
        );
        content.extend(result.images.iter().map(image_part));
    }
    (!content.is_empty()).then(|| json!({ "role": "user", "content": content }))
}

fn assistant(parts: &[ReplyPart]) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut message = json!({ "role": "assistant" });
    for part in parts {
        match part {
            ReplyPart::Text { text: piece } => text.push_str(piece),
            ReplyPart::ToolCall(call) => calls.push(json!({
                "id": call.id, "type": "function",
                "function": { "name": call.name, "arguments": as_arguments(call) },
            })),
            ReplyPart::Opaque { wire, value } if wire == WIRE => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    message[key.as_str()] = value.clone();
                }
            }
            ReplyPart::Opaque { .. } => {}
        }
    }
    message["content"] = if text.is_empty() && !calls.is_empty() { Value::Null } else { Value::String(text) };
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    message
}

fn image_part(image: &Image) -> Value {
    let url = format!("data:{};base64,{}", image.media_type, image.base64);
    json!({ "type": "image_url", "image_url": { "url": url } })
}

pub(crate) fn whole(body: &Value) -> Result<WireReply, WireFault> {
    let Some(choice) = body.get("choices").and_then(|c| c.get(0)) else {
        return Err(WireFault::Garbled("the answer has no `choices`".into()));
    };
    let mut reader = Reader::default();
    let message = choice.get("message").unwrap_or(&Value::Null);
    reader.message(message, &mut |_| {});
    reader.stop = string(choice, "finish_reason").map(str::to_owned).or_else(|| Some("stop".into()));
    reader.around(body);
    Box::new(reader).finish()
}

#[derive(Debug, Default)]
struct PartialToolCall {
    id: String,
    name: String,
    arguments: String,
}

/// Reads a streamed answer; a whole one is a stream of one piece.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    text: String,
    refusal: String,
    carried: Map<String, Value>,
    calls: BTreeMap<u64, PartialToolCall>,
    stop: Option<String>,
    usage: Option<Value>,
    model: Option<String>,
    ended: bool,
}

impl Reader {
    fn message(&mut self, delta: &Value, tell: &mut dyn FnMut(&str)) {
        let mut say = |piece: &str| {
            self.text.push_str(piece);
            tell(piece);
        };
        match delta.get("content") {
            Some(Value::String(piece)) => say(piece),
            Some(Value::Array(parts)) => parts.iter().filter_map(|p| string(p, "text")).for_each(say),
            _ => {}
        }
        self.refusal.push_str(string(delta, "refusal").unwrap_or_default());
        for key in CARRIED {
            match (self.carried.get_mut(*key), delta.get(*key)) {
                (_, None | Some(Value::Null)) => {}
                (Some(Value::String(text)), Some(Value::String(piece))) => text.push_str(piece),
                (Some(Value::Array(list)), Some(Value::Array(more))) => join_blocks(list, more),
                (_, Some(value)) => {
                    self.carried.insert((*key).to_owned(), value.clone());
                }
            }
        }
        for (at, call) in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            let id = string(call, "id").filter(|id| !id.is_empty());
            let mut index = number(call, &["index"]).unwrap_or(at as u64);
            // Some servers give every call index 0: another id is another call.
            let taken = |kept: &PartialToolCall| !kept.id.is_empty() && id.is_some_and(|id| id != kept.id);
            if self.calls.get(&index).is_some_and(taken) {
                let same = self.calls.iter().find(|(_, kept)| id == Some(kept.id.as_str()));
                let next = self.calls.keys().next_back().map_or(0, |last| last.saturating_add(1));
                index = same.map_or(next, |(index, _)| *index);
            }
            let kept = self.calls.entry(index).or_default();
            if let Some(id) = id {
                kept.id = id.to_owned();
            }
            let Some(function) = call.get("function") else { continue };
            // Most servers send the name once; some repeat it with every piece.
            if let Some(name) = string(function, "name").filter(|n| !n.is_empty()) {
                kept.name = name.to_owned();
            }
            match function.get("arguments") {
                Some(Value::String(piece)) => kept.arguments.push_str(piece),
                Some(value @ Value::Object(_)) => kept.arguments = value.to_string(),
                _ => {}
            }
        }
    }

    fn around(&mut self, body: &Value) {
        if let Some(usage) = body.get("usage").filter(|u| u.is_object()) {
            self.usage = Some(usage.clone());
        }
        if self.model.is_none() {
            self.model = string(body, "model").map(str::to_owned);
        }
    }
}

impl StreamReader for Reader {
    fn event(&mut self, event: &SseEvent, tell: &mut dyn FnMut(&str)) -> Result<(), WireFault> {
        if event.data.trim() == "[DONE]" {
            self.ended = true;
            return Ok(());
        }
        let value = json_of(event)?;
        if event.name == "error" || value.get("error").is_some_and(|e| !e.is_null()) {
            return Err(WireFault::Said(value));
        }
        self.around(&value);
        if let Some(choice) = value.get("choices").and_then(|c| c.get(0)) {
            self.message(choice.get("delta").unwrap_or(&Value::Null), tell);
            if let Some(reason) = string(choice, "finish_reason") {
                self.stop = Some(reason.to_owned());
            }
        }
        Ok(())
    }

    fn complete(&self) -> bool {
        self.ended
    }

    fn finish(self: Box<Self>) -> Result<WireReply, WireFault> {
        // Some servers omit `[DONE]`, others the reason; one of them must be there.
        let empty = self.text.is_empty() && self.calls.is_empty() && self.refusal.is_empty();
        if self.stop.is_none() && (!self.ended || empty) {
            return Err(WireFault::Cut);
        }
        let mut parts = Vec::new();
        if !self.carried.is_empty() {
            parts.push(ReplyPart::Opaque { wire: WIRE.into(), value: Value::Object(self.carried) });
        }
        let refused = !self.refusal.is_empty();
        let text = if self.text.is_empty() { self.refusal } else { self.text };
        if !text.is_empty() {
            parts.push(ReplyPart::Text { text });
        }
        let called = !self.calls.is_empty();
        parts.extend(self.calls.into_iter().map(|(index, call)| {
            let id = if call.id.is_empty() { format!("call-{index}") } else { call.id };
            ReplyPart::ToolCall(ToolCall { id, name: call.name, input: arguments(&call.arguments) })
        }));
        let stop = match self.stop.as_deref() {
            _ if refused => StopReason::Refusal,
            Some("content_filter" | "sensitive") => StopReason::Refusal,
            Some("length") => StopReason::MaxTokens,
            // Some servers say `stop` although there are calls.
            _ if called => StopReason::ToolUse,
            Some("stop") | None => StopReason::EndTurn,
            Some(_) => StopReason::Other,
        };
        let cost = self.usage.as_ref().and_then(|u| u.get("cost")).and_then(Value::as_f64);
        Ok(WireReply {
            parts,
            stop,
            tokens: self.usage.as_ref().map(tokens),
            cost: cost.filter(|c| *c > 0.0).map(Usd::from_dollars),
            model: self.model,
        })
    }
}

/// Thinking blocks also come in pieces: a piece continues the last block until that is signed.
fn join_blocks(list: &mut Vec<Value>, more: &[Value]) {
    const GROWING: &[&str] = &["thinking", "text", "summary", "data", "signature"];
    for block in more {
        let goes_on = list.last().is_some_and(|last| {
            ["type", "index"].iter().all(|key| last.get(key) == block.get(key))
                && string(last, "signature").is_none_or(str::is_empty)
        });
        match (list.last_mut(), block) {
            (Some(Value::Object(last)), Value::Object(block)) if goes_on => {
                for (key, value) in block {
                    match (last.get_mut(key), value) {
                        (Some(Value::String(text)), Value::String(piece))
                            if GROWING.contains(&key.as_str()) =>
                        {
                            text.push_str(piece);
                        }
                        (None | Some(Value::Null), value) => {
                            last.insert(key.clone(), value.clone());
                        }
                        _ => {}
                    }
                }
            }
            _ => list.push(block.clone()),
        }
    }
}

fn tokens(usage: &Value) -> Tokens {
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| number(usage, path)).unwrap_or(0);
    let prompt = first(&[&["prompt_tokens"], &["input_tokens"]]);
    let cached = first(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["cache_read_input_tokens"],
        &["prompt_cache_hit_tokens"],
    ]);
    let cache_write = first(&[
        &["cache_creation_input_tokens"],
        &["prompt_tokens_details", "cache_creation_tokens"],
        &["prompt_tokens_details", "cache_write_tokens"],
    ]);
    Tokens {
        input: prompt.saturating_sub(cached).saturating_sub(cache_write),
        output: first(&[&["completion_tokens"], &["output_tokens"]]),
        cached,
        cache_write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(deltas: &[Value]) -> WireReply {
        let mut reader = Box::<Reader>::default();
        for delta in deltas {
            let data = json!({ "choices": [{ "delta": delta }] }).to_string();
            reader.event(&SseEvent { name: String::new(), data }, &mut |_| {}).unwrap();
        }
        let done = SseEvent { name: String::new(), data: "[DONE]".into() };
        reader.event(&done, &mut |_| {}).unwrap();
        reader.finish().unwrap()
    }

    #[test]
    fn thought_in_pieces_is_joined_until_it_is_signed() {
        let piece = |text: &str, signature: Value| json!({ "thinking_blocks": [{ "type": "thinking", "thinking": text, "signature": signature }] });
        let answer = read(&[
            piece("a", Value::Null),
            piece("b", Value::Null),
            piece("", json!("s1")),
            piece("c", json!("s2")),
            json!({ "content": "x" }),
        ]);
        let want = json!({ "thinking_blocks": [
            { "type": "thinking", "thinking": "ab", "signature": "s1" },
            { "type": "thinking", "thinking": "c", "signature": "s2" },
        ] });
        assert_eq!(answer.parts[0], ReplyPart::Opaque { wire: WIRE.into(), value: want });
    }

    #[test]
    fn calls_with_the_same_index_are_separated_by_id() {
        let call = |id: &str, name: &str, arguments: &str| json!({ "tool_calls": [{ "index": 0, "id": id, "function": { "name": name, "arguments": arguments } }] });
        let answer =
            read(&[call("a", "x", "{\"n\":1}"), call("b", "y", "{"), call("b", "", "}"), call("", "", "")]);
        let calls: Vec<_> = answer
            .parts
            .iter()
            .filter_map(|part| match part {
                ReplyPart::ToolCall(call) => Some((call.id.as_str(), call.name.as_str(), call.input.clone())),
                _ => None,
            })
            .collect();
        assert_eq!(calls, [("a", "x", json!({ "n": 1 })), ("b", "y", json!({}))]);
        assert_eq!(answer.stop, StopReason::ToolUse);
    }

    #[test]
    fn invalid_arguments_are_kept_as_text_and_sent_back_as_an_object() {
        let answer = read(&[
            json!({ "tool_calls": [{ "id": "a", "function": { "name": "x", "arguments": "{oops" } }] }),
        ]);
        let ReplyPart::ToolCall(call) = &answer.parts[0] else { unreachable!() };
        assert_eq!(call.input, json!("{oops"));
        let back = assistant(&answer.parts);
        assert_eq!(back["tool_calls"][0]["function"]["arguments"], r#"{"unreadable_arguments":"{oops"}"#);
    }
}
