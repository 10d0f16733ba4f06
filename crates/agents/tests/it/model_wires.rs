//! Every wire against the scripted model server: plain and streaming, tools, pictures, caching, faults.

use ralph_loop_agents::HttpModelClient;
use ralph_loop_domain::model::{
    Image, Message, ModelClient, ModelError, ModelErrorKind, ModelReply, ModelRequest, ModelSink, NoSink,
    ReplyPart, StopReason, TextPart, ToolResult, ToolSpec, UserPart,
};
use ralph_loop_domain::ports::StopCause;
use ralph_loop_protocol::money::Tokens;
use ralph_loop_task::config::{Profile, TimeoutConfig, Wire};
use ralph_loop_testkit::model_server::{
    Action, Fault, FaultKind, ModelServer, Script, SeenRequest, Stop, Turn,
};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::Duration;

const WIRES: [Wire; 4] = [Wire::Anthropic, Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Gemini];
const KEY: &str = "test-key-value-1";

fn client() -> HttpModelClient {
    let keys = |name: &str| (name == "TEST_KEY").then(|| KEY.to_owned());
    HttpModelClient::new(keys).with_backoff(Duration::from_millis(1))
}

/// A profile of a wire at a scenario of the server.
fn profile(server: &ModelServer, wire: Wire, scenario: &str) -> Profile {
    let base = server.base_url(scenario, wire.as_str());
    let (model, base) = match wire {
        Wire::Anthropic => ("anthropic/claude-sonnet-5", base),
        Wire::OpenaiChat => ("openai/gpt-4.1", format!("{base}/v1")),
        Wire::OpenaiResponses => ("openai/gpt-5.5", format!("{base}/v1")),
        Wire::Gemini => ("gemini/gemini-2.5-pro", base),
    };
    Profile {
        base_url: Some(base),
        api_key_env: Some("TEST_KEY".into()),
        wire: Some(wire),
        ..Profile::of_model("test", model)
    }
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: "shell".into(),
        description: "Runs a command.".into(),
        input_schema: json!({ "type": "object", "properties": { "command": { "type": "string" } }, "required": ["command"] }),
    }
}

fn user(text: &str) -> Message {
    Message::User { parts: vec![UserPart::Text(TextPart::plain(text))] }
}

fn request(stream: bool) -> ModelRequest {
    ModelRequest {
        system: vec![TextPart::cached("Be brief."), TextPart::plain("Be kind.")],
        messages: vec![user("Hello")],
        tools: vec![tool()],
        max_output_tokens: Some(500),
        stream,
        ..ModelRequest::default()
    }
}

fn call(server: &ModelServer, wire: Wire, scenario: &str, stream: bool) -> Result<ModelReply, ModelError> {
    client().call(&profile(server, wire, scenario), &request(stream), &mut NoSink)
}

fn seen(server: &ModelServer, wire: Wire, scenario: &str) -> Vec<SeenRequest> {
    server.requests(scenario, wire.as_str())
}

/// Remembers everything; ends the call after a number of polls.
#[derive(Default)]
struct RecordingSink {
    text: String,
    waits: Vec<Duration>,
    reasons: Vec<String>,
    polls: u32,
    /// Ends the call once it has waited.
    ends_waits: bool,
}

impl ModelSink for RecordingSink {
    fn text(&mut self, piece: &str) {
        self.text.push_str(piece);
    }
    fn waiting(&mut self, wait: Duration, reason: &str) {
        self.waits.push(wait);
        self.reasons.push(reason.to_owned());
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.polls += 1;
        if self.ends_waits && !self.waits.is_empty() {
            return ControlFlow::Break(StopCause::Cancelled);
        }
        ControlFlow::Continue(())
    }
}

/// Every wire, plain and streaming.
fn each(mut body: impl FnMut(Wire, bool)) {
    for wire in WIRES {
        for stream in [false, true] {
            body(wire, stream);
        }
    }
}

#[test]
fn text_tokens_and_stop_reasons_come_back_on_every_wire() {
    let server = ModelServer::start().unwrap();
    server.script("say", Script::turns([Action::text("Good morning, Zoë.")]));
    server.script("cut", Script::turns([Turn::from(Action::text("Half")).with_stop(Stop::MaxTokens)]));
    server.script("no", Script::turns([Turn::from(Action::text("I cannot.")).with_stop(Stop::Refusal)]));
    each(|wire, stream| {
        let mut sink = RecordingSink::default();
        let profile = profile(&server, wire, "say");
        let reply = client().call(&profile, &request(stream), &mut sink).unwrap();
        assert_eq!(reply.text(), "Good morning, Zoë.", "{wire:?} {stream}");
        assert_eq!(sink.text, reply.text(), "{wire:?} {stream}");
        assert_eq!((reply.stop, reply.tries), (StopReason::EndTurn, 1), "{wire:?} {stream}");
        let want = match wire {
            Wire::Anthropic => Tokens { input: 1200, output: 40, cached: 800, cache_write: 300 },
            Wire::Gemini => Tokens { input: 1200, output: 48, cached: 800, cache_write: 0 },
            _ => Tokens { input: 1200, output: 40, cached: 800, cache_write: 0 },
        };
        assert_eq!(reply.tokens, Some(want), "{wire:?} {stream}");
        assert!(reply.model.is_some(), "{wire:?} {stream}");
        let cut = call(&server, wire, "cut", stream).unwrap();
        assert_eq!(cut.stop, StopReason::MaxTokens, "{wire:?} {stream}");
        let no = call(&server, wire, "no", stream).unwrap();
        assert_eq!(no.stop, StopReason::Refusal, "{wire:?} {stream}: {no:?}");
    });
}

#[test]
fn the_key_goes_where_the_wire_wants_it_and_nowhere_else() {
    let server = ModelServer::start().unwrap();
    for wire in WIRES {
        call(&server, wire, "text", true).unwrap();
        let seen = seen(&server, wire, "text").pop().unwrap();
        let header = match wire {
            Wire::Anthropic => ("x-api-key", KEY.to_owned()),
            Wire::Gemini => ("x-goog-api-key", KEY.to_owned()),
            _ => ("authorization", format!("Bearer {KEY}")),
        };
        assert_eq!(seen.header(header.0), Some(header.1.as_str()), "{wire:?}");
        assert!(!seen.path.contains(KEY) && !seen.body.to_string().contains(KEY));
        assert!(seen.header("user-agent").unwrap().starts_with("ralph/"));
    }
}

/// Two parallel calls, their results with a picture, then the end: the second request holds it all.
#[test]
fn parallel_tool_calls_and_pictures_go_there_and_back() {
    let server = ModelServer::start().unwrap();
    let two = vec![Action::text("I look."), Action::shell("ls"), Action::shell("pwd")];
    server.script("tools", Script::turns([Turn::from(two), Turn::from(Action::text("Done."))]));
    each(|wire, stream| {
        let profile = profile(&server, wire, "tools");
        let mut request = request(stream);
        let first = client().call(&profile, &request, &mut NoSink).unwrap();
        assert_eq!(first.stop, StopReason::ToolUse, "{wire:?} {stream}");
        let calls: Vec<_> = first.tool_calls().cloned().collect();
        let commands: Vec<&Value> = calls.iter().map(|c| &c.input["command"]).collect();
        assert_eq!(commands, ["ls", "pwd"], "{wire:?} {stream}");
        assert_ne!(calls[0].id, calls[1].id, "{wire:?} {stream}");
        let picture = Image { media_type: "image/png".into(), base64: "aGVsbG8=".into() };
        let results = calls.iter().enumerate().map(|(at, call)| ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            text: format!("result {at}"),
            images: if at == 0 { vec![picture.clone()] } else { vec![] },
            is_error: at == 1,
        });
        request.messages.push(Message::Assistant { parts: first.parts.clone() });
        request.messages.push(Message::ToolResults { results: results.collect() });
        let second = client().call(&profile, &request, &mut NoSink).unwrap();
        assert_eq!(
            (second.text().as_str(), second.stop),
            ("Done.", StopReason::EndTurn),
            "{wire:?} {stream}"
        );
        let body = seen(&server, wire, "tools").pop().unwrap().body;
        pictured(wire, &body);
    });
}

/// The picture is in the wire's own place for pictures.
#[track_caller]
fn pictured(wire: Wire, body: &Value) {
    let url = "data:image/png;base64,aGVsbG8=";
    match wire {
        Wire::Anthropic => {
            let results = &body["messages"][2]["content"];
            assert_eq!(results[0]["content"][1]["source"]["data"], "aGVsbG8=");
            assert_eq!((&results[0]["is_error"], &results[1]["is_error"]), (&json!(false), &json!(true)));
            assert_eq!(body["messages"][1]["content"][0]["text"], "I look.");
        }
        Wire::OpenaiChat => {
            let messages = body["messages"].as_array().unwrap();
            let roles: Vec<&str> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
            assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
            assert_eq!(messages[5]["content"][1]["image_url"]["url"], url);
            assert_eq!(messages[4]["content"], "The tool failed:\nresult 1");
        }
        Wire::OpenaiResponses => {
            let output = body["input"].as_array().unwrap();
            let with = output.iter().find(|i| i["type"] == "function_call_output").unwrap();
            assert_eq!(with["output"][1], json!({ "type": "input_image", "image_url": url }));
        }
        Wire::Gemini => {
            let parts = body["contents"][2]["parts"].as_array().unwrap();
            assert_eq!(parts[1]["functionResponse"]["response"], json!({ "error": "result 1" }));
            assert_eq!(parts[2]["inlineData"], json!({ "mimeType": "image/png", "data": "aGVsbG8=" }));
        }
    }
}

#[test]
fn settings_and_schemas_are_put_in_each_wires_words() {
    let server = ModelServer::start().unwrap();
    let schema = json!({ "type": "object", "additionalProperties": false, "properties": { "a": { "type": "string" } }, "required": ["a"] });
    for wire in WIRES {
        let profile = Profile {
            max_output_tokens: Some(9000),
            temperature: Some(0.5),
            ..profile(&server, wire, "text")
        };
        let request = ModelRequest { json_schema: Some(schema.clone()), tools: vec![], ..request(false) };
        client().call(&profile, &request, &mut NoSink).unwrap();
        let body = seen(&server, wire, "text").pop().unwrap().body;
        let at = |pointer: &str| body.pointer(pointer).cloned().unwrap_or(Value::Null);
        let (most, warm, asked) = match wire {
            Wire::Anthropic => ("/max_tokens", "/temperature", "/output_config/format/schema"),
            Wire::OpenaiChat => ("/max_tokens", "/temperature", "/response_format/json_schema/schema"),
            Wire::OpenaiResponses => ("/max_output_tokens", "/temperature", "/text/format/schema"),
            Wire::Gemini => (
                "/generationConfig/maxOutputTokens",
                "/generationConfig/temperature",
                "/generationConfig/responseJsonSchema",
            ),
        };
        assert_eq!((at(most), at(warm), at(asked)), (json!(500), json!(0.5), schema.clone()), "{wire:?}");
    }
}

#[test]
fn anthropic_gets_at_most_four_cache_marks_and_the_newest_end_is_one() {
    let server = ModelServer::start().unwrap();
    let mark = |text: &str| UserPart::Text(TextPart::cached(text));
    let request = ModelRequest {
        system: (0..4).map(|n| TextPart::cached(format!("part {n}"))).collect(),
        messages: vec![Message::User { parts: vec![mark("a"), mark("b"), mark("c")] }],
        ..request(false)
    };
    client().call(&profile(&server, Wire::Anthropic, "text"), &request, &mut NoSink).unwrap();
    let body = seen(&server, Wire::Anthropic, "text").pop().unwrap().body;
    let marked = |list: &Value| -> Vec<bool> {
        list.as_array().unwrap().iter().map(|b| !b["cache_control"].is_null()).collect()
    };
    assert_eq!(marked(&body["system"]), [false, false, false, true]);
    assert_eq!(marked(&body["messages"][0]["content"]), [true, true, true]);
}

#[test]
fn opaque_parts_are_sent_back_unchanged() {
    let server = ModelServer::start().unwrap();
    let opaque = |wire: Wire, value: Value| ReplyPart::Opaque { wire: wire.as_str().into(), value };
    let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "s1" });
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": [] });
    let all = vec![
        opaque(Wire::Anthropic, thinking.clone()),
        opaque(Wire::OpenaiResponses, reasoning.clone()),
        opaque(Wire::OpenaiChat, json!({ "reasoning_content": "hm" })),
        opaque(Wire::Gemini, json!({ "thoughtSignature": "s2" })),
        ReplyPart::Text { text: "Well.".into() },
    ];
    for wire in WIRES {
        let messages = vec![user("a"), Message::Assistant { parts: all.clone() }, user("b")];
        let request = ModelRequest { messages, ..request(false) };
        client().call(&profile(&server, wire, "text"), &request, &mut NoSink).unwrap();
        let body = seen(&server, wire, "text").pop().unwrap().body;
        match wire {
            Wire::Anthropic => assert_eq!(body["messages"][1]["content"][0], thinking),
            Wire::OpenaiChat => assert_eq!(body["messages"][2]["reasoning_content"], "hm"),
            Wire::OpenaiResponses => assert_eq!(body["input"][1], reasoning),
            Wire::Gemini => assert_eq!(
                body["contents"][1]["parts"],
                json!([{ "text": "Well.", "thoughtSignature": "s2" }])
            ),
        }
    }
}

#[test]
fn temporary_failures_are_retried() {
    let server = ModelServer::start().unwrap();
    let faults = [
        ("overloaded", FaultKind::Overloaded),
        ("unavailable", FaultKind::Unavailable),
        ("error", FaultKind::ServerError),
        ("limit", FaultKind::RateLimit { retry_after_s: 0 }),
        ("event", FaultKind::StreamError),
        ("cut", FaultKind::Cut),
        ("hangup", FaultKind::Hangup),
    ];
    for (name, kind) in faults {
        each(|wire, stream| {
            // Gemini sends its wait in whole seconds; another test covers that.
            if wire == Wire::Gemini && matches!(kind, FaultKind::RateLimit { .. }) {
                return;
            }
            let scenario = format!("{name}-{stream}");
            let script = Script::turns([Action::text("A long enough answer to be cut in its middle.")]);
            server.script(&scenario, script.with_fault(Fault::times(kind.clone(), 2)));
            let mut sink = RecordingSink::default();
            let profile = profile(&server, wire, &scenario);
            let reply = client().call(&profile, &request(stream), &mut sink);
            let reply = reply.unwrap_or_else(|e| panic!("{name} {wire:?} {stream}: {e:?}"));
            assert_eq!(reply.tries, 3, "{name} {wire:?} {stream}");
            assert_eq!(
                reply.text(),
                "A long enough answer to be cut in its middle.",
                "{name} {wire:?} {stream}"
            );
            // Gemini sends the beginning of an answer before the error in the stream; that text was already reported.
            let heard = sink.text.strip_prefix("I \n").filter(|_| name == "event" && wire == Wire::Gemini);
            let heard = heard.unwrap_or(&sink.text);
            assert_eq!(heard, reply.text(), "nothing is said twice: {name} {wire:?} {stream}");
            assert_eq!(sink.waits.len(), 2, "{name} {wire:?} {stream}");
        });
    }
}

#[test]
fn permanent_failures_are_classified_and_not_retried() {
    let server = ModelServer::start().unwrap();
    use ModelErrorKind as K;
    let cases = [
        (FaultKind::Auth, K::Auth),
        (FaultKind::Forbidden, K::Auth),
        (FaultKind::Credit, K::Billing),
        (FaultKind::TooLong, K::ContextTooLong),
        (FaultKind::NoModel, K::NotFound),
    ];
    for (kind, want) in cases {
        each(|wire, stream| {
            let scenario = format!("stays-{kind:?}-{stream}");
            server.script(
                &scenario,
                Script::turns([Action::text("x")]).with_fault(Fault::always(kind.clone())),
            );
            let error = call(&server, wire, &scenario, stream).unwrap_err();
            // Gemini answers 400 for an invalid key.
            let want = if wire == Wire::Gemini && kind == FaultKind::Credit { K::Auth } else { want.clone() };
            assert_eq!(error.kind, want, "{wire:?} {stream}: {error:?}");
            assert_eq!(seen(&server, wire, &scenario).len(), 1, "{kind:?} {wire:?}");
            assert!(error.message.contains("127.0.0.1:"), "{error}");
            assert!(!error.message.contains(KEY) && error.hint.is_some(), "{error:?}");
        });
    }
}

#[test]
fn exhausted_quota_is_billing_if_the_provider_says_so() {
    let server = ModelServer::start().unwrap();
    for wire in [Wire::OpenaiChat, Wire::OpenaiResponses] {
        assert_eq!(call(&server, wire, "quota", false).unwrap_err().kind, ModelErrorKind::Billing);
    }
}

#[test]
fn requested_wait_is_kept_and_a_long_one_is_passed_on() {
    let server = ModelServer::start().unwrap();
    for wire in WIRES {
        let mut sink = RecordingSink { ends_waits: true, ..RecordingSink::default() };
        let profile = profile(&server, wire, "rl429");
        let error = client().call(&profile, &request(true), &mut sink).unwrap_err();
        assert_eq!(
            error.kind,
            ModelErrorKind::Stopped(StopCause::Cancelled),
            "{wire:?}: the wait was ended at once"
        );
        assert_eq!(sink.waits, [Duration::from_secs(1)], "{wire:?}: exactly what the server named");
        assert!(sink.reasons[0].contains("429"), "{:?}", sink.reasons);
        let mut sink = RecordingSink::default();
        let error =
            client().call(&self::profile(&server, wire, "rl429long"), &request(true), &mut sink).unwrap_err();
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(error.kind, ModelErrorKind::RateLimited { retry_after: hour }, "{wire:?}");
        assert!(sink.waits.is_empty(), "an hour is not slept out");
    }
}

#[test]
fn an_error_inside_a_stream_keeps_its_meaning() {
    let server = ModelServer::start().unwrap();
    for wire in WIRES {
        for (scenario, limited) in [("streamrl", true), ("streamerr", false)] {
            let profile = Profile { max_retries: Some(0), ..profile(&server, wire, scenario) };
            let error = client().call(&profile, &request(true), &mut NoSink).unwrap_err();
            let is_limit = matches!(error.kind, ModelErrorKind::RateLimited { .. });
            assert_eq!(is_limit, limited, "{wire:?} {scenario}: {error:?}");
            assert_eq!(error.kind == ModelErrorKind::Overloaded, !limited, "{wire:?} {scenario}: {error:?}");
            assert!(error.message.contains("broke off with an error"), "{wire:?} {scenario}: {error}");
        }
    }
}

#[test]
fn tries_are_bounded_by_the_profile() {
    let server = ModelServer::start().unwrap();
    let profile = Profile { max_retries: Some(2), ..profile(&server, Wire::OpenaiChat, "overloaded") };
    let error = client().call(&profile, &request(false), &mut NoSink).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    assert!(error.message.ends_with("(3 tries)"), "{error}");
    assert_eq!(server.requests("overloaded", "openai-chat").len(), 3);
}

#[test]
fn silence_and_invalid_answers_are_classified() {
    let server = ModelServer::start().unwrap();
    each(|wire, stream| {
        let quick = TimeoutConfig { connect: None, first_byte: Some(1), stall: Some(1) };
        let once = |scenario: &str| Profile { max_retries: Some(0), ..profile(&server, wire, scenario) };
        let silent = Profile { timeouts: Some(quick), ..once("stall") };
        let stall = client().call(&silent, &request(stream), &mut NoSink).unwrap_err();
        assert_eq!(stall.kind, ModelErrorKind::TimedOut, "{wire:?} {stream}: {stall}");
        let garbled = client().call(&once("garbled"), &request(stream), &mut NoSink).unwrap_err();
        assert_eq!(garbled.kind, ModelErrorKind::Garbled, "{wire:?} {stream}: {garbled}");
    });
}

#[test]
fn refused_connection_is_unreachable_with_the_address() {
    let server = ModelServer::start().unwrap();
    let profile = Profile { max_retries: Some(1), ..profile(&server, Wire::OpenaiChat, "text") };
    let port = server.port();
    drop(server);
    let error = client().call(&profile, &request(true), &mut NoSink).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    assert!(error.message.contains(&format!("127.0.0.1:{port}")), "{error}");
    assert!(error.message.to_lowercase().contains("refused"), "{error}");
}

#[test]
fn a_schema_that_the_server_refuses_is_left_out() {
    let server = ModelServer::start().unwrap();
    let body = r#"{"error":{"message":"Invalid schema for response_format 'answer'","type":"invalid_request_error"}}"#;
    let refuse = FaultKind::Http { status: 400, headers: vec![], body: body.into() };
    server.script("strict", Script::turns([Action::text("{}")]).with_fault(Fault::times(refuse, 1)));
    let request = ModelRequest { json_schema: Some(json!({ "type": "object" })), ..request(false) };
    let profile = profile(&server, Wire::OpenaiChat, "strict");
    let reply = client().call(&profile, &request, &mut NoSink).unwrap();
    assert_eq!(reply.text(), "{}");
    let seen = seen(&server, Wire::OpenaiChat, "strict");
    assert!(!seen[0].body["response_format"].is_null() && seen[1].body["response_format"].is_null());
}

#[test]
fn redirect_is_not_followed_and_keys_in_errors_are_redacted() {
    let server = ModelServer::start().unwrap();
    let moved = FaultKind::Http {
        status: 307,
        headers: vec![("location".into(), server.base_url("text", "elsewhere"))],
        body: String::new(),
    };
    server.script("moved", Script::turns([Action::text("x")]).with_fault(Fault::always(moved)));
    let error = call(&server, Wire::OpenaiChat, "moved", false).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::NotFound, "{error}");
    assert!(server.requests("text", "elsewhere").is_empty());
    let body = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}."}}}}"#);
    let echo = FaultKind::Http { status: 401, headers: vec![], body };
    server.script("echo", Script::turns([Action::text("x")]).with_fault(Fault::always(echo)));
    let error = call(&server, Wire::OpenaiChat, "echo", false).unwrap_err();
    assert!(error.message.contains("[key]") && !error.message.contains(KEY), "{error}");
}

#[test]
fn a_missing_key_names_the_variable_and_the_profile() {
    let profile = Profile::of_model("cheap", "zai/glm-4.7");
    let error =
        HttpModelClient::new(|_: &str| None).call(&profile, &request(false), &mut NoSink).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(error.message, "profile `cheap` (zai/glm-4.7) has no key: ZAI_API_KEY is not set");
}

#[test]
fn several_threads_may_call_at_once() {
    let server = ModelServer::start().unwrap();
    server.script("both", Script::turns([Action::text("yes")]));
    let client = client();
    let profile = profile(&server, Wire::OpenaiChat, "both");
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn({
                    let (client, profile) = (&client, &profile);
                    move || client.call(profile, &request(n % 2 == 0), &mut NoSink)
                })
            })
            .collect();
        for call in calls {
            assert_eq!(call.join().unwrap().unwrap().text(), "yes");
        }
    });
}

/// A server that answers once on a connection and closes it silently, as many do after a while.
#[test]
fn closed_idle_connection_is_not_a_failure() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (closed, is_closed) = std::sync::mpsc::channel();
    let serving = std::thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let body = r#"{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}"#;
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            drop((stream, reader));
            closed.send(()).unwrap();
        }
    });
    let client = client();
    let profile = Profile {
        base_url: Some(format!("http://127.0.0.1:{port}")),
        api_key_env: Some(String::new()),
        ..Profile::of_model("closing", "openai/x")
    };
    for _ in 0..3 {
        let reply = client.call(&profile, &request(false), &mut NoSink).unwrap();
        assert_eq!((reply.text().as_str(), reply.tries), ("yes", 1));
        is_closed.recv().unwrap();
    }
    serving.join().unwrap();
}
