//! Measures a fleet's overhead: an append, a dispatch, an iteration, a takeover, and the throughput compared to plain processes.

use ralph_loop_app::{Overrides, RunRequest, TaskInput, Workplace};
use ralph_loop_fleet::runs::{self, NewRun};
use ralph_loop_fleet::{Fleet, dispatch, lease, seal, workers};
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::config::Isolation;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Session `n` writes part `n`; the one named in the task file promises.
const AGENT: &str = "i=$RALPH_ITERATION; echo part $i > part$i.txt; if [ $i -ge $(cat last 2>/dev/null || echo 3) ]; then echo '<promise>COMPLETE</promise>'; fi";
const CHECK: &str = "test -f part$(cat last).txt";
const WORKERS: usize = 4;
const TURNS: usize = 2;

struct Bench {
    env: TestEnv,
    url: String,
    fleet: Fleet,
    isolation: Isolation,
}

pub fn main(ralph: &Path, parts: &[&str], quick: bool) {
    let wanted = |part: &str| parts.is_empty() || parts.contains(&part);
    let folder = std::env::temp_dir().join(format!("ralph-fleet-bench-{}", std::process::id()));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let mut start = Command::new(&script);
    start.arg("start").arg(&folder).env("RALPH_POSTGRES_FSYNC", "on").env("RALPH_POSTGRES_COUNT", "1");
    let done = start.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let url = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    let fleet = Fleet::open(&url).unwrap();
    let plain = "CREATE TABLE bench_plain (LIKE ralph_seal.events INCLUDING ALL)";
    fleet.wait(async { Ok(sqlx::query(plain).execute(fleet.pool()).await?) }).unwrap();
    if wanted("append") {
        flushes(&folder, if quick { 500 } else { 5000 });
        appends(&url, 1, if quick { 500 } else { 5000 });
        appends(&url, 8, if quick { 200 } else { 2000 });
    }
    if wanted("take") {
        takes(&fleet, if quick { 50 } else { 500 });
    }
    for isolation in [Isolation::None, Isolation::Auto] {
        let env = TestEnv::new(ralph);
        let stub = TestRepo::new(&env, "stub", &[]).script("stub.sh", AGENT);
        env.user_config(&json!({ "agents": [{ "name": "stub", "command_argv": [stub] }], "baseline": false,
            "stuck_detection": { "disabled": true } }));
        let bench = Bench { env, url: url.clone(), fleet: fleet.clone(), isolation };
        if isolation == Isolation::None && wanted("cost") {
            bench.cost();
        }
        if isolation == Isolation::None && wanted("take-over") {
            bench.take_over();
        }
        if wanted("rate") {
            bench.rate(if quick { 24 } else { 80 });
        }
    }
    let _ = Command::new(&script).arg("stop").arg(&folder).status();
}

/// The duration of one flush of the database's disk, the lower bound of a seal.
fn flushes(folder: &Path, count: usize) {
    let path = folder.join("flushed");
    let mut file = std::fs::File::create(&path).unwrap();
    let times = (0..count).map(|_| {
        timed(|| {
            file.write_all(&[0; 8192]).unwrap();
            file.sync_data().unwrap();
        })
    });
    println!("a flush of 8 kB: {}", Latency::of(times.collect()));
    let _ = std::fs::remove_file(path);
}

/// Latency of appends by `clients` at once, each with its own connection and run, compared to plain inserts of the same bytes,
/// measured alternately.
fn appends(url: &str, clients: usize, each: usize) {
    let line = vec![b'x'; 400];
    let threads: Vec<_> = (0..clients)
        .map(|client| {
            let (url, line, run) = (url.to_owned(), line.clone(), format!("append-{clients}-{client}"));
            std::thread::spawn(move || {
                let fleet = Fleet::open(&url).unwrap();
                add(&fleet, &run, RunRequest { place: clone("https://h/o/r"), ..RunRequest::default() });
                let taken = lease::take(fleet.pool(), &run, "bench", Duration::from_secs(600));
                let held = fleet.wait(taken).unwrap();
                let mut seal = fleet.wait(seal::Line::open(fleet.pool())).unwrap();
                let mut plain = fleet.wait(async { Ok(fleet.pool().acquire().await?.detach()) }).unwrap();
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                for at in 0..each {
                    let head = (at * line.len()) as i64;
                    ours.push(timed(|| assert!(fleet.wait(seal.append(&held, head, &line)).unwrap())));
                    let insert =
                        sqlx::query("INSERT INTO bench_plain (run, at, epoch, line) VALUES ($1, $2, 1, $3)")
                            .bind(&run)
                            .bind(head)
                            .bind(&line);
                    theirs.push(timed(|| {
                        fleet.wait(async { Ok(insert.execute(&mut plain).await?) }).unwrap();
                    }));
                }
                fleet.wait(lease::release(fleet.pool(), &held, "over", None)).unwrap();
                (ours, theirs)
            })
        })
        .collect();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for thread in threads {
        let (mine, plain) = thread.join().unwrap();
        ours.extend(mine);
        theirs.extend(plain);
    }
    let (ours, theirs) = (Latency::of(ours), Latency::of(theirs));
    let ratio = ours.p50 / theirs.p50;
    println!("append, {clients} clients: {ours}; a plain insert: {theirs}; ratio {ratio:.2}");
}

/// How long a worker waits for a run while 100,000 runs of 50 users are queued, a third of them for a missing label.
fn takes(fleet: &Fleet, count: usize) {
    let run = |query: &'static str| {
        fleet.wait(async { Ok(sqlx::query(query).execute(fleet.pool()).await?) }).unwrap()
    };
    run("INSERT INTO ralph_seal.runs (run, request, person, repo, needs, queued_at)
         SELECT 'take-' || n, '{}', 'p' || n % 50, 'https://h/o/r', CASE n % 3 WHEN 0 THEN '{gpu}' WHEN 1 THEN '{eu}' ELSE '{}' END::text[],
            now() - n * interval '1 second' FROM generate_series(1, 100000) n");
    run("INSERT INTO ralph_seal.leases (run) SELECT run FROM ralph_seal.runs WHERE run LIKE 'take-%'");
    run(
        "INSERT INTO ralph_seal.workers (id, labels, capacity) VALUES ('taker', '{eu}', 100000), ('other', '{none}', 1)",
    );
    let take = |worker: &str| fleet.wait(dispatch::next_run(fleet.pool(), worker)).unwrap();
    let given = (0..count).map(|_| timed(|| assert!(take("taker").is_some()))).collect();
    println!("a take with 100,000 waiting runs: {}", Latency::of(given));
    run("UPDATE ralph_seal.runs SET needs = '{gpu}' WHERE run LIKE 'take-%'");
    let none = (0..count).map(|_| timed(|| assert_eq!(take("other"), None))).collect();
    println!("a worker that can take none of them: {}", Latency::of(none));
    // Otherwise the workers of the other parts would take them.
    run("DELETE FROM ralph_seal.runs WHERE run LIKE 'take-%'");
    run("DELETE FROM ralph_seal.leases WHERE run LIKE 'take-%'");
    run("DELETE FROM ralph_seal.workers WHERE id IN ('taker', 'other')");
}

fn timed(what: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    what();
    begun.elapsed().as_secs_f64() * 1000.0
}

struct Latency {
    p50: f64,
    p99: f64,
}

impl Latency {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        Self { p50: at(0.5), p99: at(0.99) }
    }
}

impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {:.2} ms, p99 {:.2} ms", self.p50, self.p99)
    }
}

fn clone(from: &str) -> Workplace {
    Workplace::Clone { from: from.to_owned(), depth: None, sparse: Vec::new() }
}

fn add(fleet: &Fleet, run: &str, request: RunRequest) {
    let new = NewRun {
        run: RunId::parse(run).unwrap(),
        request,
        title: "bench".into(),
        person: "bench".into(),
        labels: Vec::new(),
        secrets: Vec::new(),
        profiles: [None, None],
        source: String::new(),
        at_once: None,
        occasion: None,
    };
    assert!(fleet.wait(runs::add(fleet.pool(), &new)).unwrap());
}

impl Bench {
    /// A repo whose task is done after this many iterations.
    fn origin(&self, iterations: u32) -> PathBuf {
        let name = format!("origin{iterations}");
        if self.env.path(&name).is_dir() {
            return self.env.path(&name);
        }
        TestRepo::new(&self.env, &name, &[("last", &format!("{iterations}\n"))]).dir
    }

    fn request(&self, iterations: u32) -> RunRequest {
        RunRequest {
            task: TaskInput::Text("# Parts\n\nWrite the parts.\n".into()),
            place: clone(&self.origin(iterations).display().to_string()),
            isolation: Some(self.isolation),
            overrides: Overrides {
                verify: vec![CHECK.into()],
                max_iterations: Some(iterations + 2),
                ..Overrides::default()
            },
            ..RunRequest::default()
        }
    }

    fn worker(&self, state: &Path, args: &[&str]) -> Child {
        let mut command =
            self.env.ralph_command(&self.env.path("home"), &[&["--json", "worker"], args].concat());
        command.env("RALPH_DB_URL", &self.url).env("RALPH_ARTIFACTS", self.env.path("store"));
        command.env("XDG_STATE_HOME", state);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn find(&self, run: &str) -> runs::FleetRun {
        self.fleet.wait(runs::find(self.fleet.pool(), run)).unwrap().unwrap()
    }

    /// Rows, bytes and statements of an iteration: the difference between a longer and a shorter run.
    fn cost(&self) {
        let one = |run: &str, iterations: u32| -> [f64; 3] {
            add(&self.fleet, run, self.request(iterations));
            let before = self.statements();
            let status = self.worker(&self.env.path("state"), &["--once", run]).wait().unwrap();
            assert!(status.success(), "the run of {iterations} iterations did not end well");
            let all = self.statements() - before;
            let rows = self.fleet.wait(seal::rows(self.fleet.pool(), run)).unwrap();
            let bytes: i64 = rows.iter().map(|(_, _, length)| length).sum();
            [rows.len() as f64, bytes as f64, all]
        };
        let (short, long) = (one("cost-short", 2), one("cost-long", 12));
        let each = |at: usize| (long[at] - short[at]) / 10.0;
        println!(
            "a run of 2 iterations: {:.0} rows, {:.0} bytes, {:.0} statements",
            short[0], short[1], short[2]
        );
        println!(
            "each further iteration: {:.1} rows, {:.0} bytes, {:.1} statements",
            each(0),
            each(1),
            each(2)
        );
    }

    fn statements(&self) -> f64 {
        self.fleet.wait(ralph_loop_fleet::db::statements(self.fleet.pool())).unwrap() as f64
    }

    /// The time from a machine's death until another worker holds its run, with the default lease.
    fn take_over(&self) {
        let run = "taken-over";
        let slow = RunRequest {
            overrides: Overrides { verify: vec!["sleep 600".into()], ..Overrides::default() },
            ..self.request(1)
        };
        add(&self.fleet, run, slow);
        let mut first = self.worker(&self.env.path("state-first"), &["--once", run]);
        until("work", || (self.find(run).head > 2000).then_some(()));
        let mut second = self.worker(&self.env.path("state-second"), &["--name", "second"]);
        until("the other worker", || {
            let known = self.fleet.wait(workers::list(self.fleet.pool())).unwrap();
            known.iter().any(|worker| worker.id == "second").then_some(())
        });
        let epoch = self.find(run).epoch;
        first.kill().unwrap();
        let begun = Instant::now();
        first.wait().unwrap();
        until("the take-over", || (self.find(run).epoch > epoch).then_some(()));
        println!("taken over after {:.1} s, with a lease of 30 s", begun.elapsed().as_secs_f64());
        for _ in 0..2 {
            end(&second);
        }
        second.wait().unwrap();
        // Otherwise it would be assigned to the next worker and keep it busy.
        let taken = until("the end of its hold", || {
            self.fleet.wait(lease::take(self.fleet.pool(), run, "bench", Duration::from_secs(60))).ok()
        });
        self.fleet.wait(lease::release(self.fleet.pool(), &taken, "over", None)).unwrap();
    }

    /// Finished runs per minute: with workers, and with as many parallel plain processes.
    fn rate(&self, count: usize) {
        let name = |at: usize| format!("rate-{:?}-{at}", self.isolation).to_lowercase();
        let mut workers: Vec<Child> = (0..WORKERS)
            .map(|at| {
                let name = format!("w{at}-{:?}", self.isolation).to_lowercase();
                self.worker(&self.env.path(&format!("state{at}")), &["--name", &name, "--jobs", "1"])
            })
            .collect();
        until("the workers", || {
            let known = self.fleet.wait(workers::list(self.fleet.pool())).unwrap();
            let lives =
                |worker: &&workers::WorkerRow| worker.silent.is_some_and(|s| s < 10.0) && !worker.draining;
            (known.iter().filter(lives).count() >= WORKERS).then_some(())
        });
        // Alternately, so that other load on the machine affects both.
        let (mut fleet, mut alone) = (0.0, 0.0);
        for turn in 0..TURNS {
            let (from, to) = (turn * count / TURNS, (turn + 1) * count / TURNS);
            let begun = Instant::now();
            (from..to).for_each(|at| add(&self.fleet, &name(at), self.request(3)));
            // Rarely, because polling takes time from the workers.
            while !(from..to).rev().all(|at| self.find(&name(at)).status == "over") {
                assert!(begun.elapsed() < Duration::from_secs(600), "the runs do not end");
                std::thread::sleep(Duration::from_millis(50));
            }
            fleet += begun.elapsed().as_secs_f64();
            alone += self.plain(to - from);
        }
        workers.iter().for_each(end);
        workers.iter_mut().for_each(|worker| drop(worker.wait()));
        let [fleet, alone] = [fleet, alone].map(|seconds| count as f64 / seconds * 60.0);
        let isolation = if self.isolation == Isolation::None { "none" } else { "auto" };
        println!(
            "{count} runs of 3 iterations, isolation {isolation}: {fleet:.0} per minute over {WORKERS} workers, {alone:.0} as {WORKERS} plain processes, ratio {:.2}",
            fleet / alone
        );
    }

    /// The duration of this many parallel plain runs, in seconds.
    fn plain(&self, count: usize) -> f64 {
        let isolation = if self.isolation == Isolation::None { "none" } else { "auto" };
        let from = self.origin(3).display().to_string();
        let begun = Instant::now();
        let mut left = count;
        let mut plain: Vec<Child> = Vec::new();
        while left > 0 || !plain.is_empty() {
            plain.retain_mut(|child| child.try_wait().unwrap().is_none());
            while left > 0 && plain.len() < WORKERS {
                left -= 1;
                let args = [
                    "run",
                    "--isolation",
                    isolation,
                    "--clone",
                    &from,
                    "--verify",
                    CHECK,
                    "--new",
                    "--json",
                    "Write the parts.",
                ];
                let mut command = self.env.ralph_command(&self.env.path("home"), &args);
                plain.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        begun.elapsed().as_secs_f64()
    }
}

fn end(child: &Child) {
    let _ = Command::new("kill").arg(child.id().to_string()).status();
}
