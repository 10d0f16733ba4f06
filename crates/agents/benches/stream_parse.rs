//! Measures speed and memory of reading a long session: 100 MB of claude's stream-json, a realistic mix of
//! many small events, tool uses and some big tool results. Only prints numbers, so a slow machine doesn't fail.
//!
//! `cargo bench -p ralph-loop-agents --bench stream_parse`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and prints what it measured"
)]

use ralph_loop_agents::cli::replay;
use ralph_loop_domain::ports::{ExecEnd, ExecOutcome, SessionSink, StopCause, Stream};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_task::config::OutputFormat;
use serde_json::json;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const MEGABYTE: usize = 1_000_000;
const WANTED: usize = 100 * MEGABYTE;
/// Bytes per read from a pipe.
const PIECE: usize = 64 * 1024;

/// Counts the parser's calls.
#[derive(Default)]
struct Count {
    activities: u64,
    actions: u64,
}

impl SessionSink for Count {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn activity(&mut self, _: &str) {
        self.activities += 1;
    }
    fn action(&mut self, _: &str) {
        self.actions += 1;
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// Lines of code as a tool prints them, about `bytes` long.
fn code(bytes: usize, seed: usize) -> String {
    let mut text = String::with_capacity(bytes + 80);
    let mut n = seed;
    while text.len() < bytes {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!(
            "{:>6}\t    let value_{} = \"path/to/{n:x}\"; // a comment\n",
            text.len() / 60,
            n % 97
        ));
    }
    text
}

fn event(kind: &str, n: usize, content: serde_json::Value) -> String {
    let usage = json!({"input_tokens": 3, "cache_creation_input_tokens": 120, "cache_read_input_tokens": 18_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 120, "ephemeral_1h_input_tokens": 0}, "output_tokens": 40, "service_tier": "standard"});
    let message = if kind == "assistant" {
        json!({"id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": content, "stop_reason": null, "stop_sequence": null, "usage": usage})
    } else {
        json!({"role": "user", "content": content})
    };
    // As the CLI writes it: the type comes first.
    let rest = json!({"message": message, "parent_tool_use_id": null, "session_id": "6f1c", "uuid": format!("{n:032x}")});
    format!("{{\"type\":\"{kind}\",{}\n", &rest.to_string()[1..])
}

/// One turn of a session: some words, a tool use, its result; now and then a large one, and ignored hook events.
fn turn(n: usize) -> String {
    let id = format!("toolu_{n}");
    let mut lines = event("assistant", n, json!([{"type": "text", "text": code(200, n)}]));
    let (name, input) = match n % 3 {
        0 => ("Read", json!({"file_path": format!("/w/repo/src/file_{n}.rs")})),
        1 => (
            "Edit",
            json!({"file_path": "/w/repo/src/lib.rs", "old_string": code(300, n), "new_string": code(400, n + 1)}),
        ),
        _ => ("Bash", json!({"command": "cargo test --workspace", "description": "Run the tests"})),
    };
    lines += &event("assistant", n, json!([{"type": "tool_use", "id": id, "name": name, "input": input}]));
    let size = match n % 100 {
        0 => 400_000,
        k if k % 10 == 0 => 20_000,
        _ => 3_000,
    };
    lines += &event(
        "user",
        n,
        json!([{"type": "tool_result", "tool_use_id": id, "is_error": false, "content": code(size, n)}]),
    );
    lines += &format!("{{\"type\":\"system\",\"subtype\":\"hook_response\",\"n\":{n}}}\n");
    lines +=
        &format!("{{\"type\":\"stream_event\",\"event\":{{\"type\":\"content_block_delta\",\"n\":{n}}}}}\n");
    lines
}

fn stream() -> Vec<u8> {
    let mut bytes =
        b"{\"type\":\"system\",\"subtype\":\"init\",\"model\":\"claude-sonnet-4-5\",\"tools\":[]}\n".to_vec();
    let mut n = 0;
    while bytes.len() < WANTED {
        bytes.extend_from_slice(turn(n).as_bytes());
        n += 1;
    }
    bytes.extend_from_slice(b"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"num_turns\":9}\n");
    bytes
}

/// The peak memory of this process, in bytes; 0 if the system doesn't report it.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap_or(0) * 1024
}

fn main() {
    let bytes = stream();
    let lines = bytes.iter().filter(|b| **b == b'\n').count();
    // Resets the peak, which so far is that of creating the stream, if the system supports it.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = peak();
    let mut best = Duration::MAX;
    let mut count = Count::default();
    for _ in 0..5 {
        count = Count::default();
        let outcome = ExecOutcome { end: ExecEnd::Exited(0), duration: Duration::ZERO, survivors: 0 };
        let pieces = bytes.chunks(PIECE).map(|piece| (Stream::Stdout, piece));
        let started = Instant::now();
        let now = "2026-11-15T03:00:00Z".parse().unwrap();
        let report = replay(OutputFormat::ClaudeStreamJson, pieces, &outcome, now, &mut count);
        best = best.min(started.elapsed());
        assert_eq!(report.end, SessionEnd::Completed);
    }
    let megabytes = bytes.len() as f64 / MEGABYTE as f64;
    println!(
        "stream_parse: {megabytes:.1} MB, {lines} lines, {} activities, {} actions",
        count.activities, count.actions
    );
    println!(
        "stream_parse: {:.3} s, {:.0} MB/s (best of 5)",
        best.as_secs_f64(),
        megabytes / best.as_secs_f64()
    );
    println!(
        "stream_parse: the peak of memory grew by {:.1} MB",
        peak().saturating_sub(before) as f64 / MEGABYTE as f64
    );
}
