//! State shared by all routes.

use crate::audit::{Audit, AuditEntry};
use crate::fleet::FleetSide;
use crate::home::ServerHome;
use crate::http::problem::Problem;
use crate::index::Index;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::options::DemoStarter;
use crate::people::{LoginCodes, LoginLimiter, People, Sessions};
use crate::readiness::LastProbe;
use crate::scheduler::Scheduler;
use crate::secrets::Secrets;
use jiff::Timestamp;
use ralph_loop_app::App;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::id::RunId;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};

/// Limit for streaming connections.
pub(crate) const SOCKETS: usize = 4000;
/// Concurrent `debug` commands; each blocks a thread.
const COMMANDS: usize = 4;
/// Runs with an edit lock.
const EDITED_MAX: usize = 1024;

/// The state of a running server.
#[derive(Debug)]
pub struct Server {
    pub app: App,
    /// The state folder.
    pub home: StateHome,
    /// The server's own folder.
    pub own: ServerHome,
    /// Rows of all runs.
    pub index: Arc<Index>,
    /// Active runs.
    pub live: Arc<Live>,
    /// Decides which run starts.
    pub scheduler: Arc<Scheduler>,
    /// Users.
    pub people: People,
    /// Browser sessions.
    pub sessions: Sessions,
    /// Login codes.
    pub codes: LoginCodes,
    /// Whether the database answers.
    pub probe: LastProbe,
    /// Limits wrong tokens.
    pub limiter: LoginLimiter,
    /// The audit log.
    pub audit: Audit,
    pub secrets: Arc<Secrets>,
    pub metrics: Metrics,
    /// Becomes true at shutdown.
    pub closing: watch::Receiver<bool>,
    /// Folders in which runs may start, besides those with runs.
    pub repos: Vec<PathBuf>,
    /// Reachable only from this machine.
    pub is_local: bool,
    pub demo: bool,
    pub demos: Option<DemoStarter>,
    /// The fleet, if there is one.
    pub fleet: Option<Arc<FleetSide>>,
    /// Permits for streaming connections.
    pub sockets: Arc<Semaphore>,
    commands: Arc<Semaphore>,
    edits: Mutex<HashMap<RunId, Arc<tokio::sync::Mutex<()>>>>,
}

/// Parts created before the server.
#[derive(Debug)]
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
    pub demos: Option<DemoStarter>,
    pub fleet: Option<Arc<FleetSide>>,
}

impl Server {
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
            probe: LastProbe::default(),
            limiter: LoginLimiter::default(),
            secrets: parts.secrets,
            metrics: Metrics::default(),
            closing: parts.closing,
            repos: parts.repos,
            is_local: parts.is_local,
            demo: parts.demo,
            demos: parts.demos,
            fleet: parts.fleet,
            sockets: Arc::new(Semaphore::new(SOCKETS)),
            commands: Arc::new(Semaphore::new(COMMANDS)),
            edits: Mutex::default(),
        })
    }

    pub fn now(&self) -> Timestamp {
        SystemClock::default().now()
    }

    /// Runs blocking work off the async threads.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| Problem::internal("the work was not finished").hint("try again"))?
    }

    /// Runs work on a thread outside this runtime, because HTTP clients bring their own.
    pub async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let broken = || Problem::internal("the work was not finished").hint("try again");
        self.blocking(move || std::thread::spawn(work).join().unwrap_or_else(|_| Err(broken()))).await
    }

    pub fn entry(&self, run: &str) -> Result<Registration, Problem> {
        let wrong = || {
            Problem::missing(format!(
                "run `{}` doesn't exist",
                ralph_loop_protocol::display::text::one_line(run, 80)
            ))
        };
        let run = RunId::parse(run).map_err(|_| wrong())?;
        ralph_loop_journal::folder::registry::find(&self.home, &run).ok_or_else(wrong)
    }

    /// Records an action. If recording fails, the action must not happen.
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
            previous: None,
        };
        self.audit.note(entry).map_err(|e| {
            Problem::internal(format!("can't write the audit log: {e}"))
                .hint("free disk space; nothing was done")
        })
    }

    /// Serializes edits of a run, so that none overwrites an unseen one.
    pub async fn edit_alone(&self, run: &RunId) -> OwnedMutexGuard<()> {
        self.lock_of(run).lock_owned().await
    }

    /// Limits `debug` commands: one per run and few in total; `None` if there is no room.
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
