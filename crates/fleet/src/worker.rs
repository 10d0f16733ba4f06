//! A worker: says that it lives, asks for runs, and starts a process for each one. SIGTERM lets it finish what its
//! runs are at: each is handed over after its iteration.

use crate::db::{Fleet, url};
use crate::dispatch::{self, WAITS};
use crate::drive::HOLDER;
use crate::error::FleetError;
use crate::workers::{self, Report, Reported};
use crate::{lease, runs};
use ralph_loop_app::{AppError, Environment};
use sqlx::postgres::PgListener;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Time between two looks.
const TICK: Duration = Duration::from_millis(400);
/// How often a worker with free places asks for runs: it hears of new ones, but not of those that become free.
const ASK: Duration = Duration::from_secs(1);
/// How long an answer of the database is waited for.
const ANSWER: Duration = Duration::from_secs(5);
/// Time between two reports of a worker.
const REPORT: Duration = Duration::from_secs(3);
/// Free bytes below which a machine takes no run.
const DISK_MIN: u64 = 512 * 1024 * 1024;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Its name.
    pub id: String,
    /// Its labels, in addition to the agents that it finds.
    pub labels: Vec<String>,
    /// Runs at a time.
    pub capacity: u32,
    /// How long runs may take to come to the end of their iteration when it drains; then they are suspended.
    pub drain: Duration,
}

/// What a worker tells while it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It is ready.
    Ready,
    /// It drives a run.
    Begun(String),
    /// The process of a run has ended.
    Ended(String),
    /// It takes no further run.
    Draining,
}

/// A run's process.
struct Running {
    pid: Option<u32>,
    holder: String,
}

struct Worker<'a> {
    fleet: Fleet,
    env: &'a Environment,
    options: &'a WorkerOptions,
    running: BTreeMap<String, Running>,
    draining: Option<Instant>,
    /// Why the fleet does not want it any more.
    refused: Option<FleetError>,
    /// Runs that begin once a process has ended.
    next: VecDeque<String>,
    ended: UnboundedSender<String>,
}

/// Drives runs until the worker is stopped and has handed them over.
pub fn work(env: &Environment, options: &WorkerOptions, tell: &mut dyn FnMut(Told)) -> Result<(), AppError> {
    let url = url(env.vars()).ok_or_else(|| FleetError::Setup {
        what: "RALPH_DB_URL names no Postgres".into(),
        hint: crate::db::NO_URL.into(),
    })?;
    crate::store::ArtifactStore::of(env.vars())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| AppError::environment(format!("the worker cannot start: {e}")))?;
    runtime.block_on(async {
        let fleet = Fleet::connect(&url, 5).await?.with_patience(ANSWER);
        let (ended, ends) = unbounded_channel();
        let worker = Worker {
            fleet,
            env,
            options,
            running: BTreeMap::new(),
            draining: None,
            refused: None,
            next: VecDeque::new(),
            ended,
        };
        worker.run(tell, ends).await
    })
}

impl Worker<'_> {
    async fn run(
        mut self,
        tell: &mut dyn FnMut(Told),
        mut ends: UnboundedReceiver<String>,
    ) -> Result<(), AppError> {
        let failed = |e: std::io::Error| AppError::environment(format!("signals cannot be heard: {e}"));
        let mut term = signal(SignalKind::terminate()).map_err(failed)?;
        let mut int = signal(SignalKind::interrupt()).map_err(failed)?;
        self.report(true).await?;
        let news = Arc::new(Notify::new());
        let hearing = tokio::spawn(hear(self.fleet.clone(), news.clone()));
        tell(Told::Ready);
        self.fill(tell).await;
        let (mut reported, mut asked) = (Instant::now(), Instant::now());
        loop {
            let asks = tokio::select! {
                _ = term.recv() => { self.drain(tell).await; false }
                _ = int.recv() => { self.drain(tell).await; false }
                run = ends.recv() => { self.end(run, tell).await; true }
                () = news.notified() => true,
                () = tokio::time::sleep(TICK) => asked.elapsed() >= ASK,
            };
            if asks {
                self.fill(tell).await;
                asked = Instant::now();
            }
            if reported.elapsed() >= REPORT {
                reported = Instant::now();
                self.hear_report(tell).await;
            }
            if self.draining.is_some_and(|since| since.elapsed() > self.options.drain) {
                self.end_all();
            }
            if self.draining.is_some() && self.running.is_empty() {
                break;
            }
        }
        hearing.abort();
        self.give_back().await;
        match self.refused {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Says that it lives, and does what the fleet wishes.
    async fn hear_report(&mut self, tell: &mut dyn FnMut(Told)) {
        match self.report(false).await {
            // Who was revoked holds nothing and takes nothing.
            Ok(heard) if heard.revoked => {
                self.refused = Some(workers::is_revoked(&self.options.id));
                self.end_all();
            }
            Err(error @ FleetError::Setup { .. }) => {
                self.refused = Some(error);
                self.end_all();
            }
            Ok(heard) if heard.draining && self.draining.is_none() => self.drain(tell).await,
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the worker could not report"),
        }
    }

    /// Takes runs for its free places.
    async fn fill(&mut self, tell: &mut dyn FnMut(Told)) {
        let places = usize::try_from(self.options.capacity).unwrap_or(usize::MAX);
        for _ in self.running.len() + self.next.len()..places {
            if self.draining.is_some() {
                return;
            }
            match self.fleet.within(dispatch::next_run(self.fleet.pool(), &self.options.id)).await {
                Ok(Some(run)) => self.take(run, tell).await,
                Ok(None) => return,
                Err(error) => return tracing::warn!(%error, "the worker could not ask for runs"),
            }
        }
    }

    async fn report(&self, begins: bool) -> Result<Reported, FleetError> {
        let said = Report {
            id: self.options.id.clone(),
            labels: self.options.labels.clone(),
            capacity: i32::try_from(self.options.capacity).unwrap_or(i32::MAX),
            load: load(),
            health: self.health(),
            draining: self.draining.is_some(),
            begins,
        };
        self.fleet.within(workers::report(self.fleet.pool(), &said)).await
    }

    /// `ok`, or what keeps this machine from taking runs.
    fn health(&self) -> String {
        let free = self.env.state_home().ok().and_then(|home| {
            let stat =
                nix::sys::statvfs::statvfs(home.path().ancestors().find(|path| path.is_dir())?).ok()?;
            #[allow(clippy::unnecessary_cast, reason = "the width of these numbers differs between systems")]
            let free = (stat.blocks_available() as u64).saturating_mul(stat.fragment_size() as u64);
            Some(free)
        });
        match free {
            Some(free) if free < DISK_MIN => {
                format!("the disk is nearly full: {} MB are free", free / 1_000_000)
            }
            _ => "ok".to_owned(),
        }
    }

    async fn drain(&mut self, tell: &mut dyn FnMut(Told)) {
        if self.draining.is_some() {
            // Asked twice: it is urgent.
            return self.end_all();
        }
        self.draining = Some(Instant::now());
        if let Err(error) = self.report(false).await {
            tracing::warn!(%error, "couldn't report the end of the run to the fleet");
        }
        tell(Told::Draining);
    }

    /// Suspends every run: its process journals that, and lets go.
    fn end_all(&mut self) {
        for running in self.running.values() {
            if let Some(pid) = running.pid.and_then(|pid| i32::try_from(pid).ok()) {
                let _ = nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(pid),
                    nix::sys::signal::Signal::SIGTERM,
                );
            }
        }
        self.draining.get_or_insert_with(Instant::now);
    }

    /// Starts a process for a run that this worker was given.
    async fn take(&mut self, run: String, tell: &mut dyn FnMut(Told)) {
        if self.running.contains_key(&run) {
            // The process that was before it has let go, and is about to end.
            return self.next.push_back(run);
        }
        match self.start(&run) {
            Ok(running) => {
                tell(Told::Begun(run.clone()));
                self.running.insert(run, running);
            }
            Err(error) => {
                tracing::error!(%error, run, "the process of a run does not start");
                let why = error.to_string();
                let _ = self.fleet.within(runs::not_begun(self.fleet.pool(), &run, &why)).await;
            }
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a run is a separate process with its own guard")]
    fn start(&self, run: &str) -> std::io::Result<Running> {
        let Some(program) = self.env.program() else {
            return Err(std::io::Error::other("the `ralph` binary is not known"));
        };
        let holder = format!("{}/{run}/{:x}", self.options.id, random());
        let mut command = tokio::process::Command::new(program);
        command.args(["--json", "worker", "--once", run]);
        command.env_clear().envs(self.env.vars().iter());
        command.env(HOLDER, &holder).env("RALPH_WORKER", &self.options.id);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn()?;
        let pid = child.id();
        let (ended, run) = (self.ended.clone(), run.to_owned());
        tokio::spawn(async move {
            let _: std::io::Result<ExitStatus> = child.wait().await;
            let _ = ended.send(run);
        });
        Ok(Running { pid, holder })
    }

    /// The process of a run has ended. One that died leaves its hold behind, which need not be waited for.
    async fn end(&mut self, run: Option<String>, tell: &mut dyn FnMut(Told)) {
        let Some(run) = run else { return };
        if let Some(running) = self.running.remove(&run) {
            let freed = lease::release_dead(self.fleet.pool(), &run, &running.holder);
            let _ = self.fleet.within(freed).await;
            tell(Told::Ended(run));
        }
        if self.draining.is_none()
            && let Some(run) = self.next.pop_front()
        {
            self.take(run, tell).await;
        }
    }

    /// What was given to this worker and not begun goes to others at once.
    async fn give_back(&self) {
        let _ = self.fleet.within(runs::give_back(self.fleet.pool(), &self.options.id)).await;
        let _ = self.report(false).await;
    }
}

/// Hears from the database that a run waits. A pooler between them may keep that to itself; then the worker asks in its own time.
async fn hear(fleet: Fleet, news: Arc<Notify>) {
    async fn listen(fleet: &Fleet, news: &Notify) -> Result<Infallible, sqlx::Error> {
        let mut listener = PgListener::connect_with(fleet.pool()).await?;
        listener.listen(WAITS).await?;
        loop {
            // A lost connection counts as news: a notification may have been missed.
            listener.try_recv().await?;
            news.notify_one();
        }
    }
    loop {
        let Err(error) = listen(&fleet, &news).await;
        tracing::info!(%error, "the database connection was lost");
        tokio::time::sleep(REPORT).await;
    }
}

/// The load of one minute for each processor.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    load / f64::from(u32::try_from(processors).unwrap_or(1))
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    let _ = getrandom::fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}
