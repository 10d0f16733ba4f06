//! Tests of the scripted model server over raw HTTP.
#![allow(clippy::disallowed_methods, reason = "starts the program that is tested")]

use ralph_loop_testkit::model_server::{Action, Fault, FaultKind, ModelServer, Script, Stop, Turn, Usage};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// A raw response.
#[derive(Debug)]
struct Got {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    /// Whether the response had its announced length.
    whole: bool,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }
    /// Names and data of the events; those without JSON as strings.
    fn events(&self) -> Vec<(String, Value)> {
        let blocks = self.body.split("\n\n").filter(|b| !b.is_empty());
        let read = |block: &str| {
            let line = |key: &str| block.lines().find_map(|l| l.strip_prefix(key)).unwrap_or_default();
            let data = line("data: ");
            (line("event: ").to_owned(), serde_json::from_str(data).unwrap_or_else(|_| json!(data)))
        };
        blocks.map(read).collect()
    }
}

/// A connection that stays open.
struct Client {
    stream: TcpStream,
}

impl Client {
    fn new(server: &ModelServer) -> Self {
        Self::at(server.port())
    }

    fn at(port: u16) -> Self {
        Self { stream: TcpStream::connect(("127.0.0.1", port)).unwrap() }
    }

    fn raw(&mut self, bytes: &[u8]) -> Option<Got> {
        self.stream.write_all(bytes).unwrap();
        self.read()
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Option<Got> {
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n", body.len());
        self.raw(format!("{head}{body}").as_bytes())
    }

    fn post(&mut self, path: &str, body: &Value) -> Got {
        self.send("POST", path, "", &body.to_string()).expect("an answer")
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        (self.stream.read(&mut byte).unwrap_or(0) == 1).then_some(byte[0])
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(self.byte()?);
        }
        Some(String::from_utf8_lossy(&line[..line.len() - 2]).into_owned())
    }

    /// Reads all available bytes.
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = (&self.stream).take(count as u64).read_to_end(&mut bytes);
        bytes
    }

    fn read(&mut self) -> Option<Got> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut got = Got { status, headers, body: String::new(), whole: true };
        let body = if got.header("transfer-encoding") == "chunked" {
            let mut body = Vec::new();
            loop {
                let Some(size) = self.line() else {
                    got.whole = false;
                    break body;
                };
                let size = usize::from_str_radix(&size, 16).unwrap();
                body.extend(self.bytes(size));
                self.line();
                if size == 0 {
                    break body;
                }
            }
        } else {
            let length = got.header("content-length").parse().unwrap_or(0);
            let body = self.bytes(length);
            got.whole = body.len() == length;
            body
        };
        got.body = String::from_utf8_lossy(&body).into_owned();
        Some(got)
    }
}

fn post(server: &ModelServer, path: &str, body: &Value) -> Got {
    Client::new(server).post(path, body)
}

const MESSAGES: &str = "/s/ok/r/v1/messages";
const RESPONSES: &str = "/s/ok/r/v1/responses";
const CHAT: &str = "/s/ok/r/v1/chat/completions";
const GEMINI: &str = "/s/ok/r/v1beta/models/gemini-2.5-pro:generateContent";
const GEMINI_STREAM: &str = "/s/ok/r/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";

fn anthropic(messages: Value, stream: bool) -> Value {
    json!({"model": "claude-sonnet-4-5", "stream": stream, "system": "Working directory: /w/repo\n", "messages": messages,
        "tools": [
            {"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}}, "required": ["command"]}},
            {"name": "Write", "input_schema": {"properties": {"file_path": {}, "content": {}}}}]})
}

fn responses(input: Value, stream: bool) -> Value {
    json!({"model": "gpt-5.5", "stream": stream, "input": input, "tools": [
        {"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {"type": "string"}}}},
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}]})
}

fn chat(messages: Value, extra: Value) -> Value {
    let mut body = json!({"model": "qwen3", "messages": messages, "tools": [
        {"type": "function", "function": {"name": "write_file", "parameters": {"properties": {"path": {}, "content": {}}}}},
        {"type": "function", "function": {"name": "shell", "parameters": {"properties": {"command": {"type": "array"}}}}}]});
    for (key, value) in extra.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn gemini(contents: Value) -> Value {
    json!({"contents": contents, "tools": [{"functionDeclarations": [
        {"name": "write_file", "parametersJsonSchema": {"properties": {"file_path": {}, "content": {}}}},
        {"name": "run_shell_command", "parameters": {"properties": {"command": {"type": "STRING"}}}}]}]})
}

fn user() -> Value {
    json!({"role": "user", "content": "go"})
}

#[test]
fn anthropic_plain_follows_the_turns_of_the_request() {
    let server = ModelServer::start().unwrap();
    let mut messages = vec![user()];
    let mut stops = Vec::new();
    for _ in 0..4 {
        let got = post(&server, MESSAGES, &anthropic(json!(messages), false)).json();
        stops.push(got["stop_reason"].as_str().unwrap().to_owned());
        let id = got["content"][0]["id"].clone();
        messages.push(json!({"role": "assistant", "content": got["content"]}));
        messages.push(
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]}),
        );
        if messages.len() == 3 {
            let input =
                json!({"file_path": "/w/repo/hello.txt", "content": "hello from the scripted model\n"});
            assert_eq!(got["content"][0]["input"], input);
            assert_eq!(got["usage"]["input_tokens"], 1200, "cached tokens are not in the input");
            assert_eq!(got["usage"]["cache_read_input_tokens"], 800);
            assert_eq!(got["usage"]["cache_creation_input_tokens"], 300);
        }
    }
    assert_eq!(stops, ["tool_use", "tool_use", "end_turn", "end_turn"], "the last turn repeats");
    assert_eq!(server.counts("ok", "r").sessions, 1);
    let seen = server.requests("ok", "r");
    assert_eq!(seen.iter().map(|s| s.turn.unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(seen[0].body["model"], "claude-sonnet-4-5");
}

#[test]
fn anthropic_streams_blocks_in_order() {
    let server = ModelServer::start().unwrap();
    let got = post(&server, MESSAGES, &anthropic(json!([user()]), true));
    assert_eq!(got.header("content-type"), "text/event-stream; charset=utf-8");
    let events = got.events();
    let names: Vec<_> =
        events.iter().map(|(n, _)| n.as_str()).filter(|n| *n != "content_block_delta").collect();
    let order = [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names, order);
    let input: String = events.iter().filter_map(|(_, d)| d["delta"]["partial_json"].as_str()).collect();
    assert_eq!(serde_json::from_str::<Value>(&input).unwrap()["file_path"], "/w/repo/hello.txt");
    let delta = &events.iter().find(|(n, _)| n == "message_delta").unwrap().1;
    assert_eq!(delta["delta"]["stop_reason"], "tool_use");
    assert_eq!(delta["usage"]["output_tokens"], 40);
}

#[test]
fn responses_call_a_custom_tool_and_then_a_function() {
    let server = ModelServer::start().unwrap();
    let first = post(&server, RESPONSES, &responses(json!([user()]), false)).json();
    let item = &first["output"][0];
    assert_eq!((&item["type"], &item["name"]), (&json!("custom_tool_call"), &json!("apply_patch")));
    let patch = "*** Begin Patch\n*** Add File: hello.txt\n+hello from the scripted model\n*** End Patch\n";
    assert_eq!(item["input"], patch);
    assert_eq!(first["usage"]["input_tokens"], 2000, "cached tokens are part of the input");
    assert_eq!(first["usage"]["input_tokens_details"]["cached_tokens"], 800);

    let call_output = json!({"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "ok"});
    let second = post(&server, RESPONSES, &responses(json!([user(), item, call_output]), true));
    let events = second.events();
    for (number, (name, data)) in events.iter().enumerate() {
        assert_eq!((&data["type"], &data["sequence_number"]), (&json!(name), &json!(number)));
    }
    let done = &events.iter().find(|(n, _)| n == "response.output_item.done").unwrap().1["item"];
    let arguments: Value = serde_json::from_str(done["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"cmd": "echo shell-ran >> hello.txt && cat hello.txt"}));
    let (last, data) = events.last().unwrap();
    assert_eq!(last, "response.completed");
    assert_eq!(data["response"]["usage"]["output_tokens"], 40);
}

#[test]
fn responses_count_parallel_calls_as_one_turn_however_they_are_ordered() {
    let server = ModelServer::start().unwrap();
    let path = "/s/parallel/r/v1/responses";
    let first = post(&server, path, &responses(json!([user()]), false)).json();
    let output = first["output"].as_array().unwrap();
    assert_eq!(output.len(), 4, "a text and three calls");
    let result =
        |item: &Value| json!({"type": "function_call_output", "call_id": item["call_id"], "output": "ok"});
    let calls: Vec<_> = output.iter().filter(|i| i["call_id"].is_string()).collect();
    let together =
        json!([user(), calls[0], calls[1], calls[2], result(calls[0]), result(calls[1]), result(calls[2])]);
    let each =
        json!([user(), calls[0], result(calls[0]), calls[1], result(calls[1]), calls[2], result(calls[2])]);
    for input in [together, each] {
        let second = post(&server, path, &responses(input, false)).json();
        assert!(second["output"][0]["content"][0]["text"].as_str().unwrap().contains("COMPLETE"), "{second}");
    }
    let body = json!({"model": "m", "input": "next", "previous_response_id": first["id"], "tools": [{"type": "function", "name": "exec"}]});
    let second = post(&server, path, &body).json();
    assert!(second["output"][0]["content"][0]["text"].as_str().unwrap().contains("COMPLETE"), "{second}");
}

#[test]
fn chat_completions_plain_and_streamed() {
    let server = ModelServer::start().unwrap();
    let plain = post(&server, CHAT, &chat(json!([user()]), json!({}))).json();
    let choice = &plain["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let function = &choice["message"]["tool_calls"][0]["function"];
    let arguments: Value = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"path": "hello.txt", "content": "hello from the scripted model\n"}));
    assert_eq!(plain["usage"]["prompt_tokens"], 2000);
    assert_eq!(plain["usage"]["prompt_tokens_details"]["cached_tokens"], 800);

    let next = json!([user(), choice["message"], {"role": "tool", "content": "ok"}]);
    let asked = json!({"stream": true, "stream_options": {"include_usage": true}});
    let events = post(&server, CHAT, &chat(next.clone(), asked)).events();
    let piece = |data: &Value| data["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].clone();
    let arguments: String = events.iter().filter_map(|(_, d)| piece(d).as_str().map(str::to_owned)).collect();
    let arguments: Value = serde_json::from_str(&arguments).unwrap();
    assert_eq!(arguments["command"][2], "echo shell-ran >> hello.txt && cat hello.txt");
    assert_eq!(events.last().unwrap().1, "[DONE]");
    assert_eq!(events[events.len() - 2].1["usage"]["total_tokens"], 2040);

    let events = post(&server, CHAT, &chat(next, json!({"stream": true}))).events();
    assert!(events.iter().all(|(_, d)| d["usage"].is_null()), "usage only on request");
}

#[test]
fn gemini_plain_streamed_and_as_an_array() {
    let server = ModelServer::start().unwrap();
    let asked = gemini(json!([{"role": "user", "parts": [{"text": "go"}]}]));
    let plain = post(&server, GEMINI, &asked).json();
    let call = &plain["candidates"][0]["content"]["parts"][0]["functionCall"];
    assert_eq!((&call["name"], &call["args"]["file_path"]), (&json!("write_file"), &json!("hello.txt")));
    let usage = json!({"promptTokenCount": 2000, "cachedContentTokenCount": 800, "candidatesTokenCount": 40,
        "thoughtsTokenCount": 8, "totalTokenCount": 2048});
    assert_eq!(plain["usageMetadata"], usage);

    let model = |part: Value| json!({"role": "model", "parts": [part]});
    let result = json!({"role": "user", "parts": [{"functionResponse": {"name": "x", "response": {}}}]});
    let opening = model(json!({"text": "Got it. Thanks for the context!"}));
    let history = json!([
        result,
        opening,
        result,
        model(json!({"functionCall": call})),
        result,
        model(json!({"text": "a"})),
        result
    ]);
    let events = post(&server, GEMINI_STREAM, &gemini(history.clone())).events();
    let text =
        |data: &Value| data["candidates"][0]["content"]["parts"][0]["text"].as_str().map(str::to_owned);
    let said: Vec<String> = events.iter().filter_map(|(_, d)| text(d)).collect();
    assert_eq!(said.concat(), "All work is finished.\n\n<promise>COMPLETE</promise>");
    assert!(said.len() > 1, "a stream brings a text in pieces");
    assert_eq!(events.last().unwrap().1["candidates"][0]["finishReason"], "STOP");

    let array = post(&server, &GEMINI_STREAM.replace("?alt=sse", ""), &gemini(history)).json();
    assert_eq!(array.as_array().unwrap().len(), events.len());
}

#[test]
fn faults_occur_as_often_as_configured_per_run() {
    let server = ModelServer::start().unwrap();
    let script = Script::turns([Action::text("hi")])
        .with_fault(Fault::times(FaultKind::RateLimit { retry_after_s: 7 }, 2))
        .with_fault(Fault::times(FaultKind::Overloaded, 1).at_turn(1));
    server.script("mine", script);
    let turn1 = json!([user(), {"role": "assistant", "content": "hi"}, user()]);
    let ask = |run: &str, messages: &Value| {
        post(&server, &format!("/s/mine/{run}/v1/messages"), &anthropic(messages.clone(), false))
    };
    let statuses: Vec<u16> = (0..3).map(|_| ask("a", &json!([user()])).status).collect();
    assert_eq!(statuses, [429, 429, 200]);
    assert_eq!((ask("a", &turn1).status, ask("a", &turn1).status), (529, 200));
    let limited = ask("b", &json!([user()]));
    assert_eq!(limited.status, 429, "another run has its own faults");
    assert_eq!(limited.header("retry-after"), "7");
    assert_eq!(limited.json()["error"]["type"], "rate_limit_error");
    let counts = server.counts("mine", "a");
    assert_eq!(
        (counts.requests, counts.faults, counts.sessions),
        (5, 3, 1),
        "a spoiled request isn't a session"
    );
    server.reset();
    assert_eq!(ask("a", &json!([user()])).status, 429, "forgotten");
}

#[test]
fn wire_errors_match_the_vendors() {
    let server = ModelServer::start().unwrap();
    let ask = |scenario: &str, path: &str, body: &Value| {
        post(&server, &path.replace("/s/ok/", &format!("/s/{scenario}/")), body)
    };
    let (a, o, g) = (anthropic(json!([user()]), true), responses(json!([user()]), true), gemini(json!([])));
    for (scenario, status, anthropic_type, openai_code, gemini_status) in [
        ("rl429", 429, "rate_limit_error", json!("rate_limit_exceeded"), "RESOURCE_EXHAUSTED"),
        ("quota", 429, "rate_limit_error", json!("insufficient_quota"), "RESOURCE_EXHAUSTED"),
        ("auth", 401, "authentication_error", json!("invalid_api_key"), "UNAUTHENTICATED"),
        (
            "forbidden",
            403,
            "permission_error",
            json!("unsupported_country_region_territory"),
            "PERMISSION_DENIED",
        ),
        ("credit", 400, "invalid_request_error", json!("billing_not_active"), "INVALID_ARGUMENT"),
        ("overloaded", 529, "overloaded_error", json!(null), "UNAVAILABLE"),
        ("unavail", 503, "overloaded_error", json!("server_is_overloaded"), "UNAVAILABLE"),
        ("err500", 500, "api_error", json!(null), "INTERNAL"),
        ("toolong", 400, "invalid_request_error", json!("context_length_exceeded"), "INVALID_ARGUMENT"),
        ("nomodel", 404, "not_found_error", json!("model_not_found"), "NOT_FOUND"),
    ] {
        let got = ask(scenario, MESSAGES, &a);
        assert_eq!(
            (got.status, &got.json()["error"]["type"]),
            (status, &json!(anthropic_type)),
            "{scenario}"
        );
        for path in [RESPONSES, CHAT] {
            let got = ask(scenario, path, &o);
            assert_eq!((got.status, &got.json()["error"]["code"]), (status, &openai_code), "{scenario}");
        }
        let got = ask(scenario, GEMINI_STREAM, &g);
        assert_eq!(
            (got.status, &got.json()["error"]["status"]),
            (status, &json!(gemini_status)),
            "{scenario}"
        );
    }
    let limited = ask("usagelimit", MESSAGES, &a);
    assert_eq!(limited.header("anthropic-ratelimit-unified-status"), "rejected");
    assert!(limited.header("anthropic-ratelimit-unified-reset").parse::<u64>().unwrap() > 1_700_000_000);
    assert_eq!(ask("usagelimit", RESPONSES, &o).json()["error"]["resets_in_seconds"], 3600);
    let daily = ask("usagelimit", GEMINI_STREAM, &g).json();
    assert!(daily["error"]["details"][0]["violations"][0]["quotaId"].as_str().unwrap().contains("PerDay"));
    assert_eq!(ask("rl429", GEMINI, &g).json()["error"]["details"][2]["retryDelay"], "1s");
}

#[test]
fn stream_can_fail_midway_or_end_garbled() {
    let server = ModelServer::start().unwrap();
    let a = anthropic(json!([user()]), true);
    let ask = |scenario: &str, body: &Value| post(&server, &format!("/s/{scenario}/r/v1/messages"), body);
    let failed = ask("streamerr", &a);
    assert_eq!(failed.status, 200);
    assert_eq!(failed.events().last().unwrap().1["error"]["type"], "overloaded_error");
    assert_eq!(ask("streamerr", &anthropic(json!([user()]), false)).status, 529, "unstreamed it is a status");
    let failed = post(&server, "/s/streamrl/r/v1/responses", &responses(json!([user()]), true)).events();
    assert_eq!(failed.last().unwrap().0, "response.failed");
    assert_eq!(failed.last().unwrap().1["response"]["error"]["code"], "rate_limit_exceeded");

    let asked = gemini(json!([]));
    let failed = post(&server, &GEMINI_STREAM.replace("/ok/", "/streamrl/"), &asked);
    let (begun, error) = failed.body.split_once("\n\n").unwrap();
    assert!(begun.starts_with("data: ") && !begun.contains("finishReason"), "no answer before: {begun}");
    let error: Value = serde_json::from_str(error).expect("bare JSON, as Google sends it");
    assert_eq!(error["error"]["status"], "RESOURCE_EXHAUSTED");
    let cut = post(&server, &GEMINI_STREAM.replace("/ok/", "/streamcut/"), &asked);
    assert!(!cut.whole && cut.body.contains("candidates") && !cut.body.contains("usageMetadata"), "{cut:?}");

    let cut = ask("streamcut", &a);
    assert!(
        !cut.whole && cut.body.contains("message_start") && !cut.body.contains("message_stop"),
        "{cut:?}"
    );
    assert!(!ask("streamcut", &anthropic(json!([user()]), false)).whole, "shorter than it says");
    let garbled = ask("garbled", &a);
    assert!(garbled.whole && garbled.events().iter().any(|(_, data)| data.is_string()), "{garbled:?}");
    assert!(serde_json::from_str::<Value>(&ask("garbled", &anthropic(json!([user()]), false)).body).is_err());
    let mut client = Client::new(&server);
    assert!(client.send("POST", "/s/hangup/r/v1/messages", "", &a.to_string()).is_none());
}

#[test]
fn stall_sends_its_first_bytes_and_ends_with_the_server() {
    let server = ModelServer::start().unwrap();
    let mut client = Client::new(&server);
    let body = anthropic(json!([user()]), true).to_string();
    let head = format!("POST /s/stall/r/v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    client.stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    assert_eq!(client.line().unwrap(), "HTTP/1.1 200 OK");
    while !client.line().unwrap().contains("message_start") {}
    drop(server);
    while client.byte().is_some() {}
}

#[test]
fn delayed_answer_arrives_after_the_silence() {
    let server = ModelServer::start().unwrap();
    let script = Script::turns([Turn { spread_ms: 20, ..Turn::from(Action::text("slowly")) }])
        .with_fault(Fault::times(FaultKind::SlowFirst { ms: 20 }, 1));
    server.script("mine", script);
    let got = post(&server, "/s/mine/r/v1/messages", &anthropic(json!([user()]), true));
    assert!(got.whole && got.body.contains("message_stop"));
    assert_eq!(server.counts("mine", "r").sessions, 1, "it was answered");
}

#[test]
fn sessions_differ_and_the_last_one_repeats() {
    let server = ModelServer::start().unwrap();
    let turns =
        |text: &str| vec![Turn::from([Action::text(text), Action::shell(text)]), Action::text(text).into()];
    let script =
        Script::sessions([turns("one"), turns("two")]).with_fault(Fault::times(FaultKind::ServerError, 1));
    server.script("mine", script);
    let ask = |messages: Value| post(&server, "/s/mine/r/v1/messages", &anthropic(messages, false)).json();
    assert_eq!(ask(json!([user()]))["type"], "error");
    let first = ask(json!([user()]));
    let said = |got: &Value| got["content"][0]["text"].as_str().unwrap().to_owned();
    let rest: Vec<_> = (0..2).map(|_| said(&ask(json!([user()])))).collect();
    assert_eq!((said(&first).as_str(), rest), ("one", vec!["two".to_owned(), "two".to_owned()]));
    let late = ask(json!([user(), {"role": "assistant", "content": first["content"]}, user()]));
    assert_eq!(said(&late), "one", "a session is recognized by its earlier calls");
    assert_eq!(server.counts("mine", "r").sessions, 3);
}

#[test]
fn side_calls_use_up_neither_script_nor_fault() {
    let server = ModelServer::start().unwrap();
    let body = json!({"model": "m", "messages": [user()], "max_tokens": 9}).to_string();
    let path = "/s/rl429once/r/v1/messages";
    let mut client = Client::new(&server);
    let side = client.send("POST", path, "user-agent: claude-cli/2.1 (external)\r\n", &body).unwrap();
    assert_eq!((side.status, side.json()["usage"]["input_tokens"].as_u64()), (200, Some(50)));
    assert_eq!(
        client.send("POST", path, "user-agent: mine\r\n", &body).unwrap().status,
        429,
        "not from a CLI"
    );
    let router = json!({"contents": [], "generationConfig": {"responseJsonSchema": {"type": "object", "properties": {
        "why": {"type": "string"}, "model": {"type": "string", "enum": ["flash", "pro"]}}}}});
    let got = client.send("POST", GEMINI, "user-agent: GeminiCLI/1\r\n", &router.to_string()).unwrap().json();
    let text = got["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["model"], "flash");
    assert_eq!(server.counts("ok", "r").side, 1);
}

#[test]
fn usage_and_stop_reasons_follow_each_wire() {
    let server = ModelServer::start().unwrap();
    let turn = |stop| {
        let usage = Usage { input: 10, output: 3, cache_read: 5, cache_write: 2, reasoning: 1 };
        Script::turns([Turn::from(Action::text("{\"actions\": []}")).with_stop(stop).with_usage(usage)])
    };
    server.script("long", turn(Stop::MaxTokens));
    server.script("no", turn(Stop::Refusal));
    let body = json!({"model": "m", "messages": [user()], "input": "go", "contents": []});
    let ask =
        |name: &str, path: &str| post(&server, &path.replace("/s/ok/", &format!("/s/{name}/")), &body).json();
    assert_eq!(ask("long", MESSAGES)["stop_reason"], "max_tokens");
    assert_eq!(ask("long", MESSAGES)["content"][0]["text"], "{\"actions\": []}", "raw text stays as it is");
    assert_eq!(ask("long", RESPONSES)["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(ask("long", CHAT)["choices"][0]["finish_reason"], "length");
    assert_eq!(ask("long", GEMINI)["candidates"][0]["finishReason"], "MAX_TOKENS");
    assert_eq!(ask("no", MESSAGES)["stop_reason"], "refusal");
    assert_eq!(ask("no", RESPONSES)["output"][0]["content"][0]["type"], "refusal");
    assert_eq!(ask("no", CHAT)["choices"][0]["finish_reason"], "content_filter");
    assert_eq!(ask("no", GEMINI)["candidates"][0]["finishReason"], "SAFETY");
    assert_eq!(ask("no", CHAT)["usage"]["prompt_tokens"], 15);
    assert_eq!(ask("no", MESSAGES)["usage"]["input_tokens"], 10);
    assert_eq!(ask("no", GEMINI)["usageMetadata"]["totalTokenCount"], 19);
}

#[test]
fn one_connection_carries_many_requests_of_every_form() {
    let server = ModelServer::start().unwrap();
    let mut client = Client::new(&server);
    for stream in [false, true, false] {
        let got = client.post(MESSAGES, &anthropic(json!([user()]), stream));
        assert_eq!((got.status, got.header("connection")), (200, "keep-alive"));
    }
    let body = anthropic(json!([user()]), false).to_string();
    let (one, two) = body.split_at(body.len() / 2);
    let chunked = format!(
        "POST {MESSAGES} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x};x=y\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    assert_eq!(client.raw(chunked.as_bytes()).unwrap().json()["stop_reason"], "tool_use");
    let head =
        format!("POST {MESSAGES} HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n", body.len());
    assert_eq!(client.raw(head.as_bytes()).unwrap().status, 100);
    assert_eq!(client.raw(body.as_bytes()).unwrap().status, 200);
    let twice = "GET /__health HTTP/1.1\r\n\r\nGET /__health HTTP/1.1\r\nconnection: close\r\n\r\n";
    assert_eq!(client.raw(twice.as_bytes()).unwrap().header("connection"), "keep-alive");
    assert_eq!(client.read().unwrap().header("connection"), "close");
    assert!(client.byte().is_none(), "closed as asked");
    assert_eq!(Client::new(&server).raw(b"nonsense\r\n\r\n").unwrap().status, 400);
}

#[test]
fn the_small_endpoints_answer() {
    let server = ModelServer::start().unwrap();
    let mut client = Client::new(&server);
    let body = anthropic(json!([user()]), false);
    let tokens = (body.to_string().len() / 4) as u64;
    assert_eq!(client.post("/s/auth/r/v1/messages/count_tokens", &body).json()["input_tokens"], tokens);
    assert_eq!(client.post("/s/ok/r/v1beta/models/m:countTokens", &body).json()["totalTokens"], tokens);
    let mut get = |path: &str| client.send("GET", path, "x-api-key: hush-hush\r\n", "").unwrap();
    assert_eq!(get("/s/ok/r/v1/models").json()["data"][0]["id"], "scripted");
    assert_eq!(get("/s/ok/r/v1beta/models").json()["models"][0]["name"], "models/scripted");
    assert_eq!(get("/s/nothing/r/v1/models").status, 404);
    assert_eq!(get("/s/ok/r/v1/v1/messages").status, 404);
    let state = get("/__state");
    assert!(
        state.json()["runs"].as_array().unwrap().iter().any(|r| r["scenario"] == "ok" && r["requests"] == 4)
    );
    assert!(!state.body.contains("hush-hush"), "keys are not shown");
    assert_eq!(get("/__reset").status, 200);
    assert_eq!(get("/__state").json()["runs"], json!([]));
}

#[test]
fn script_file_matches_the_types() {
    let written = json!({
        "sessions": [
            [{"write": {"path": "a", "content": "b"}}, [{"shell": {"command": "ls"}}, {"text": "hi"}]],
            [{"actions": [{"tool": {"name": "T", "input": {}}}], "stop": "refusal", "usage": {"input": 1}, "wait_ms": 5}],
        ],
        "faults": [{"kind": "rate_limit", "times": 2, "turn": 1}, {"kind": "cut"}],
        "toolless": "script",
    });
    let script: Script = serde_json::from_value(written).unwrap();
    let last = Turn {
        wait_ms: 5,
        ..Turn::from(Action::tool("T", json!({})))
            .with_stop(Stop::Refusal)
            .with_usage(Usage { input: 1, ..Usage::default() })
    };
    let expected = Script {
        toolless: ralph_loop_testkit::model_server::Toolless::Script,
        ..Script::sessions([
            vec![Action::write("a", "b").into(), Turn::from([Action::shell("ls"), Action::text("hi")])],
            vec![last],
        ])
        .with_fault(Fault::times(FaultKind::RateLimit { retry_after_s: 1 }, 2).at_turn(1))
        .with_fault(Fault::always(FaultKind::Cut))
    };
    assert_eq!(script, expected);
    let misspelt = serde_json::from_value::<Script>(json!({"trns": []})).unwrap_err().to_string();
    assert!(misspelt.starts_with("unknown field `trns`"), "{misspelt}");
}

#[test]
fn program_serves_a_script_file_and_prints_its_url() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scripts.json");
    std::fs::write(&file, r#"{"mine": {"turns": [{"text": "from a file"}]}}"#).unwrap();
    let program = env!("CARGO_BIN_EXE_ralph-model-server");
    let mut child = Command::new(program).arg("--script").arg(&file).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().rsplit_once(':').unwrap().1.parse().unwrap();
    let got =
        Client::at(port).post("/s/mine/r/v1/messages", &json!({"model": "m", "messages": [user()]})).json();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(got["content"][0]["text"], "from a file");

    std::fs::write(&file, r#"{"mine": {"turns": [{"txt": "misspelt"}]}}"#).unwrap();
    let refused = Command::new(program).arg("--script").arg(&file).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("scripts.json"), "{refused:?}");
}
