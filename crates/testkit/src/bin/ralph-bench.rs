//! Measures what an iteration costs compared to a bare shell loop, in one run and as ratios.
//!
//! `cargo run --release -p ralph-loop-testkit --bin ralph-bench [-- --quick]`, with the binary to measure in `RALPH_BIN` (default:
//! `ralph` next to this program). `ralph-bench fleet [PART …] [--quick]`, built with `--features fleet-bench`, measures the overhead
//! of a fleet.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark starts processes and prints a table"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark fails by panicking")]

#[cfg(feature = "fleet-bench")]
#[path = "ralph-bench/fleet.rs"]
mod fleet;

use ralph_loop_testkit::{TestEnv, TestRepo};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

const FILES: usize = 1000;
/// The verifier, in a run and in the shell loop.
const CHECK: [&str; 3] = ["bash", "-c", "./check.sh"];

struct Bench<'a> {
    env: &'a TestEnv,
    repo: TestRepo<'a>,
}

/// A stub agent, for `ralph` and for a shell loop.
struct Stub {
    name: &'static str,
    argv: [&'static str; 3],
}

const STILL: Stub = Stub { name: "nothing changes", argv: ["/bin/sh", "-c", "echo ok"] };
const CHANGING: Stub = Stub {
    name: "one file changes",
    argv: ["/bin/sh", "-c", "echo $RALPH_ITERATION > dir1/changing.txt; echo ok"],
};

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--quick").collect();
    let parts: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let known = words.first().is_none_or(|word| word == "fleet");
    if !known || !parts.iter().all(|part| ["append", "take", "cost", "take-over", "rate"].contains(part)) {
        println!(
            "ralph-bench [--quick]\nralph-bench fleet [append] [take] [cost] [take-over] [rate] [--quick]"
        );
        println!("\nRALPH_BIN names the binary that is measured (default: `ralph` next to this program).");
        std::process::exit(if words.iter().any(|word| word == "--help" || word == "-h") { 0 } else { 2 });
    }
    let ralph = std::env::var_os("RALPH_BIN")
        .map(std::path::PathBuf::from)
        .unwrap_or_else(|| std::env::current_exe().expect("own path").with_file_name("ralph"));
    if !words.is_empty() {
        return of_fleet(&ralph, &parts, quick);
    }
    let env = TestEnv::new(ralph);
    let files: Vec<(String, String)> = (0..FILES)
        .map(|n| (format!("dir{}/file{n}.txt", n % 40), format!("content {n}\n").repeat(20)))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let repo = TestRepo::new(&env, "repo", &files);
    repo.write("PROMPT.md", "# Bench\n\nNothing to do.\n");
    std::fs::write(repo.dir.join("check.sh"), "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(repo.dir.join("check.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "task"]);
    let bench = Bench { env: &env, repo };
    let (rounds, iterations) = if quick { (3, 40) } else { (7, 100) };

    println!("repo of {FILES} files; medians over {rounds} rounds of {iterations}, taken in turns\n");
    println!(
        "{:<20} {:>10} {:>10} {:>12} {:>12} {:>16} {:>8}",
        "", "ralph", "bare sh", "difference", "git status", "in git statuses", "allowed"
    );
    for (stub, allowed) in [(&STILL, 1.0), (&CHANGING, 3.0)] {
        let (mut ours, mut bare, mut status, mut parts) =
            (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        for _ in 0..rounds {
            for _ in 0..iterations {
                status.push(bench.time(&mut || bench.run_quiet("git", &["status", "--porcelain"])));
            }
            ours.extend(bench.traced(stub, iterations, &mut parts));
            for _ in 0..5 {
                bare.push(bench.bare(stub, iterations / 5));
            }
        }
        let (ours, bare, status) = (median(&mut ours), median(&mut bare), median(&mut status));
        let difference = (ours - bare).max(0.0);
        println!(
            "{:<20} {ours:>7.2} ms {bare:>7.2} ms {difference:>9.2} ms {status:>9.2} ms {:>16.2} {allowed:>8.1}",
            stub.name,
            difference / status
        );
        for ((from, to), mut times) in parts {
            if times.len() > rounds * (iterations as usize) / 2 {
                println!("    {:<46} {:>7.3} ms", format!("{from} → {to}"), median(&mut times));
            }
        }
    }
    bench.long_run(if quick { 300 } else { 2010 });
    for args in [&["status"][..], &["--version"][..]] {
        let mut times: Vec<f64> = (0..50).map(|_| bench.time(&mut || drop(bench.repo.ralph(args)))).collect();
        println!("ralph {:<24} {:>7.2} ms", args.join(" "), median(&mut times));
    }
}

#[cfg(feature = "fleet-bench")]
fn of_fleet(ralph: &Path, parts: &[&str], quick: bool) {
    fleet::main(ralph, parts, quick);
}

#[cfg(not(feature = "fleet-bench"))]
fn of_fleet(_: &Path, _: &[&str], _: bool) {
    println!("the benchmark of a fleet is built with `--features fleet-bench`");
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1000.0
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Durations between two boundaries.
type Parts = BTreeMap<(String, String), Vec<f64>>;

impl Bench<'_> {
    fn time(&self, what: &mut dyn FnMut()) -> f64 {
        let start = Instant::now();
        what();
        ms(start.elapsed())
    }

    fn run_quiet(&self, program: &str, args: &[&str]) {
        TestEnv::finish(self.env.command(program, &self.repo.dir).args(args));
    }

    fn configure(&self, stub: &Stub) {
        self.repo.config(&serde_json::json!({
            "agents": [{"name": "stub", "command_argv": stub.argv}],
            "verifiers": [{"name": "tests", "command_argv": CHECK, "run_when": "always"}],
            "stuck_detection": {"disabled": true},
        }));
    }

    /// Runs this many iterations; returns the duration of each, and adds up the time between boundaries.
    fn traced(&self, stub: &Stub, iterations: u32, parts: &mut Parts) -> Vec<f64> {
        self.configure(stub);
        let trace = self.env.path("trace");
        let count = iterations.to_string();
        let args = ["run", "--new", "--isolation", "none", "--max-iterations", &count];
        TestEnv::finish(self.env.ralph_command(&self.repo.dir, &args).env("RALPH_TRACE", &trace)).exits(1);
        let marks = read_trace(&trace);
        for pair in marks.windows(2) {
            let key = (pair[0].1.clone(), pair[1].1.clone());
            parts.entry(key).or_default().push(pair[1].0 - pair[0].0);
        }
        iteration_times(&marks)
    }

    /// The same stub and verifier in a plain shell loop, prompt on stdin.
    fn bare(&self, stub: &Stub, iterations: u32) -> f64 {
        let script = format!(
            "i=0; while [ $i -lt {iterations} ]; do i=$((i+1)); RALPH_ITERATION=$i {} {} '{}' < PROMPT.md > /dev/null; bash -c ./check.sh; done",
            stub.argv[0], stub.argv[1], stub.argv[2]
        );
        let start = Instant::now();
        self.run_quiet("sh", &["-c", &script]);
        ms(start.elapsed() / iterations)
    }

    /// Compares iteration 2,000 to iteration 20 in time and memory.
    fn long_run(&self, iterations: u32) {
        self.configure(&CHANGING);
        let count = iterations.to_string();
        let trace = self.env.path("trace");
        let mut command = self.env.ralph_command(
            &self.repo.dir,
            &["run", "--new", "--isolation", "none", "--max-iterations", &count, "--max-seconds", "36000"],
        );
        command
            .env("RALPH_TRACE", &trace)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let _ = std::fs::remove_file(self.repo.dir.join(".ralph/iterations"));
        let mut child = command.spawn().expect("ralph starts");
        let mut early = 0;
        let mut peak = 0;
        loop {
            if let Some(status) = child.try_wait().expect("a status") {
                assert_eq!(status.code(), Some(1));
                break;
            }
            let memory = memory_of(child.id());
            peak = peak.max(memory);
            if early == 0 && self.repo.dir.join(".ralph/iterations/25").exists() {
                early = memory;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut times = iteration_times(&read_trace(&trace));
        let last = times.len();
        let span = if last > 1000 { 100 } else { 20 };
        let late = median(&mut times[last - span..]);
        let early_time = median(&mut times[10..10 + span]);
        println!(
            "\niterations 10–{}: {early_time:.2} ms    the last {span} of {}: {late:.2} ms    ratio {:.2} (allowed 1.2)",
            10 + span,
            last + 1,
            late / early_time
        );
        println!(
            "memory of ralph and its guard: {} kB early, {} kB at the peak    ratio {:.2} (allowed 1.2); allowed 16,384 kB",
            early,
            peak,
            peak as f64 / early.max(1) as f64
        );
    }
}

/// The boundaries of a run: time in ms, name.
fn read_trace(path: &Path) -> Vec<(f64, String)> {
    let text = std::fs::read_to_string(path).expect("a trace");
    let marks = text.lines().filter_map(|l| l.split_once(' '));
    marks.filter_map(|(t, n)| Some((t.parse::<f64>().ok()? / 1e6, n.to_owned()))).collect()
}

/// From the start of each session to the start of the next.
fn iteration_times(marks: &[(f64, String)]) -> Vec<f64> {
    let starts: Vec<f64> = marks.iter().filter(|(_, name)| name == "work.before").map(|(t, _)| *t).collect();
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Peak resident memory of a process and its guard, in kB.
fn memory_of(pid: u32) -> u64 {
    let peak = |path: &Path| -> u64 {
        let text = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        text.lines()
            .find_map(|l| l.strip_prefix("VmHWM:"))
            .and_then(|v| v.trim().trim_end_matches(" kB").parse().ok())
            .unwrap_or(0)
    };
    let own = Path::new("/proc").join(pid.to_string());
    let children = std::fs::read_to_string(own.join(format!("task/{pid}/children"))).unwrap_or_default();
    let guard = children.split_whitespace().find(|child| {
        std::fs::read(format!("/proc/{child}/cmdline"))
            .is_ok_and(|c| String::from_utf8_lossy(&c).contains("__guard"))
    });
    peak(&own) + guard.map_or(0, |g| peak(&Path::new("/proc").join(g)))
}
