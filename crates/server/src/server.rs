//! What every route stands on.

use crate::audit::{Audit, AuditEntry};
use crate::fleet::FleetSide;
use crate::home::ServerHome;
use crate::index::Index;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::people::{LoginCodes, LoginLimiter, People, Sessions};
use crate::problem::Problem;
use crate::scheduler::Scheduler;
use crate::secrets::Secrets;
use jiff::Timestamp;
use ralph_loop_app::App;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::layout::StateHome;
use ralph_loop_journal::registry::Registration;
use ralph_loop_protocol::id::RunId;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};

/// Connections that watch, at most.
pub(crate) const SOCKETS: usize = 4000;
/// Commands of the mode `debug` at a time: each takes a thread for as long as it runs.
const COMMANDS: usize = 4;
/// Runs whose edits are kept apart.
const EDITED_MAX: usize = 1024;

/// Everything that a running server has.
#[derive(Debug)]
pub struct Server {
    /// Starts and opens runs.
    pub app: App,
    /// `ralph`'s own folder.
    pub home: StateHome,
    /// The server's own folder.
    pub own: ServerHome,
    /// The rows.
    pub index: Arc<Index>,
    /// The runs that something happens to.
    pub live: Arc<Live>,
    /// Who begins when.
    pub scheduler: Arc<Scheduler>,
    /// Who may come in.
    pub people: People,
    /// Who is logged in.
    pub sessions: Sessions,
    /// Codes that log in once.
    pub codes: LoginCodes,
    /// The limit on guesses.
    pub limiter: LoginLimiter,
    /// Who did what.
    pub audit: Audit,
    /// Secrets of runs.
    pub secrets: Arc<Secrets>,
    /// Counters.
    pub metrics: Metrics,
    /// Becomes true when the server is about to end.
    pub closing: watch::Receiver<bool>,
    /// The folders that runs may be started in, beside those that have runs already.
    pub repos: Vec<PathBuf>,
    /// Only this machine can reach it.
    pub is_local: bool,
    /// Filled with scripted runs.
    pub demo: bool,
    /// Other machines that drive its runs, where there are some.
    pub fleet: Option<Arc<FleetSide>>,
    /// Room for those who watch.
    pub sockets: Arc<Semaphore>,
    commands: Arc<Semaphore>,
    edits: Mutex<HashMap<RunId, Arc<tokio::sync::Mutex<()>>>>,
}

/// The parts that are made before a server.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields of `Server` of the same names")]
pub struct ServerParts {
    pub app: App,
    pub home: StateHome,
    pub own: ServerHome,
    pub live: Arc<Live>,
    pub scheduler: Arc<Scheduler>,
    pub people: People,
    pub sessions: Sessions,
    pub secrets: Arc<Secrets>,
    pub closing: watch::Receiver<bool>,
    pub repos: Vec<PathBuf>,
    pub is_local: bool,
    pub demo: bool,
    pub fleet: Option<Arc<FleetSide>>,
}

impl Server {
    /// Puts a server together.
    pub fn new(parts: ServerParts) -> Arc<Self> {
        Arc::new(Self {
            index: parts.live.index.clone(),
            audit: Audit::new(&parts.own),
            app: parts.app,
            home: parts.home,
            own: parts.own,
            live: parts.live,
            scheduler: parts.scheduler,
            people: parts.people,
            sessions: parts.sessions,
            codes: LoginCodes::default(),
            limiter: LoginLimiter::default(),
            secrets: parts.secrets,
            metrics: Metrics::default(),
            closing: parts.closing,
            repos: parts.repos,
            is_local: parts.is_local,
            demo: parts.demo,
            fleet: parts.fleet,
            sockets: Arc::new(Semaphore::new(SOCKETS)),
            commands: Arc::new(Semaphore::new(COMMANDS)),
            edits: Mutex::default(),
        })
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        SystemClock::default().now()
    }

    /// Does what blocks, off the threads that answer others.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| Problem::internal("the work was not finished").hint("try again"))?
    }

    /// The same on a thread that knows nothing of this runtime: what calls other servers brings one of its own.
    pub async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let broken = || Problem::internal("the work was not finished").hint("try again");
        self.blocking(move || std::thread::spawn(work).join().unwrap_or_else(|_| Err(broken()))).await
    }

    /// The run of this id.
    pub fn entry(&self, run: &str) -> Result<Registration, Problem> {
        let wrong = || {
            Problem::missing(format!("run `{}` doesn't exist", ralph_loop_protocol::text::one_line(run, 80)))
        };
        let run = RunId::parse(run).map_err(|_| wrong())?;
        ralph_loop_journal::registry::find(&self.home, &run).ok_or_else(wrong)
    }

    /// Notes what somebody does. Nobody acts unseen: what cannot be noted is not done.
    pub fn note_as(
        &self,
        who: &str,
        from: &str,
        action: &str,
        run: Option<&str>,
        detail: Option<String>,
    ) -> Result<(), Problem> {
        let entry = AuditEntry {
            at: self.now(),
            who: who.to_owned(),
            action: action.to_owned(),
            run: run.map(str::to_owned),
            detail,
            from: Some(from.to_owned()),
        };
        self.audit.note(entry).map_err(|e| {
            Problem::internal(format!("can't write the audit log: {e}"))
                .hint("make room on the disk; nothing was done")
        })
    }

    /// One edit of a run at a time, so that nobody saves over what they have not seen.
    pub async fn edit_alone(&self, run: &RunId) -> OwnedMutexGuard<()> {
        self.lock_of(run).lock_owned().await
    }

    /// One command of the mode `debug` of a run at a time, and few in all; nothing where there is no room.
    pub fn command_alone(&self, run: &RunId) -> Option<(OwnedMutexGuard<()>, OwnedSemaphorePermit)> {
        let alone = self.lock_of(&RunId::new(format!("{run}/debug"))).try_lock_owned().ok()?;
        Some((alone, self.commands.clone().try_acquire_owned().ok()?))
    }

    fn lock_of(&self, run: &RunId) -> Arc<tokio::sync::Mutex<()>> {
        let mut edits = self.edits.lock().unwrap_or_else(|e| e.into_inner());
        if edits.len() > EDITED_MAX {
            edits.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        edits.entry(run.clone()).or_default().clone()
    }
}
