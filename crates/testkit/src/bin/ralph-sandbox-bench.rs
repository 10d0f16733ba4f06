//! Measures what a sandboxed run costs in a large repo, in one run and as ratios: the whole run compared to `cp -a` and `rm -r`
//! of the tree, opened files compared to all files, and an iteration without changes compared to `git status`.
//!
//! `cargo run --release -p ralph-loop-testkit --bin ralph-sandbox-bench`, with the binary to measure in `RALPH_BIN` (default:
//! `ralph` next to this program).
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark starts processes and prints a table"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark fails by panicking")]

use ralph_loop_testkit::{TestEnv, TestRepo};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const TRACKED: usize = 10_000;
const IGNORED: usize = 40_000;
const ROUNDS: usize = 5;
const IDLE: usize = 12;
const WORK: &str = "echo done > dir1/result.txt; echo '<promise>COMPLETE</promise>'";

fn main() {
    let ralph = std::env::var_os("RALPH_BIN")
        .map(std::path::PathBuf::from)
        .unwrap_or_else(|| std::env::current_exe().expect("own path").with_file_name("ralph"));
    let env = TestEnv::new(ralph);
    let repo = large_repo(&env);
    let copy = env.path("cp");
    let (mut runs, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        configure(&repo, WORK);
        runs.push(time(|| drop(TestEnv::finish(&mut whole_run(&env, &repo)).exits(0))));
        restore(&repo);
        copies.push(time(|| {
            finish(Command::new("cp").arg("-a").arg(&repo.dir).arg(&copy));
            finish(Command::new("rm").arg("-r").arg(&copy));
        }));
    }
    let (run, copied) = (median(&mut runs), median(&mut copies));
    println!(
        "repo of {TRACKED} tracked and {IGNORED} ignored files; medians over {ROUNDS} rounds, taken in turns\n"
    );
    println!("whole run, one iteration  {run:>9.0} ms");
    println!("cp -a and rm -r           {copied:>9.0} ms    ratio {:.2} (allowed 2)", run / copied);
    configure(&repo, WORK);
    match opened_files(&env, &repo) {
        Some(opened) => println!(
            "opened files              {opened:>9}       per file {:.2} (allowed 2.3)",
            opened as f64 / (TRACKED + IGNORED) as f64
        ),
        None => println!("opened files: needs `strace`"),
    }
    restore(&repo);
    idle(&env, &repo);
}

fn large_repo(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::new(env, "repo", &[(".gitignore", "node_modules/\n.ralph/\n")]);
    repo.write("PROMPT.md", "# Bench\n\nNothing to do.\n");
    for n in 0..TRACKED {
        repo.write(&format!("dir{}/file{n}.txt", n % 300), &format!("content {n}\n").repeat(60));
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "files"]);
    for n in 0..IGNORED {
        let path = format!("node_modules/package{}/lib{}/file{n}.js", n % 400, n % 3);
        repo.write(&path, &format!("export const value{n} = {n};\n").repeat(40));
    }
    repo
}

fn configure(repo: &TestRepo<'_>, script: &str) {
    repo.config(&serde_json::json!({
        "agents": [{"name": "stub", "command_argv": ["/bin/sh", "-c", script]}],
        "verifiers": [{"name": "tests", "command_argv": ["test", "-e", "dir1"]}],
        "stuck_detection": {"disabled": true},
    }));
}

fn whole_run(env: &TestEnv, repo: &TestRepo<'_>) -> Command {
    env.ralph_command(&repo.dir, &["run", "--new", "--max-iterations", "1"])
}

/// Restores the repo's state before a run.
fn restore(repo: &TestRepo<'_>) {
    repo.git(&["reset", "-q", "--hard"]);
    repo.git(&["clean", "-q", "-fd"]);
}

/// The number of files opened by all processes of a run.
fn opened_files(env: &TestEnv, repo: &TestRepo<'_>) -> Option<usize> {
    let log = env.path("strace.log");
    let inner = whole_run(env, repo);
    let mut traced = Command::new("strace");
    traced.args([
        "-f",
        "-qq",
        "-y",
        "-e",
        "trace=open,openat,openat2,creat",
        "-e",
        "status=successful",
        "-o",
    ]);
    traced.arg(&log).arg(inner.get_program()).args(inner.get_args()).current_dir(&repo.dir).env_clear();
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            traced.env(name, value);
        }
    }
    let status = traced.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    assert_eq!(status.code(), Some(0), "the run under strace");
    let text = String::from_utf8_lossy(&std::fs::read(&log).ok()?).into_owned();
    Some(text.lines().filter(|line| line.contains(" = ") && !line.contains("O_DIRECTORY")).count())
}

/// Measures iterations without changes.
fn idle(env: &TestEnv, repo: &TestRepo<'_>) {
    configure(repo, "echo ok");
    let trace = env.path("trace");
    let count = IDLE.to_string();
    let args = ["run", "--new", "--max-iterations", &count];
    TestEnv::finish(env.ralph_command(&repo.dir, &args).env("RALPH_TRACE", &trace)).exits(1);
    let text = std::fs::read_to_string(&trace).expect("a trace");
    let starts: Vec<f64> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, name)| *name == "work.before")
        .filter_map(|(time, _)| Some(time.parse::<f64>().ok()? / 1e6))
        .collect();
    let mut times: Vec<f64> = starts.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    let mut statuses: Vec<f64> = (0..IDLE)
        .map(|_| time(|| finish(Command::new("git").args(["status", "--porcelain"]).current_dir(&repo.dir))))
        .collect();
    let (iteration, status) = (median(&mut times), median(&mut statuses));
    println!("idle further iteration    {iteration:>9.1} ms");
    println!("git status                {status:>9.1} ms    ratio {:.2} (allowed 6)", iteration / status);
    let show = Path::new(&trace).display();
    if std::env::args().any(|arg| arg == "--trace") {
        println!("{show}\n{text}");
    }
}

fn finish(command: &mut Command) {
    assert!(command.stdout(Stdio::null()).status().expect("it starts").success(), "{command:?}");
}

fn time(what: impl FnOnce()) -> f64 {
    let start = Instant::now();
    what();
    start.elapsed().as_secs_f64() * 1000.0
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
