use super::*;
use ralph_loop_domain::model::{Message, ModelRequest};

fn streamed(wire: Wire, events: &[Value]) -> Result<WireReply, WireFault> {
    let mut reader = reader(wire, 3);
    for event in events {
        let name = string(event, "type").unwrap_or_default().to_owned();
        reader.event(&SseEvent { name, data: event.to_string() }, &mut |_| {})?;
    }
    reader.finish()
}

/// The body of a request that sends these parts back.
fn sent_back(wire: Wire, parts: Vec<ReplyPart>) -> Value {
    let profile = Profile {
        wire: Some(wire),
        base_url: Some("http://127.0.0.1:1".into()),
        ..Profile::of_model("p", "openai/m")
    };
    let route = Route::of(&profile, &|_: &str| None).unwrap();
    let request = ModelRequest { messages: vec![Message::Assistant { parts }], ..ModelRequest::default() };
    outgoing(&WireRequest { profile: &profile, route: &route, request: &request, with_schema: true }).body
}

#[test]
fn anthropic_thinking_is_joined_and_sent_back_unchanged() {
    let delta =
        |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let start = |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let answer = streamed(
        Wire::Anthropic,
        &[
            json!({ "type": "message_start", "message": { "model": "m", "usage": { "input_tokens": 7, "output_tokens": 1 } } }),
            start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
            delta(0, json!({ "type": "thinking_delta", "thinking": "h" })),
            delta(0, json!({ "type": "thinking_delta", "thinking": "m" })),
            delta(0, json!({ "type": "signature_delta", "signature": "sig" })),
            start(1, json!({ "type": "redacted_thinking", "data": "zz" })),
            start(2, json!({ "type": "tool_use", "id": "t1", "name": "x", "input": {} })),
            delta(2, json!({ "type": "input_json_delta", "partial_json": "{\"a\":" })),
            json!({ "type": "ping" }),
            delta(2, json!({ "type": "input_json_delta", "partial_json": "1}" })),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 9 } }),
            json!({ "type": "message_stop" }),
        ],
    )
    .unwrap();
    assert_eq!(answer.tokens.unwrap().output, 9);
    assert_eq!(answer.tokens.unwrap().input, 7);
    let body = sent_back(Wire::Anthropic, answer.parts);
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            { "type": "thinking", "thinking": "hm", "signature": "sig" },
            { "type": "redacted_thinking", "data": "zz" },
            { "type": "tool_use", "id": "t1", "name": "x", "input": { "a": 1 } },
        ])
    );
}

#[test]
fn gemini_signatures_stay_with_their_part_and_made_ids_stay_here() {
    let parts = json!([
        { "thought": true, "text": "hm" },
        { "functionCall": { "name": "x", "args": { "a": 1 } }, "thoughtSignature": "s1" },
        { "functionCall": { "name": "y", "args": {}, "id": "theirs" } },
        { "text": "", "thoughtSignature": "s2" },
    ]);
    let body = json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": "STOP" }] });
    let answer = whole(Wire::Gemini, &body, 5).unwrap();
    assert_eq!(answer.stop, StopReason::ToolUse);
    let ids: Vec<&str> = answer
        .parts
        .iter()
        .filter_map(|p| match p {
            ReplyPart::ToolCall(call) => Some(call.id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["made-5-0", "theirs"]);
    assert_eq!(sent_back(Wire::Gemini, answer.parts)["contents"][0]["parts"], parts);
}

#[test]
fn reasoning_items_of_responses_go_back_and_a_failed_response_is_an_error() {
    let reasoning = json!({ "type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e" });
    let call = json!({ "type": "function_call", "id": "fc", "call_id": "c1", "name": "x", "arguments": "{\"a\":1}" });
    let item = |item: &Value| json!({ "type": "response.output_item.done", "item": item });
    let done = json!({ "type": "response.completed", "response": { "status": "completed", "output": [] } });
    let answer = streamed(Wire::OpenaiResponses, &[item(&reasoning), item(&call), done]).unwrap();
    let body = sent_back(Wire::OpenaiResponses, answer.parts);
    assert_eq!(body["input"][0], reasoning);
    assert_eq!(body["input"][1]["arguments"], "{\"a\":1}");
    let failed = json!({ "type": "response.failed", "response": { "status": "failed", "error": { "code": "server_is_overloaded" } } });
    let Err(WireFault::Said(said)) = streamed(Wire::OpenaiResponses, &[failed]) else { unreachable!() };
    assert_eq!(said["error"]["code"], "server_is_overloaded");
    assert_eq!(streamed(Wire::OpenaiResponses, &[item(&call)]), Err(WireFault::Cut));
}

#[test]
fn strict_schemas_are_recognised() {
    let closed = |required: Value| json!({ "type": "object", "additionalProperties": false, "properties": { "a": { "type": "string" } }, "required": required });
    assert!(is_strict(&closed(json!(["a"]))));
    assert!(!is_strict(&closed(json!([]))));
    assert!(!is_strict(&json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] })));
    assert!(!is_strict(&json!({ "type": "object" })));
    let nested = json!({ "type": "array", "items": closed(json!([])) });
    assert!(!is_strict(&nested));
}
