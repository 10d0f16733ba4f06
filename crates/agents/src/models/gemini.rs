//! Gemini generateContent (`/v1beta/models/MODEL:generateContent`).

use super::sse::SseEvent;
use super::wire::{
    Outgoing, StreamReader, WireFault, WireReply, WireRequest, as_object, json_of, number, string,
};
use ralph_loop_domain::model::{Image, Message, ReplyPart, StopReason, ToolCall, UserPart};
use ralph_loop_protocol::money::Tokens;
use serde_json::{Value, json};

const WIRE: &str = "gemini";
/// Prefix of ids made here, because this API often has none; they aren't sent back.
const MADE: &str = "made-";
/// A part's signature; it must return with that part.
const SIGNATURE: &str = "thoughtSignature";

pub(crate) fn outgoing(asked: &WireRequest<'_>) -> Outgoing {
    let request = asked.request;
    let mut contents: Vec<Value> = Vec::new();
    for message in &request.messages {
        let (role, parts) = content(message);
        if parts.is_empty() {
            continue;
        }
        match contents.last_mut() {
            Some(last) if string(last, "role") == Some(role) => {
                if let Some(Value::Array(list)) = last.get_mut("parts") {
                    list.extend(parts);
                }
            }
            _ => contents.push(json!({ "role": role, "parts": parts })),
        }
    }
    let mut config = json!({});
    if let Some(most) = asked.max_tokens() {
        config["maxOutputTokens"] = json!(most);
    }
    if let Some(temperature) = asked.profile.temperature {
        config["temperature"] = json!(temperature);
    }
    // JSON answers and function calls exclude each other here.
    if let Some(schema) = asked.schema().filter(|_| request.tools.is_empty()) {
        config["responseMimeType"] = json!("application/json");
        config["responseJsonSchema"] = schema.clone();
    }
    let mut body = json!({ "contents": contents });
    if config.as_object().is_some_and(|c| !c.is_empty()) {
        body["generationConfig"] = config;
    }
    if !asked.system().is_empty() {
        let parts: Vec<Value> =
            request.system.iter().filter(|p| !p.text.is_empty()).map(|p| json!({ "text": p.text })).collect();
        body["systemInstruction"] = json!({ "parts": parts });
    }
    if !request.tools.is_empty() {
        let declared: Vec<Value> = request
            .tools
            .iter()
            .map(|t| json!({ "name": t.name, "description": t.description, "parametersJsonSchema": t.input_schema }))
            .collect();
        body["tools"] = json!([{ "functionDeclarations": declared }]);
    }
    let model = &asked.route.model;
    let path = if request.stream {
        format!("/v1beta/models/{model}:streamGenerateContent?alt=sse")
    } else {
        format!("/v1beta/models/{model}:generateContent")
    };
    Outgoing { path, body }
}

fn content(message: &Message) -> (&'static str, Vec<Value>) {
    match message {
        Message::User { parts } => {
            let parts = parts.iter().filter_map(|part| match part {
                UserPart::Text(part) => (!part.text.is_empty()).then(|| json!({ "text": part.text })),
                UserPart::Image(image) => Some(inline(image)),
            });
            ("user", parts.collect())
        }
        Message::Assistant { parts } => ("model", model_parts(parts)),
        Message::ToolResults { results } => {
            let mut parts = Vec::new();
            for result in results {
                let word = if result.is_error { "error" } else { "output" };
                let mut answer = json!({ "name": result.name, "response": { word: result.text } });
                if !result.id.starts_with(MADE) {
                    answer["id"] = json!(result.id);
                }
                parts.push(json!({ "functionResponse": answer }));
            }
            // All answers first, then their images.
            parts.extend(results.iter().flat_map(|r| &r.images).map(inline));
            ("user", parts)
        }
    }
}

fn model_parts(parts: &[ReplyPart]) -> Vec<Value> {
    let mut out = Vec::new();
    let mut signature: Option<&Value> = None;
    for part in parts {
        let mut value = match part {
            ReplyPart::Text { text } => json!({ "text": text }),
            ReplyPart::ToolCall(call) => {
                let mut function = json!({ "name": call.name, "args": as_object(&call.input) });
                if !call.id.starts_with(MADE) {
                    function["id"] = json!(call.id);
                }
                json!({ "functionCall": function })
            }
            ReplyPart::Opaque { wire, .. } if wire != WIRE => continue,
            ReplyPart::Opaque { value, .. } => {
                // A signature alone belongs to the next part.
                match value.get(SIGNATURE) {
                    Some(found) if value.as_object().is_some_and(|v| v.len() == 1) => {
                        signature = Some(found);
                        continue;
                    }
                    _ => value.clone(),
                }
            }
        };
        if let Some(signature) = signature.take() {
            value[SIGNATURE] = signature.clone();
        }
        out.push(value);
    }
    out
}

fn inline(image: &Image) -> Value {
    json!({ "inlineData": { "mimeType": image.media_type, "data": image.base64 } })
}

pub(crate) fn whole(body: &Value, turn: usize) -> Result<WireReply, WireFault> {
    // Without `alt=sse` a stream is an array of its pieces; a proxy may answer a plain call that way.
    let pieces = match body {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut reader = Reader::new(turn);
    for piece in pieces {
        reader.piece(piece, &mut |_| {})?;
    }
    if reader.stop.is_none() && reader.parts.is_empty() {
        return Err(WireFault::Garbled("the answer has no candidate".into()));
    }
    reader.stop.get_or_insert_with(|| "STOP".into());
    Box::new(reader).finish()
}

/// Reads a streamed answer; a whole one is a stream of one piece.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    turn: usize,
    calls: usize,
    parts: Vec<ReplyPart>,
    stop: Option<String>,
    usage: Option<Value>,
    model: Option<String>,
}

impl Reader {
    /// A reader that creates ids for this turn.
    pub fn new(turn: usize) -> Self {
        Self { turn, ..Self::default() }
    }

    fn piece(&mut self, value: &Value, tell: &mut dyn FnMut(&str)) -> Result<(), WireFault> {
        if value.get("error").is_some_and(|e| !e.is_null()) {
            return Err(WireFault::Said(value.clone()));
        }
        if let Some(usage) = value.get("usageMetadata").filter(|u| u.is_object()) {
            self.usage = Some(usage.clone());
        }
        if let Some(model) = string(value, "modelVersion") {
            self.model = Some(model.to_owned());
        }
        if let Some(reason) = value.get("promptFeedback").and_then(|f| string(f, "blockReason")) {
            self.stop = Some(reason.to_owned());
        }
        let Some(candidate) = value.get("candidates").and_then(|c| c.get(0)) else { return Ok(()) };
        let parts = candidate.get("content").and_then(|c| c.get("parts")).and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, tell);
        }
        if let Some(reason) = string(candidate, "finishReason") {
            self.stop = Some(reason.to_owned());
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, tell: &mut dyn FnMut(&str)) {
        let thought = part.get("thought") == Some(&Value::Bool(true));
        let text = string(part, "text");
        let call = part.get("functionCall");
        let known = (call.is_some() || text.is_some_and(|t| !t.is_empty())) && !thought;
        if !known {
            if part.is_object() {
                self.parts.push(ReplyPart::Opaque { wire: WIRE.into(), value: part.clone() });
            }
            return;
        }
        let signature = part.get(SIGNATURE);
        if let Some(signature) = signature {
            let value = json!({ SIGNATURE: signature });
            self.parts.push(ReplyPart::Opaque { wire: WIRE.into(), value });
        }
        if let Some(call) = call {
            let made = format!("{MADE}{}-{}", self.turn, self.calls);
            self.calls += 1;
            self.parts.push(ReplyPart::ToolCall(ToolCall {
                id: string(call, "id").map_or(made, str::to_owned),
                name: string(call, "name").unwrap_or_default().to_owned(),
                input: call.get("args").cloned().unwrap_or_else(|| json!({})),
            }));
        } else if let Some(piece) = text {
            tell(piece);
            match self.parts.last_mut() {
                Some(ReplyPart::Text { text }) if signature.is_none() => text.push_str(piece),
                _ => self.parts.push(ReplyPart::Text { text: piece.to_owned() }),
            }
        }
    }
}

impl StreamReader for Reader {
    fn event(&mut self, event: &SseEvent, tell: &mut dyn FnMut(&str)) -> Result<(), WireFault> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        self.piece(&json_of(event)?, tell)
    }

    /// The last piece isn't marked; usage may follow the reason. Only the end of the stream counts.
    fn complete(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>) -> Result<WireReply, WireFault> {
        let reason = self.stop.ok_or(WireFault::Cut)?;
        let called = self.calls > 0;
        let stop = match reason.as_str() {
            "STOP" if called => StopReason::ToolUse,
            "STOP" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
                StopReason::Refusal
            }
            _ => StopReason::Other,
        };
        Ok(WireReply {
            parts: self.parts,
            stop,
            tokens: self.usage.as_ref().map(tokens),
            cost: None,
            model: self.model,
        })
    }
}

fn tokens(usage: &Value) -> Tokens {
    let of = |key: &str| number(usage, &[key]).unwrap_or(0);
    let cached = of("cachedContentTokenCount");
    Tokens {
        input: (of("promptTokenCount") + of("toolUsePromptTokenCount")).saturating_sub(cached),
        output: of("candidatesTokenCount") + of("thoughtsTokenCount"),
        cached,
        cache_write: 0,
    }
}
