//! What the guard costs: `exec(/bin/true)` through it, beside a plain spawn, and the guard's memory.
//!
//! `cargo run --release -p ralph-loop-sandbox --example spawn_cost [rounds]`
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement of plain spawns, for people"
)]

use ralph_loop_domain::ports::{ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use std::error::Error;
use std::ops::ControlFlow;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Count(u64);

impl ExecSink for Count {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    ralph_loop_sandbox::init();
    let rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(500);
    let begun = Instant::now();
    let sandbox = LocalSandbox::start(
        &std::env::temp_dir(),
        LocalOptions::new("spawn-cost", &ralph_loop_testkit::vars()),
    )?;
    println!("guard up in      {:.3} ms", millis(begun.elapsed()));
    let request = ExecRequest::new(vec!["/bin/true".to_owned()]);
    let (mut guarded, mut plain) = (Vec::new(), Vec::new());
    // In turns, so that a busy moment of the machine falls on both.
    for _ in 0..rounds {
        let begun = Instant::now();
        sandbox.exec(&request, &mut Count(0))?;
        guarded.push(begun.elapsed());
        let begun = Instant::now();
        Command::new("/bin/true").stdin(Stdio::null()).output()?;
        plain.push(begun.elapsed());
    }
    let (guarded, plain) = (Times::of(guarded), Times::of(plain));
    println!("through guard    mean {:.3} ms, median {:.3} ms", guarded.mean, guarded.median);
    println!("plain spawn      mean {:.3} ms, median {:.3} ms", plain.mean, plain.median);
    println!(
        "difference       mean {:.3} ms, median {:.3} ms",
        guarded.mean - plain.mean,
        guarded.median - plain.median
    );
    let begun = Instant::now();
    let mut count = Count(0);
    let flood = ["head", "-c", "1000000000", "/dev/zero"].map(String::from).to_vec();
    sandbox.exec(&ExecRequest::new(flood), &mut count)?;
    println!("output           {:.0} MB/s", count.0 as f64 / 1e6 / begun.elapsed().as_secs_f64());
    if let Some(pid) = sandbox.guard_pid() {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        for line in status
            .lines()
            .filter(|l| ["VmHWM", "VmRSS", "RssAnon", "RssFile"].iter().any(|k| l.starts_with(k)))
        {
            println!("guard {line}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

struct Times {
    mean: f64,
    median: f64,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        let count = u32::try_from(times.len().max(1)).unwrap_or(1);
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        Self { mean: millis(times.iter().sum::<Duration>() / count), median: millis(median) }
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
