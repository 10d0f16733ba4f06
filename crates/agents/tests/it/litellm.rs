//! A real LiteLLM proxy between our client and the scripted model server. `scripts/litellm` installs it once;
//! `RALPH_LITELLM=0` leaves this out.
#![allow(clippy::disallowed_methods, reason = "starts the proxy and waits for it")]

use ralph_loop_agents::HttpModelClient;
use ralph_loop_domain::model::price::PriceTable;
use ralph_loop_domain::model::{
    Message, ModelClient, ModelError, ModelErrorKind, ModelReply, ModelRequest, ModelSink, NoSink,
    StopReason, TextPart, ToolSpec, UserPart,
};
use ralph_loop_domain::ports::StopCause;
use ralph_loop_protocol::money::{Tokens, Usd};
use ralph_loop_task::config::{Profile, Wire};
use ralph_loop_testkit::model_server::{Action, ModelServer, Script};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The proxy's key.
fn master() -> String {
    ["sk", "-ralph-proxy-test"].concat()
}

/// The installed proxy; `None` if it is left out.
fn installed() -> Option<PathBuf> {
    if std::env::var("RALPH_LITELLM").is_ok_and(|v| v == "0") {
        ralph_loop_testkit::skip("RALPH_LITELLM=0 leaves the LiteLLM proxy out");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/litellm");
    let done = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    if !done.status.success() {
        // A machine without Python or a package index can run the rest; CI has both.
        assert!(
            std::env::var_os("CI").is_none(),
            "scripts/litellm failed; RALPH_LITELLM=0 leaves this test out"
        );
        ralph_loop_testkit::skip("the LiteLLM proxy cannot be installed here (scripts/litellm says why)");
        return None;
    }
    Some(String::from_utf8(done.stdout).unwrap().trim().into())
}

/// A running proxy; ended on drop.
struct Proxy {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Proxy {
    fn start(program: &Path, server: &ModelServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let route = |name: &str, model: &str, base: String| json!({ "model_name": name, "litellm_params": { "model": model, "api_base": base, "api_key": "upstream" } });
        let chat = |scenario: &str| format!("{}/v1", server.base_url(scenario, "proxied"));
        let config = json!({
            "model_list": [
                route("glm", "zai/glm-4.7", chat("text")),
                route("tools", "zai/glm-4.7", chat("tools")),
                route("claude", "anthropic/claude-sonnet-4-5", server.base_url("text", "proxied")),
                route("limited", "zai/glm-4.7", chat("rl429")),
                route("overloaded", "anthropic/claude-sonnet-4-5", server.base_url("overloaded", "proxied")),
                route("unauthorised", "openai/gpt-4.1", chat("auth")),
            ],
            "general_settings": { "master_key": master() },
            "litellm_settings": { "num_retries": 0, "telemetry": false },
            "router_settings": { "num_retries": 0, "disable_cooldowns": true },
        });
        // JSON is valid YAML.
        let path = folder.path().join("config.yaml");
        std::fs::write(&path, config.to_string()).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program)
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--config"])
            .arg(&path)
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("NO_PROXY", "127.0.0.1")
            .env_remove("DATABASE_URL")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut proxy = Self { child, port, folder };
        proxy.wait();
        proxy
    }

    /// Waits until it answers or ends. Imports take about ten seconds, and minutes on a busy machine with a slow
    /// disk: the test runner's limit is the only time limit here.
    fn wait(&mut self) {
        while !self.alive() {
            let over = self.child.try_wait().unwrap();
            assert!(over.is_none(), "the proxy did not start: {over:?}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn alive(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let asked =
            stream.write_all(b"GET /health/liveliness HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let mut head = [0; 15];
        asked.is_ok() && stream.read_exact(&mut head).is_ok() && head.starts_with(b"HTTP/1.1 200")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn profile(&self, wire: Wire, model: &str) -> Profile {
        Profile {
            base_url: Some(format!("http://127.0.0.1:{}", self.port)),
            wire: Some(wire),
            max_retries: Some(0),
            ..Profile::of_model("proxied", &format!("litellm_proxy/{model}"))
        }
    }

    fn call(&self, wire: Wire, model: &str, stream: bool) -> Result<ModelReply, ModelError> {
        client(master()).call(&self.profile(wire, model), &request(stream), &mut NoSink)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client(key: String) -> HttpModelClient {
    HttpModelClient::new(move |name: &str| (name == "LITELLM_PROXY_API_KEY").then(|| key.clone()))
}

fn request(stream: bool) -> ModelRequest {
    let schema = json!({ "type": "object", "properties": { "command": { "type": "string" } } });
    let tool = ToolSpec { name: "shell".into(), description: "Runs a command.".into(), input_schema: schema };
    ModelRequest {
        system: vec![TextPart::cached("Be brief.")],
        messages: vec![Message::User { parts: vec![UserPart::Text(TextPart::plain("Hello"))] }],
        tools: vec![tool],
        max_output_tokens: Some(100),
        stream,
        ..ModelRequest::default()
    }
}

/// Records waits and ends the first.
#[derive(Default)]
struct WaitSink(Vec<Duration>);

impl ModelSink for WaitSink {
    fn text(&mut self, _: &str) {}
    fn waiting(&mut self, wait: Duration, _: &str) {
        self.0.push(wait);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.0.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(StopCause::Cancelled) }
    }
}

/// One test, because the proxy takes long to start.
#[test]
fn a_real_litellm_proxy_is_an_endpoint_like_any_other() {
    let Some(program) = installed() else { return };
    let server = ModelServer::start().unwrap();
    server.script("tools", Script::turns([Action::shell("ls")]));
    let proxy = Proxy::start(&program, &server);

    // Plain: text, tokens with the cached ones apart, and the cost that the proxy computes from the same prices.
    let glm = Tokens { input: 1200, output: 40, cached: 800, cache_write: 0 };
    let plain =
        proxy.call(Wire::OpenaiChat, "glm", false).unwrap_or_else(|e| panic!("{e:?}\n{}", proxy.log()));
    assert!(plain.text().contains("COMPLETE"), "{plain:?}");
    assert_eq!(plain.tokens, Some(glm));
    assert_eq!(plain.cost, Some(Usd::from_dollars(0.000896)));
    assert_eq!(plain.cost, PriceTable::builtin().cost("zai/glm-4.7", &glm).map(|c| c.cost));

    // Streaming, over both of its wires.
    let streamed = proxy.call(Wire::OpenaiChat, "glm", true).unwrap();
    assert_eq!((streamed.text(), streamed.tokens), (plain.text(), Some(glm)));
    let claude = Tokens { input: 1200, output: 40, cached: 800, cache_write: 300 };
    for stream in [false, true] {
        let native = proxy
            .call(Wire::Anthropic, "claude", stream)
            .unwrap_or_else(|e| panic!("{e:?}\n{}", proxy.log()));
        assert_eq!((native.text(), native.tokens), (plain.text(), Some(claude)), "stream {stream}");
    }
    let translated = proxy.call(Wire::OpenaiChat, "claude", false).unwrap();
    assert_eq!(translated.tokens, Some(claude));
    let asked =
        server.requests("text", "proxied").into_iter().rev().find(|r| r.path.ends_with("/v1/messages"));
    let system = asked.unwrap().body["system"].clone();
    assert_eq!(system[0]["cache_control"]["type"], "ephemeral", "cache marks go through: {system}");

    // Tools.
    for stream in [false, true] {
        let called = proxy.call(Wire::OpenaiChat, "tools", stream).unwrap();
        assert_eq!(called.stop, StopReason::ToolUse, "stream {stream}");
        assert_eq!(called.tool_calls().next().unwrap().input, json!({ "command": "ls" }), "stream {stream}");
    }

    // Failures keep their kind.
    let again = Profile { max_retries: Some(1), ..proxy.profile(Wire::OpenaiChat, "limited") };
    let mut sink = WaitSink::default();
    let limited = client(master()).call(&again, &request(false), &mut sink).unwrap_err();
    assert_eq!(limited.kind, ModelErrorKind::Stopped(StopCause::Cancelled), "{limited:?}");
    assert_eq!(sink.0, [Duration::from_secs(1)], "the provider's wait comes through");
    let kind = |result: Result<ModelReply, ModelError>| result.unwrap_err().kind;
    assert_eq!(kind(proxy.call(Wire::OpenaiChat, "overloaded", false)), ModelErrorKind::Overloaded);
    assert_eq!(kind(proxy.call(Wire::Anthropic, "overloaded", true)), ModelErrorKind::Overloaded);
    assert_eq!(kind(proxy.call(Wire::OpenaiChat, "unauthorised", false)), ModelErrorKind::Auth);
    assert_eq!(kind(proxy.call(Wire::OpenaiChat, "zzz", false)), ModelErrorKind::NotFound);
    let wrong = ["sk", "-wrong"].concat();
    let profile = proxy.profile(Wire::OpenaiChat, "glm");
    let refused = client(wrong.clone()).call(&profile, &request(false), &mut NoSink).unwrap_err();
    assert_eq!(refused.kind, ModelErrorKind::Auth, "{refused:?}");
    assert!(!refused.message.contains(&wrong));
}
