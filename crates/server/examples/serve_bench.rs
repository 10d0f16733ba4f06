//! Measures a server's speed and memory: `cargo run --release -p ralph-loop-server --example serve_bench -- RALPH [--rows N] [--runs N [--sandboxed]] [--browser]`.
//!
//! RALPH is the measured binary. In a separate home, it fills an index with rows, starts the server and measures the
//! time to the first answer, the list (p50, p99), events on their way to a watcher (p50, p99), and with `--runs` the memory of the
//! server and of each run. With `--browser` (needs Node and the dashboard's packages) also how soon the page shows events.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a tool that measures"
)]
#![allow(clippy::disallowed_methods, reason = "it starts processes and reads clocks")]

use jiff::{SignedDuration, Timestamp};
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::money::{Cost, Usd};
use ralph_loop_server::home::ServerHome;
use ralph_loop_server::index::{Index, Indexed};
use ralph_loop_server::row::RunRow;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Events that a watcher is measured with, per second and in all.
const EVENTS: (u64, u64) = (2000, 10_000);
/// Requests that a list is measured with.
const LISTS: usize = 500;

struct Bench {
    ralph: PathBuf,
    home: PathBuf,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str, usual: usize| {
        let at = args.iter().position(|arg| arg == flag);
        at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(usual)
    };
    let Some(ralph) = args.first().map(PathBuf::from) else { panic!("name the binary that is measured") };
    let home = std::env::temp_dir().join(format!("ralph-serve-bench-{}", std::process::id()));
    std::fs::create_dir_all(home.join("tmp")).unwrap();
    let bench = Bench { ralph: ralph.canonicalize().unwrap(), home };
    let isolation = if args.iter().any(|arg| arg == "--sandboxed") { "auto" } else { "none" };
    bench.measure(number("--rows", 100_000), number("--runs", 0), isolation);
    std::fs::remove_dir_all(&bench.home).unwrap();
}

impl Bench {
    fn measure(&self, rows: usize, runs: usize, isolation: &str) {
        self.fill(rows);
        let (mut child, ready, begun) = self.serve(&["--jobs", "1000"]);
        let port: u16 = ready["url"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
        let token = ready["token"].as_str().unwrap().to_owned();
        get(port, &token, "/api/v1/runs?limit=50");
        println!("first answer with {rows} rows        {:>8.1} ms after the start", ms(begun.elapsed()));
        self.lists(port, &token, rows);
        self.events(port, &token);
        if std::env::args().any(|arg| arg == "--browser") {
            self.browser(port, &token);
        }
        println!("server                                  {:>8.1} MB proportional", memory(child.id()));
        if runs > 0 {
            self.many(port, &token, runs, (isolation, child.id()));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn state(&self) -> StateHome {
        StateHome::at(&self.home.join("state/ralph"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.ralph);
        command.args(args).env_clear().current_dir(&self.home);
        command.env("HOME", &self.home).env("XDG_STATE_HOME", self.home.join("state"));
        command.env("XDG_CONFIG_HOME", self.home.join("config")).env("TMPDIR", self.home.join("tmp"));
        command.env("PATH", std::env::var("PATH").unwrap_or_default()).env("USER", "bench");
        command.stdin(Stdio::null());
        command
    }

    /// Rows of runs that are over, with their entries in the registry.
    fn fill(&self, rows: usize) {
        let home = self.state();
        let own = ServerHome::make(&home).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let index = runtime.block_on(Index::open(None, &self.home, &own)).unwrap();
        let begun: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut batch = Vec::new();
        for number in 0..rows {
            let at = begun + SignedDuration::from_secs(60 * number as i64);
            let id = ralph_loop_core::run_id::new(at);
            let repo = format!("/home/bench/project-{}", number % 40);
            let entry = Registration {
                run_id: id.clone(),
                title: format!("Task {number}"),
                origin: repo.clone().into(),
                workspace: repo.clone().into(),
                created_at: at,
                record: Some(home.record(&id).path().to_owned()),
            };
            registry::register(&home, &entry).unwrap();
            let row = RunRow {
                status: ["done", "failed", "stopped"][number % 3].into(),
                ended_at: Some(at),
                cost: Cost::reported(Usd::from_dollars((number % 977) as f64 / 100.0)),
                iteration: (number % 30) as u32,
                loop_score: Some((number % 10) as f64 / 10.0),
                ..RunRow::waiting(id.as_str(), &format!("Task {number}"), &repo, at)
            };
            batch.push(Indexed { row, spend: None });
            if batch.len() == 2000 || number + 1 == rows {
                runtime.block_on(index.put(&batch)).unwrap();
                batch.clear();
            }
        }
        runtime.block_on(index.close());
    }

    fn serve(&self, args: &[&str]) -> (Child, Value, Instant) {
        let begun = Instant::now();
        let mut command = self.command(&[&["serve", "--port", "0", "--no-open", "--json"], args].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        (child, serde_json::from_str(&line).unwrap(), begun)
    }

    fn lists(&self, port: u16, token: &str, rows: usize) {
        let paths = [
            "/api/v1/runs?limit=50",
            "/api/v1/runs?limit=50&sort=cost",
            "/api/v1/runs?limit=50&status=failed",
            "/api/v1/runs?limit=50&sort=score&order=asc",
            "/api/v1/runs?limit=50&repo=/home/bench/project-7",
        ];
        let mut took = Vec::new();
        for number in 0..LISTS {
            let begun = Instant::now();
            get(port, token, paths[number % paths.len()]);
            took.push(begun.elapsed());
        }
        let (half, most) = percentiles(&mut took);
        println!("list of {rows} rows                {half:>8.1} ms p50 {most:>8.1} ms p99");
        let mut took = Vec::new();
        for number in 0..50 {
            let begun = Instant::now();
            get(port, token, &format!("/api/v1/runs?limit=50&q=task%20{}", number * 7919 % rows.max(1)));
            took.push(begun.elapsed());
        }
        let (half, most) = percentiles(&mut took);
        println!("search in {rows} rows              {half:>8.1} ms p50 {most:>8.1} ms p99");
    }

    /// A journal grows by two thousand events a second; a watcher reads them.
    fn events(&self, port: u16, token: &str) {
        let run = self.sample_run("demo");
        let record = self.state().record(&ralph_loop_protocol::id::RunId::new(&run));
        let text = std::fs::read_to_string(record.events()).unwrap();
        let last =
            text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).next_back().unwrap();
        let head = last["seq"].as_u64().unwrap();
        let watcher = watch(port, token, &run, head + 1);
        let mut journal = std::fs::OpenOptions::new().append(true).open(record.events()).unwrap();
        let begun = Instant::now();
        for number in 0..EVENTS.1 {
            let due = Duration::from_secs_f64(number as f64 / EVENTS.0 as f64);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
            let line = json!({ "seq": head + 1 + number, "at": "2026-11-17T00:00:00Z", "kind": "notice", "message": now.to_string() });
            // The order of keys is that of the engine.
            let line = format!(
                "{{\"seq\":{},\"at\":{},\"kind\":\"notice\",\"message\":{}}}\n",
                line["seq"], line["at"], line["message"]
            );
            journal.write_all(line.as_bytes()).unwrap();
        }
        let mut took = watcher.join().unwrap();
        assert_eq!(took.len() as u64, EVENTS.1, "every event once");
        let (half, most) = percentiles(&mut took);
        println!("event to watcher at {} a second       {half:>8.1} ms p50 {most:>8.1} ms p99", EVENTS.0);
    }

    /// The same with the page of a run in a browser.
    fn browser(&self, port: u16, token: &str) {
        let run = self.sample_run("page");
        let record = self.state().record(&ralph_loop_protocol::id::RunId::new(&run));
        let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
        let base = format!("http://127.0.0.1:{port}");
        let done = Command::new("node")
            .args([Path::new("dev/live.mjs"), Path::new(&base), Path::new(&run), &record.events()])
            .env("TOKEN", token)
            .current_dir(web)
            .status();
        assert!(done.unwrap().success(), "every event once");
    }

    /// A short run that is over.
    fn sample_run(&self, folder: &str) -> String {
        let done = self.command(&["--json", "demo", "--fast", "--dir", folder]).output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let result: Value =
            serde_json::from_str(text.lines().last().unwrap_or_default()).expect("a demo run");
        result["run_id"].as_str().unwrap().to_owned()
    }

    /// Many runs whose agents sleep.
    fn many(&self, port: u16, token: &str, runs: usize, (isolation, server): (&str, u32)) {
        let repo = self.home.join("repo");
        std::fs::create_dir_all(repo.join(".ralph")).unwrap();
        let script = self.home.join("agent.sh");
        std::fs::write(&script, "#!/bin/sh\nexec sleep 3600\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(repo.join("PROMPT.md"), "# Sleep\n\nSleep.\n").unwrap();
        let config = json!({
            "agents": [{ "name": "sleeper", "command_argv": [script] }], "baseline": false,
            "verifiers": [{ "name": "tests", "command_argv": ["true"] }],
        });
        std::fs::write(repo.join(".ralph/config.json"), config.to_string()).unwrap();
        for args in [
            &["init", "-q"][..],
            &["add", "PROMPT.md"],
            &["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "start"],
        ] {
            Command::new("git").args(args).current_dir(&repo).output().unwrap();
        }
        let first = self
            .command(&["-C", "repo", "run", "--detach", "--isolation", isolation, "--json", "--worktree"])
            .output()
            .unwrap();
        assert!(first.status.success(), "{first:?}");
        let begun = Instant::now();
        for _ in 1..runs {
            let body = json!({ "repo": repo, "task_file": "PROMPT.md", "isolation": isolation });
            post(port, token, "/api/v1/runs", &body);
        }
        while driven(port, token) + 1 < runs {
            std::thread::sleep(Duration::from_millis(500));
        }
        println!("{runs} runs at work after             {:>8.1} s", begun.elapsed().as_secs_f64());
        println!("server with {runs} runs               {:>8.1} MB proportional", memory(server));
        let ours = children(&self.ralph, server);
        let all: f64 = ours.iter().map(|pid| memory(*pid)).sum();
        println!("each run, without its agent             {:>8.2} MB proportional", all / runs as f64);
        self.lists(port, token, runs);
        for pid in ours {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).output();
        }
    }
}

fn driven(port: u16, token: &str) -> usize {
    let state: Value = serde_json::from_slice(&get(port, token, "/api/v1/scheduler")).unwrap_or_default();
    usize::try_from(state["running"].as_u64().unwrap_or(0)).unwrap_or(0)
}

/// Processes of this program in this home, without the server.
fn children(ralph: &Path, server: u32) -> Vec<u32> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            *pid != server && std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == ralph)
        })
        .collect()
}

/// Proportional memory in MB.
fn memory(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn get(port: u16, token: &str, path: &str) -> Vec<u8> {
    request(port, token, "GET", path, "")
}

fn post(port: u16, token: &str, path: &str, body: &Value) -> Vec<u8> {
    request(port, token, "POST", path, &body.to_string())
}

fn request(port: u16, token: &str, method: &str, path: &str, body: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    assert!(bytes.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&bytes));
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0);
    bytes.split_off(end + 4)
}

/// How long each event took on its way, over server-sent events.
fn watch(port: u16, token: &str, run: &str, from: u64) -> std::thread::JoinHandle<Vec<Duration>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!(
        "GET /api/v1/runs/{run}/sse?from={from} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    std::thread::spawn(move || {
        let mut took = Vec::new();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let frame: Value = serde_json::from_str(data).unwrap();
            let Some(sent) = frame["event"]["message"].as_str().and_then(|text| text.parse::<u64>().ok())
            else {
                continue;
            };
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
            took.push(Duration::from_micros(u64::try_from(now).unwrap().saturating_sub(sent)));
            if took.len() as u64 == EVENTS.1 {
                break;
            }
        }
        took
    })
}

fn percentiles(took: &mut [Duration]) -> (f64, f64) {
    took.sort_unstable();
    (ms(took[took.len() / 2]), ms(took[took.len() * 99 / 100]))
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
