//! What a model call costs beyond the call itself: our client against a bare keep-alive request over a raw socket, both
//! to the same scripted server on this machine. `cargo bench -p ralph-loop-agents --bench model_call`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends where it cannot measure"
)]

use ralph_loop_agents::HttpModelClient;
use ralph_loop_domain::model::{Message, ModelClient as _, ModelRequest, NoSink, TextPart, UserPart};
use ralph_loop_task::config::{Profile, Wire};
use ralph_loop_testkit::model_server::{Action, ModelServer, Script};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const WARM: usize = 50;
const ROUNDS: usize = 500;

fn main() {
    let server = ModelServer::start().unwrap();
    server.script("bench", Script::turns([Action::text("A short answer, as models give them.")]));
    let base = format!("{}/v1", server.base_url("bench", "one"));
    let profile = Profile {
        base_url: Some(base.clone()),
        api_key_env: Some(String::new()),
        wire: Some(Wire::OpenaiChat),
        ..Profile::of_model("bench", "openai/gpt-4.1")
    };
    let client = HttpModelClient::new(|_: &str| None);
    println!("{ROUNDS} calls each, in turns; p50 in ms");
    for stream in [false, true] {
        let request = ModelRequest {
            system: vec![TextPart::cached("You are brief. ".repeat(100))],
            messages: vec![Message::User { parts: vec![UserPart::Text(TextPart::plain("Hello"))] }],
            stream,
            ..ModelRequest::default()
        };
        // The bare call sends the same body.
        client.call(&profile, &request, &mut NoSink).unwrap();
        let body = server.requests("bench", "one").pop().unwrap().body.to_string();
        let mut bare = Bare::new(server.port(), &base, &body);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..WARM + ROUNDS {
            let started = Instant::now();
            bare.call(stream);
            let bare_took = started.elapsed();
            let started = Instant::now();
            let reply = client.call(&profile, &request, &mut NoSink).unwrap();
            let took = started.elapsed();
            assert!(!reply.text().is_empty());
            if round >= WARM {
                theirs.push(bare_took);
                ours.push(took);
            }
        }
        let (ours, theirs) = (p50(ours), p50(theirs));
        let name = if stream { "streaming" } else { "plain" };
        println!(
            "{name:<10} client {ours:.3}  bare {theirs:.3}  overhead {:.3} ms  ratio {:.2}",
            ours - theirs,
            ours / theirs
        );
    }
}

fn p50(mut all: Vec<Duration>) -> f64 {
    all.sort_unstable();
    all[all.len() / 2].as_secs_f64() * 1000.0
}

/// A keep-alive connection that reads exactly one answer.
struct Bare {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl Bare {
    fn new(port: u16, base: &str, body: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let path = base.split_once(&format!(":{port}")).unwrap().1;
        let request = format!(
            "POST {path}/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Self { stream, request: request.into_bytes(), buffer: Vec::new() }
    }

    fn call(&mut self, stream: bool) {
        self.stream.write_all(&self.request).unwrap();
        self.buffer.clear();
        let mut piece = [0; 16 * 1024];
        loop {
            let count = self.stream.read(&mut piece).unwrap();
            assert!(count > 0, "the server hung up");
            self.buffer.extend_from_slice(&piece[..count]);
            if self.whole(stream) {
                return;
            }
        }
    }

    fn whole(&self, stream: bool) -> bool {
        let Some(head) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") else { return false };
        let headers = String::from_utf8_lossy(&self.buffer[..head]).to_lowercase();
        match headers.lines().find_map(|l| l.strip_prefix("content-length:")) {
            Some(length) => self.buffer.len() - head - 4 >= length.trim().parse::<usize>().unwrap(),
            None => {
                assert!(stream, "a plain answer has a length");
                self.buffer.ends_with(b"0\r\n\r\n")
            }
        }
    }
}
