//! What an iteration costs beside a bare shell loop, measured in one run and told as ratios.
//!
//! `cargo run --release -p ralph-testkit --bin ralph-bench [-- --quick]`, with the binary to measure in `RALPH_BIN` (default:
//! `ralph` beside this program).
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark starts processes and prints a table"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark fails by panicking")]

use ralph_testkit::{TestEnv, TestRepo};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const FILES: usize = 1000;

struct Bench<'a> {
    env: &'a TestEnv,
    repo: TestRepo<'a>,
}

/// A stub agent, as ralph calls it and as a shell loop does.
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
    let ralph = std::env::var_os("RALPH_BIN")
        .map(std::path::PathBuf::from)
        .unwrap_or_else(|| std::env::current_exe().expect("own path").with_file_name("ralph"));
    let env = TestEnv::new(ralph);
    let files: Vec<(String, String)> = (0..FILES)
        .map(|n| (format!("dir{}/file{n}.txt", n % 40), format!("content {n}\n").repeat(20)))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let repo = TestRepo::new(&env, "repo", &files);
    repo.write("PROMPT.md", "# Bench\n\nNothing to do.\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "task"]);
    let bench = Bench { env: &env, repo };
    let (short, long) = if quick { (20, 120) } else { (50, 450) };

    let status = bench.mean_of(200, &mut || bench.run_quiet("git", &["status", "--porcelain"]));
    println!("repo of {FILES} files; git status --porcelain: {:.2} ms\n", ms(status));
    println!(
        "{:<20} {:>10} {:>10} {:>12} {:>16} {:>8}",
        "", "ralph", "bare sh", "difference", "in git statuses", "allowed"
    );
    for (stub, allowed) in [(&STILL, 1.0), (&CHANGING, 3.0)] {
        let ours = bench.per_iteration(stub, short, long);
        let bare = bench.bare(stub, long);
        let difference = ours.saturating_sub(bare);
        let ratio = difference.as_secs_f64() / status.as_secs_f64();
        println!(
            "{:<20} {:>7.2} ms {:>7.2} ms {:>9.2} ms {ratio:>16.2} {allowed:>8.1}",
            stub.name,
            ms(ours),
            ms(bare),
            ms(difference)
        );
        bench.breakdown(stub, short);
    }
    bench.long_run(if quick { 300 } else { 2010 });
    for args in [&["status"][..], &["--version"][..]] {
        let time = bench.mean_of(50, &mut || {
            bench.repo.ralph(args);
        });
        println!("ralph {:<24} {:>7.2} ms", args.join(" "), ms(time));
    }
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1000.0
}

impl Bench<'_> {
    fn mean_of(&self, times: u32, what: &mut dyn FnMut()) -> Duration {
        for _ in 0..5 {
            what();
        }
        let start = Instant::now();
        for _ in 0..times {
            what();
        }
        start.elapsed() / times
    }

    fn run_quiet(&self, program: &str, args: &[&str]) {
        TestEnv::finish(self.env.command(program, &self.repo.dir).args(args));
    }

    fn configure(&self, stub: &Stub) {
        self.repo.config(&serde_json::json!({
            "agents": [{"name": "stub", "command_argv": stub.argv}],
            "verifiers": [{"name": "tests", "command_argv": ["/bin/true"], "run_when": "always"}],
            "stuck_detection": {"disabled": true},
        }));
    }

    fn run(&self, stub: &Stub, iterations: u32) -> Duration {
        self.configure(stub);
        let count = iterations.to_string();
        let start = Instant::now();
        self.repo.ralph(&["run", "--new", "--isolation", "none", "--max-iterations", &count]).exits(1);
        start.elapsed()
    }

    /// The slope between a short and a long run: start and end of a run do not count.
    fn per_iteration(&self, stub: &Stub, short: u32, long: u32) -> Duration {
        self.run(stub, short);
        let few = self.run(stub, short);
        let many = self.run(stub, long);
        many.saturating_sub(few) / (long - short)
    }

    /// The same stub and verifier in a plain shell loop, prompt on stdin.
    fn bare(&self, stub: &Stub, iterations: u32) -> Duration {
        let script = format!(
            "i=0; while [ $i -lt {iterations} ]; do i=$((i+1)); RALPH_ITERATION=$i {} {} '{}' < PROMPT.md > /dev/null; /bin/true; done",
            stub.argv[0], stub.argv[1], stub.argv[2]
        );
        let start = Instant::now();
        self.run_quiet("sh", &["-c", &script]);
        start.elapsed() / iterations
    }

    /// Where the time of an iteration goes: mean time between the boundaries that a run passes.
    fn breakdown(&self, stub: &Stub, iterations: u32) {
        self.configure(stub);
        let trace = self.env.path("trace");
        let count = iterations.to_string();
        let mut command = self.env.ralph_command(
            &self.repo.dir,
            &["run", "--new", "--isolation", "none", "--max-iterations", &count],
        );
        TestEnv::finish(command.env("RALPH_TRACE", &trace)).exits(1);
        let mut sums: BTreeMap<(String, String), (u32, u64)> = BTreeMap::new();
        let text = std::fs::read_to_string(&trace).expect("a trace");
        let marks: Vec<(u64, &str)> = text
            .lines()
            .filter_map(|l| l.split_once(' '))
            .filter_map(|(t, n)| Some((t.parse().ok()?, n)))
            .collect();
        for pair in marks.windows(2) {
            let entry = sums.entry((pair[0].1.to_owned(), pair[1].1.to_owned())).or_default();
            entry.0 += 1;
            entry.1 += pair[1].0 - pair[0].0;
        }
        for ((from, to), (count, sum)) in sums {
            if count >= iterations - 2 {
                println!(
                    "    {:<46} {:>7.3} ms",
                    format!("{from} → {to}"),
                    sum as f64 / f64::from(count) / 1e6
                );
            }
        }
    }

    /// Iteration 2,000 beside iteration 20, in time and memory.
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
        let text = std::fs::read_to_string(&trace).expect("a trace");
        let starts: Vec<u64> = text
            .lines()
            .filter_map(|l| l.strip_suffix(" work.before"))
            .filter_map(|t| t.parse().ok())
            .collect();
        let mean = |from: usize, to: usize| (starts[to] - starts[from]) as f64 / (to - from) as f64 / 1e6;
        let last = starts.len() - 1;
        let span = if last > 1000 { 40 } else { 20 };
        let (first, late) = (mean(10, 10 + span), mean(last - span, last));
        println!(
            "\niteration {:<4} {first:>7.2} ms    iteration {last}: {late:.2} ms    ratio {:.2} (allowed 1.2)",
            10 + span / 2,
            late / first
        );
        println!(
            "memory of ralph and its guard: {} kB early, {} kB at the peak    ratio {:.2} (allowed 1.2); allowed 13,312 kB",
            early,
            peak,
            peak as f64 / early.max(1) as f64
        );
    }
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
