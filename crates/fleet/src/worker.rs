//! A worker: says that it lives, hears what it may take, and starts a process for each run. SIGTERM lets it finish what its
//! runs are at: each is handed over after its iteration.

use crate::db::{Fleet, url};
use crate::dispatch::{self, Dispatch, GIVEN, WAITS, queue_of};
use crate::drive::HOLDER;
use crate::error::FleetError;
use crate::workers::{self, Report, Reported};
use crate::{lease, runs};
use apalis::prelude::{BackendExt as _, BoxDynError, Data, Strategy, WorkerBuilder};
use apalis_postgres::{Config, PostgresStorage};
use ralph_loop_app::{AppError, Environment};
use sqlx::postgres::PgListener;
use std::collections::{BTreeMap, VecDeque};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Time between two looks.
const TICK: Duration = Duration::from_millis(400);
/// Time between two looks at the queue, where nothing wakes it: the database tells of what is new.
const QUEUE: Duration = Duration::from_secs(1);
/// Time between two looks for runs to give out, for each worker of the fleet, and at most.
const GIVE_EACH: Duration = Duration::from_millis(100);
const GIVE_MAX: Duration = Duration::from_secs(1);
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
    /// What it has, beside the agents that are found.
    pub labels: Vec<String>,
    /// Runs at a time.
    pub capacity: u32,
    /// Whether it also gives out runs; one that was let in with a token sees only its own.
    pub gives_out: bool,
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
    /// Workers of the fleet, as heard last.
    others: u32,
    given: Instant,
    /// A place has become free since.
    freed: bool,
    /// There is a run more since.
    waits: bool,
    /// Runs that begin once a process has ended.
    next: VecDeque<String>,
    wake: UnboundedSender<()>,
    ended: UnboundedSender<String>,
}

/// Works until it is told to end and its runs are handed over.
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
        let (wake, wakes) = unbounded_channel();
        let (ended, ends) = unbounded_channel();
        let worker = Worker {
            fleet,
            env,
            options,
            running: BTreeMap::new(),
            draining: None,
            refused: None,
            others: 1,
            given: Instant::now(),
            freed: false,
            waits: false,
            next: VecDeque::new(),
            wake,
            ended,
        };
        worker.run(tell, Arc::new(Mutex::new(wakes)), ends).await
    })
}

impl Worker<'_> {
    async fn run(
        mut self,
        tell: &mut dyn FnMut(Told),
        wakes: Wakes,
        mut ends: UnboundedReceiver<String>,
    ) -> Result<(), AppError> {
        let failed = |e: std::io::Error| AppError::environment(format!("signals cannot be heard: {e}"));
        let mut term = signal(SignalKind::terminate()).map_err(failed)?;
        let mut int = signal(SignalKind::interrupt()).map_err(failed)?;
        self.report(true).await?;
        let (words, mut heard) = unbounded_channel();
        let listening = tokio::spawn(listen(self.fleet.clone(), self.options.id.clone(), words, wakes));
        let (news, mut waits) = unbounded_channel();
        let ear = Ear { worker: self.options.id.clone(), given: self.wake.clone(), waits: news };
        let waking = tokio::spawn(wake(self.fleet.clone(), ear, self.options.gives_out));
        tell(Told::Ready);
        let mut reported = Instant::now();
        loop {
            tokio::select! {
                _ = term.recv() => self.drain(tell).await,
                _ = int.recv() => self.drain(tell).await,
                word = heard.recv() => self.take(word, tell).await,
                run = ends.recv() => self.end(run, tell).await,
                Some(()) = waits.recv() => {
                    // Several at once are one piece of news.
                    while waits.try_recv().is_ok() {}
                    self.waits = true;
                }
                () = tokio::time::sleep(TICK) => {}
            }
            self.give_out().await;
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
        listening.abort();
        waking.abort();
        self.give_back(&mut heard).await;
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
            Ok(heard) => {
                self.others = heard.others;
                if heard.draining && self.draining.is_none() {
                    self.drain(tell).await;
                }
            }
            Err(error) => tracing::warn!(%error, "the worker could not report"),
        }
    }

    /// Gives out runs, where nobody else does: the more workers there are, the less often each of them looks.
    async fn give_out(&mut self) {
        let pause = GIVE_EACH.saturating_mul(self.others).clamp(TICK, GIVE_MAX);
        let news = std::mem::take(&mut self.waits) || self.freed;
        if !self.options.gives_out || (self.given.elapsed() < pause && !news) {
            return;
        }
        self.given = Instant::now();
        let given = match std::mem::take(&mut self.freed) {
            true => self.fleet.within(dispatch::dispatch_next(self.fleet.pool())).await,
            false => self.fleet.within(dispatch::dispatch(self.fleet.pool())).await,
        };
        match given {
            Ok(0) => {}
            // Some of it may be for this worker.
            Ok(_) => drop(self.wake.send(())),
            Err(error) => tracing::warn!(%error, "nothing could be given out"),
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

    /// Starts a process for a run that this worker was told to take.
    async fn take(&mut self, word: Option<Dispatch>, tell: &mut dyn FnMut(Told)) {
        let Some(Dispatch { run }) = word else { return tokio::time::sleep(TICK).await };
        if self.draining.is_some() {
            return;
        }
        let full = self.running.len() >= usize::try_from(self.options.capacity).unwrap_or(usize::MAX);
        if full || self.running.contains_key(&run) {
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

    #[allow(clippy::disallowed_methods, reason = "a run is a process of its own, with a guard of its own")]
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
        if let Some(run) = self.next.pop_front() {
            self.take(Some(Dispatch { run }), tell).await;
        }
        // There is a free place: who waits need not wait for the next look.
        self.freed = true;
    }

    /// What was given to this worker and not begun goes to others at once.
    async fn give_back(&self, heard: &mut UnboundedReceiver<Dispatch>) {
        heard.close();
        let _ = self.fleet.within(runs::give_back(self.fleet.pool(), &self.options.id)).await;
        let _ = self.report(false).await;
    }
}

/// What makes the queue be looked at before its time.
type Wakes = Arc<Mutex<UnboundedReceiver<()>>>;

/// Hears from the queue what this worker may take.
async fn listen(fleet: Fleet, worker: String, words: UnboundedSender<Dispatch>, wakes: Wakes) {
    async fn hear(word: Dispatch, words: Data<UnboundedSender<Dispatch>>) -> Result<(), BoxDynError> {
        words.send(word).map_err(|_| "the worker ends".into())
    }
    loop {
        let config = Config::default().queue(queue_of(&worker)).heartbeat_interval(Duration::from_secs(10));
        let wakes = wakes.clone();
        let woken = futures_util::stream::poll_fn(move |cx| {
            let mut wakes = wakes.lock().unwrap_or_else(|e| e.into_inner());
            match wakes.poll_recv(cx) {
                // Nobody wakes it any more: its own time is left.
                Poll::Ready(None) => Poll::Pending,
                woken => woken,
            }
        });
        let strategy = Strategy::new().interval(QUEUE).stream(woken);
        let backend: PostgresStorage<Dispatch> = PostgresStorage::new(fleet.pool()).with_config(config);
        let name = format!("{worker}-{:x}", random());
        let backend = backend.poll_with_strategy(strategy);
        let ran =
            WorkerBuilder::new(name.as_str()).backend(backend).data(words.clone()).build(hear).run().await;
        if let Err(error) = ran {
            tracing::warn!(%error, "the queue cannot be heard");
        }
        tokio::time::sleep(TICK).await;
    }
}

/// Whom the news of the database is for.
struct Ear {
    worker: String,
    /// There is a word for this worker.
    given: UnboundedSender<()>,
    /// A run waits.
    waits: UnboundedSender<()>,
}

/// Hears from the database that there is a word for this worker, or a run to give out. A pooler between them may keep that to
/// itself; then both are looked for in their own time.
async fn wake(fleet: Fleet, ear: Ear, gives_out: bool) {
    loop {
        if let Err(error) = ear.hear(&fleet, gives_out).await {
            tracing::info!(%error, "the database tells nothing for the moment");
        }
        tokio::time::sleep(REPORT).await;
    }
}

impl Ear {
    async fn hear(&self, fleet: &Fleet, gives_out: bool) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(fleet.pool()).await?;
        listener.listen_all([GIVEN].into_iter().chain(gives_out.then_some(WAITS))).await?;
        loop {
            let told = listener.try_recv().await?;
            let heard = match &told {
                Some(told) if told.channel() == WAITS => self.waits.send(()),
                Some(told) if told.payload() != self.worker => continue,
                // It may have missed something while it was not connected.
                _ => self.given.send(()),
            };
            if heard.is_err() {
                return Ok(());
            }
        }
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
