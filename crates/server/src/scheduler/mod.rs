//! Schedules runs: a limit for this server and for each provider, fair between users and repos.
//!
//! A waiting run is a file, so that restarts keep it. A started run is a separate process; it outlives the
//! server, and the next server finds its record.

mod pick;
mod queue;

pub use pick::Limits;
pub(crate) use queue::read_queue;
pub use queue::{AuthSource, Queued};

use crate::http::problem::Problem;
use crate::index::Indexed;
use crate::live::{Driven, Live};
use crate::secrets::Secrets;
use queue::Queue;
use ralph_loop_app::{App, AppError};
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry;
use ralph_loop_protocol::id::RunId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Polling interval, because runs may end unnoticed.
const LOOK: Duration = Duration::from_secs(1);
/// Runs starting at once; each uses a thread.
const STARTING_MAX: usize = 8;
/// Runs that may wait.
const WAITING_MAX: usize = 10_000;

/// The outcome of a requested run.
pub type Begun = Result<RunId, Problem>;

/// Starts runs when it is their turn.
#[derive(Debug)]
pub struct Scheduler {
    app: App,
    home: StateHome,
    live: Arc<Live>,
    secrets: Arc<Secrets>,
    limits: Limits,
    queue: Queue,
    waiting: Mutex<Vec<Queued>>,
    starting: Mutex<Vec<Driven>>,
    told: Mutex<BTreeMap<String, oneshot::Sender<Begun>>>,
    wake: Notify,
    draining: AtomicBool,
}

/// Current load of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SchedulerState {
    /// Active and starting runs of this server.
    pub running: usize,
    /// Queued runs.
    pub waiting: usize,
    /// Limit for active runs.
    pub limit: usize,
    /// Load by sandbox provider.
    pub providers: Vec<ProviderLoad>,
    /// Whether the server is shutting down and starts no more runs.
    pub draining: bool,
}

/// Load of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderLoad {
    /// The provider.
    pub name: String,
    /// Its active runs.
    pub running: usize,
    /// Its limit, if there is one.
    pub limit: Option<usize>,
}

impl Scheduler {
    /// Loads the queue of the previous server.
    pub fn new(
        app: App,
        home: StateHome,
        live: Arc<Live>,
        secrets: Arc<Secrets>,
        limits: Limits,
        queue_folder: &std::path::Path,
    ) -> Arc<Self> {
        let queue = Queue::at(queue_folder);
        let waiting = queue.load(&home);
        Arc::new(Self {
            app,
            home,
            live,
            secrets,
            limits,
            queue,
            waiting: Mutex::new(waiting),
            starting: Mutex::default(),
            told: Mutex::default(),
            wake: Notify::new(),
            draining: AtomicBool::new(false),
        })
    }

    /// Queues a run. If it can start now, the receiver gets the outcome once it started or was rejected.
    pub fn add(&self, queued: Queued) -> Result<Option<oneshot::Receiver<Begun>>, Problem> {
        if self.draining.load(Ordering::Relaxed) {
            return Err(Problem::new(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                "the server is about to end",
            )
            .hint("ask again in a moment"));
        }
        if let Some(why) = self.limits.refuse(queued.places(), &queued.provider) {
            return Err(Problem::bad(why).hint("let fewer race, or start the server with a higher `--jobs`"));
        }
        let (tell, told) = oneshot::channel();
        let running = self.running();
        let mut waiting = self.waiting();
        if waiting.len() >= WAITING_MAX {
            return Err(Problem::new(
                axum::http::StatusCode::TOO_MANY_REQUESTS,
                format!("{WAITING_MAX} runs wait already"),
            ));
        }
        self.queue.save(&queued)?;
        self.live.comes_back(queued.id.as_str());
        self.told.lock().unwrap_or_else(|e| e.into_inner()).insert(queued.id.to_string(), tell);
        waiting.push(queued);
        let is_next = pick::next(&waiting, &running, &self.limits) == Some(waiting.len() - 1);
        drop(waiting);
        self.show_waiting();
        self.wake.notify_one();
        Ok(is_next.then_some(told))
    }

    /// Removes a run that hasn't started; returns whether it was queued.
    pub async fn take_out(&self, run: &str) -> Result<bool, Problem> {
        let before = {
            let mut waiting = self.waiting();
            let before = waiting.len();
            waiting.retain(|queued| queued.id.as_str() != run);
            before != waiting.len()
        };
        if before {
            self.told.lock().unwrap_or_else(|e| e.into_inner()).remove(run);
            self.queue.remove(run);
            self.live.remove(run).await?;
            self.show_waiting();
        }
        Ok(before)
    }

    /// Whether this run has no record: queued, starting, or rejected at its turn.
    pub fn is_waiting(&self, run: &str) -> bool {
        let starting =
            self.starting.lock().unwrap_or_else(|e| e.into_inner()).iter().any(|one| one.run == run);
        let known = || RunId::parse(run).is_ok_and(|run| registry::find(&self.home, &run).is_some());
        self.waiting().iter().any(|queued| queued.id.as_str() == run) || (starting && !known())
    }

    /// Starts runs until the server ends.
    pub async fn work(self: Arc<Self>) {
        self.show_waiting();
        loop {
            while let Some(queued) = self.next() {
                let own = self.clone();
                tokio::task::spawn_blocking(move || own.begin(&queued));
            }
            let _ = tokio::time::timeout(LOOK, self.wake.notified()).await;
        }
    }

    /// Stops starting runs.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Current load.
    pub fn state(&self) -> SchedulerState {
        let running = self.running();
        let mut providers: BTreeMap<String, usize> =
            self.limits.providers.keys().map(|p| (p.clone(), 0)).collect();
        for one in &running {
            *providers.entry(one.provider.clone()).or_default() += 1;
        }
        SchedulerState {
            running: running.len(),
            waiting: self.waiting().iter().filter(|queued| queued.problem.is_none()).count(),
            limit: self.limits.runs,
            providers: providers
                .into_iter()
                .map(|(name, running)| ProviderLoad {
                    limit: self.limits.providers.get(&name).copied(),
                    name,
                    running,
                })
                .collect(),
            draining: self.draining.load(Ordering::Relaxed),
        }
    }

    /// The next run; counts as starting from now on.
    fn next(&self) -> Option<Queued> {
        if self.draining.load(Ordering::Relaxed) {
            return None;
        }
        if self.starting.lock().unwrap_or_else(|e| e.into_inner()).len() >= STARTING_MAX {
            return None;
        }
        let running = self.running();
        let mut waiting = self.waiting();
        let at = pick::next(&waiting, &running, &self.limits)?;
        let queued = waiting.remove(at);
        drop(waiting);
        self.starting.lock().unwrap_or_else(|e| e.into_inner()).extend(queued.load());
        Some(queued)
    }

    /// Starts a run and reports the outcome. Blocks until it has begun.
    fn begin(&self, queued: &Queued) {
        let begun = match registry::find(&self.home, &queued.id) {
            // A previous server started it.
            Some(_) => Ok(queued.id.clone()),
            None => self.spawn(queued),
        };
        match &begun {
            Ok(_) => {
                self.queue.remove(queued.id.as_str());
                if let Some(row) = self.live.refresh(&queued.id) {
                    self.live.write_later(row);
                }
            }
            Err(error) => self.refused(queued, error),
        }
        self.starting.lock().unwrap_or_else(|e| e.into_inner()).retain(|one| !queued.has(&one.run));
        let tell = self.told.lock().unwrap_or_else(|e| e.into_inner()).remove(queued.id.as_str());
        if let Some(tell) = tell {
            // The receiver may be gone.
            let _ = tell.send(begun.map_err(Problem::from));
        }
        self.show_waiting();
        self.wake.notify_one();
    }

    fn spawn(&self, queued: &Queued) -> Result<RunId, AppError> {
        let env = self.app.environment();
        let vars = queued.variables(env.vars(), self.secrets.values()?);
        App::new(env.with_vars(vars).with_face("web")).spawn(&queued.request)
    }

    /// Keeps a rejected run with its error in the list until it is removed.
    fn refused(&self, queued: &Queued, error: &AppError) {
        let mut queued = queued.clone();
        let hint = error.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        queued.problem = Some(format!("{}{hint}", error.message));
        if let Err(problem) = self.queue.save(&queued) {
            tracing::warn!(problem = problem.detail(), "a refused run could not be kept");
        }
        self.waiting().push(queued);
    }

    /// Updates the rows of queued runs with their positions.
    fn show_waiting(&self) {
        let waiting = self.waiting();
        let mut place = 0;
        for queued in waiting.iter() {
            if queued.problem.is_none() {
                place += 1;
            }
            let row = queued.row((queued.problem.is_none()).then_some(place));
            self.live.publish_row(&row);
            self.live.write_later(Indexed { row, spend: None });
        }
    }

    /// Runs of this server that are active or starting. Runs from terminals don't count.
    fn running(&self) -> Vec<Driven> {
        let mut all: Vec<Driven> =
            self.live.driven().into_iter().filter(|driven| driven.person.is_some()).collect();
        for one in self.starting.lock().unwrap_or_else(|e| e.into_inner()).iter() {
            if !all.iter().any(|known| known.run == one.run) {
                all.push(one.clone());
            }
        }
        all
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Queued>> {
        self.waiting.lock().unwrap_or_else(|e| e.into_inner())
    }
}
