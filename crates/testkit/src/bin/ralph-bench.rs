//! Measures `ralph` as ratios, in one run on one machine: an iteration compared to a five-line shell loop that does the same work
//! (agent, `git add`, `git commit`, `git diff --stat`, check), at three repo sizes; late iterations compared to early ones; and how
//! much of a session's prompt a provider has seen in the session before.
//!
//! `cargo run --release -p ralph-loop-testkit --bin ralph-bench [-- --quick]`, with the binary to measure in `RALPH_BIN` (default:
//! `ralph` next to this program). `ralph-bench loop` and `ralph-bench prompts` measure one part. `ralph-bench fleet [PART …]
//! [--quick]`, built with `--features fleet-bench`, measures the overhead of a fleet.
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
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The verifier, in a run and in the shell loop.
const CHECK: [&str; 3] = ["bash", "-c", "./check.sh"];
/// An iteration is never slower than the shell loop's.
const ALLOWED: f64 = 1.0;
/// Files of a repo, and the iterations of a round there.
const SIZES: [(usize, u32); 3] = [(1000, 50), (20_000, 20), (200_000, 5)];
/// One example for each task format.
const EXAMPLES: [&str; 4] = ["prompt", "ralph_task", "ralph_json", "plan"];

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
    argv: ["/bin/sh", "-c", "echo $RALPH_ITERATION $$ > dir1/changing.txt; echo ok"],
};

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--quick").collect();
    let parts: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let part = words.first().map(String::as_str);
    let known = match part {
        None | Some("loop" | "prompts") => parts.is_empty(),
        Some("fleet") => {
            parts.iter().all(|part| ["append", "take", "cost", "take-over", "rate"].contains(part))
        }
        Some(_) => false,
    };
    if !known {
        println!(
            "ralph-bench [loop | prompts] [--quick]\nralph-bench fleet [append] [take] [cost] [take-over] [rate] [--quick]"
        );
        println!("\nRALPH_BIN names the binary that is measured (default: `ralph` next to this program).");
        std::process::exit(if words.iter().any(|word| word == "--help" || word == "-h") { 0 } else { 2 });
    }
    let ralph = std::env::var_os("RALPH_BIN")
        .map(std::path::PathBuf::from)
        .unwrap_or_else(|| std::env::current_exe().expect("own path").with_file_name("ralph"));
    if part == Some("fleet") {
        return of_fleet(&ralph, &parts, quick);
    }
    if part != Some("prompts") {
        println!("an iteration compared to a shell loop's (allowed {ALLOWED:.1}); medians, taken in turns");
        for (files, iterations) in SIZES {
            if !quick || files < 100_000 {
                let env = TestEnv::new(&ralph);
                Bench::new(&env, files).compare(files, if quick { iterations / 4 } else { iterations });
            }
        }
        let env = TestEnv::new(&ralph);
        Bench::new(&env, 1000).long_run(if quick { 300 } else { 2010 });
    }
    if part != Some("loop") {
        println!("\nprompts of six sessions without success, per task format");
        EXAMPLES.iter().for_each(|example| prompts(&ralph, example));
    }
}

/// Runs an example and compares each session's recorded prompt to the one before.
fn prompts(ralph: &Path, example: &str) {
    let env = TestEnv::new(ralph);
    let repo = TestRepo::new(&env, "repo", &[]);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example).join(".");
    let from = from.display().to_string();
    TestEnv::finish(env.command("cp", &repo.dir).args(["-r", &from, "."])).exits(0);
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "example"]);
    let work = "cat > /dev/null; echo step $RALPH_ITERATION >> notes.txt; echo I took step $RALPH_ITERATION";
    env.user_config(&serde_json::json!({
        "agents": [{"name": "stub", "command_argv": ["/bin/sh", "-c", work]}],
        "stuck_detection": {"disabled": true},
    }));
    let args = ["run", "--json", "--agents", "stub", "--isolation", "none", "--max-iterations", "6"];
    let run = repo.ralph(&args).exits(1).json()["run_id"].as_str().expect("an id").to_owned();
    let folder = repo.record(&run).join("iterations");
    let prompts: Vec<Vec<u8>> =
        (1..=6).map(|n| std::fs::read(folder.join(format!("{n}/prompt.md"))).expect("a prompt")).collect();
    let (mut shared, mut all) = (0, 0);
    for pair in prompts.windows(2) {
        shared += pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b).count();
        all += pair[1].len();
    }
    // A cached token costs a tenth at the usual providers.
    let share = shared as f64 / all as f64;
    println!(
        "  {example:<12} {:>5} tokens in the first, {:>5} in the sixth; {:.0}% seen before; input cost {:.2} × with a cache",
        prompts[0].len() / 4,
        prompts[5].len() / 4,
        share * 100.0,
        1.0 - share * 0.9
    );
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

impl<'a> Bench<'a> {
    fn new(env: &'a TestEnv, files: usize) -> Self {
        let files: Vec<(String, String)> = (0..files)
            .map(|n| (format!("dir{}/file{n}.txt", n % (files / 25)), format!("content {n}\n").repeat(20)))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        let repo = TestRepo::new(env, "repo", &files);
        repo.write("PROMPT.md", "# Bench\n\nNothing to do.\n");
        repo.write("check.sh", "#!/bin/sh\nexit 0\n");
        std::fs::set_permissions(repo.dir.join("check.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "-m", "task"]);
        Self { env, repo }
    }

    fn compare(&self, files: usize, iterations: u32) {
        for stub in [&STILL, &CHANGING] {
            let (mut ours, mut bare) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                ours.extend(self.traced(stub, iterations));
                bare.push(self.bare(stub, iterations));
            }
            let ratio = median(&mut ours) / median(&mut bare);
            println!("  {files:>7} files, {:<18} {ratio:.2}", stub.name);
        }
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

    /// Runs this many iterations; returns the duration of each.
    fn traced(&self, stub: &Stub, iterations: u32) -> Vec<f64> {
        self.configure(stub);
        let trace = self.env.path("trace");
        let count = iterations.to_string();
        let args = ["run", "--new", "--isolation", "none", "--max-iterations", &count];
        TestEnv::finish(self.env.ralph_command(&self.repo.dir, &args).env("RALPH_TRACE", &trace)).exits(1);
        iteration_times(&read_trace(&trace))
    }

    /// The same work in a plain shell loop, prompt on stdin.
    fn bare(&self, stub: &Stub, iterations: u32) -> f64 {
        let [program, flag, script] = stub.argv;
        let script = format!(
            "i=0; while [ $i -lt {iterations} ]; do i=$((i+1))\nRALPH_ITERATION=$i {program} {flag} '{script}' < PROMPT.md > /dev/null\n\
             git add -A\ngit commit -qm \"iteration $i\" > /dev/null && git diff --stat HEAD~1 > /dev/null\nbash -c ./check.sh\ndone"
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
            "\nthe last {span} of {} iterations compared to iterations 10–{}: time {:.2} (allowed 1.2)",
            last + 1,
            10 + span,
            late / early_time
        );
        println!(
            "memory of ralph and its guard: {peak} kB at the peak (allowed 16,384), compared to early {:.2} (allowed 1.2)",
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
