//! Measures the terminal UI: its first frame, a frame with 100,000 lines, a key during a flood of output, its memory, and its idle
//! load.
//!
//! `cargo run --release -p ralph-loop-testkit --features tui-bench --bin ralph-tui-bench`, with the binary to measure in `RALPH_BIN`
//! (default: `ralph` next to this program).
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark starts processes and prints a table"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark fails by panicking")]

use ralph_loop_testkit::{TestEnv, TestRepo};
use ralph_loop_tui::bench::Stage;
use serde_json::json;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The largest screen that is drawn.
const SIZE: (u16, u16) = (200, 60);
const LINES: usize = 100_000;
/// Bytes of output per second, and per batch.
const FLOOD: usize = 10 * 1024 * 1024;
const BATCH: usize = 64 * 1024;

fn main() {
    let ralph = std::env::var_os("RALPH_BIN")
        .map(std::path::PathBuf::from)
        .unwrap_or_else(|| std::env::current_exe().expect("own path").with_file_name("ralph"));
    println!("{:<44} {:>12} {:>10}", "", "measured", "allowed");
    let mut stage = Stage::new(&view(), LINES, SIZE).expect("a stage");
    row("a frame with 100,000 lines (median)", frame(&mut stage), "4 ms");
    row("a key under 10 MB/s of output (p99)", flooded(&mut stage), "16 ms");
    let env = TestEnv::new(ralph.clone());
    let repo = TestRepo::with_task(&env);
    let mut first: Vec<Duration> = (0..9).map(|_| first_frame(&env, &repo, &ralph)).collect();
    first.sort();
    row("the first frame after the start (median)", format!("{:.1} ms", ms(first[first.len() / 2])), "50 ms");
    let (memory, cpu) = idle(&env, &repo, &ralph);
    // This measures the memory of the lines; the rest is measured in the process itself.
    let lines = resident(std::process::id());
    row("memory while open, and of 100,000 lines", format!("{memory:.1}+{lines:.1} MB"), "60 MB");
    row("processor while nothing happens", format!("{cpu:.2} %"), "0.5 %");
}

fn row(name: &str, measured: String, allowed: &str) {
    println!("{name:<44} {measured:>12} {allowed:>10}");
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn frame(stage: &mut Stage) -> String {
    let mut times: Vec<Duration> = (0..200)
        .map(|n| {
            // Changes something, as in real use.
            stage.output(&format!("one more line, number {n}\n"));
            let begun = Instant::now();
            stage.frame();
            begun.elapsed()
        })
        .collect();
    times.sort();
    format!("{:.2} ms", ms(times[times.len() / 2]))
}

/// Output arrives at this rate for some seconds; a key at any time waits for the current batch and
/// then for its frame.
fn flooded(stage: &mut Stage) -> String {
    let batch = "some words that an agent prints in a hurry, line after line\n".repeat(BATCH / 60);
    let mut times = Vec::new();
    let begun = Instant::now();
    for n in 0..(5 * FLOOD / BATCH) {
        // Limits the output to the rate.
        while begun.elapsed().as_secs_f64() * FLOOD as f64 <= (n * BATCH) as f64 {
            std::thread::yield_now();
        }
        let pressed = Instant::now();
        stage.output(&batch);
        stage.key(if n % 2 == 0 { '1' } else { '2' });
        stage.frame();
        times.push(pressed.elapsed());
    }
    times.sort();
    format!("{:.2} ms", ms(times[times.len() * 99 / 100]))
}

/// `ralph` on a separate terminal.
fn open(env: &TestEnv, repo: &TestRepo<'_>, ralph: &std::path::Path) -> Child {
    let mut script = Command::new("script");
    // A terminal without a viewer has no size.
    let line = format!("stty rows {} cols {}; exec {}", SIZE.1, SIZE.0, ralph.display());
    script.args(["-q", "-f", "-c", &line, "/dev/null"]).current_dir(&repo.dir);
    script.env_clear().envs(env.vars()).env("TERM", "xterm-256color");
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    script.spawn().expect("`script` makes the terminal")
}

fn until_drawn(child: &mut Child) {
    let mut seen = Vec::new();
    let mut piece = [0_u8; 4096];
    let stdout = child.stdout.as_mut().expect("a pipe");
    while !String::from_utf8_lossy(&seen).contains("Welcome") {
        let count = stdout.read(&mut piece).expect("the terminal can be read");
        assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..count]);
    }
}

fn first_frame(env: &TestEnv, repo: &TestRepo<'_>, ralph: &std::path::Path) -> Duration {
    let begun = Instant::now();
    let mut child = open(env, repo, ralph);
    until_drawn(&mut child);
    let took = begun.elapsed();
    end(&mut child);
    took
}

fn end(child: &mut Child) {
    if let Some(pid) = own_process(child.id()) {
        let _ = Command::new("kill").arg(pid.to_string()).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The process below `script`.
fn own_process(script: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{script}/task/{script}/children")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Megabytes of memory and CPU share over ten idle seconds.
fn idle(env: &TestEnv, repo: &TestRepo<'_>, ralph: &std::path::Path) -> (f64, f64) {
    let mut child = open(env, repo, ralph);
    until_drawn(&mut child);
    std::thread::sleep(Duration::from_secs(3));
    let pid = own_process(child.id()).expect("a process");
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("its numbers");
        let after = stat.rsplit(')').next().unwrap_or_default().to_owned();
        let parts: Vec<u64> =
            after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse().ok()).collect();
        parts.iter().sum::<u64>()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(10));
    let used = ticks() - before;
    let memory = resident(pid);
    end(&mut child);
    // A tick is a hundredth of a second.
    (memory, used as f64 / 10.0)
}

/// Megabytes of memory of a process.
fn resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: f64 =
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default();
    kilobytes / 1024.0
}

fn view() -> String {
    let tokens = json!({ "input": 1, "output": 1, "cached": 0, "cache_write": 0 });
    json!({
        "run_id": "20261115-143307-k3f9", "title": "Keep the order of messages", "status": "working",
        "now": "codex is working", "driven": true, "orphaned": false, "seq": 44,
        "created_at": "2026-11-15T14:33:07Z", "last_event_at": "2026-11-15T14:39:50Z",
        "elapsed_seconds": 413.0, "working_seconds": 400.0,
        "criteria": [], "checks": [], "budgets": [],
        "spent": { "cost_usd": 1.0, "cost_basis": "reported", "saved_usd": 0.0, "tokens": tokens, "sessions": 7 },
        "agents": [], "iterations": 6, "history": [], "loop_score": 0.3,
        "workspace": "/repo", "origin": "/repo",
    })
    .to_string()
}
