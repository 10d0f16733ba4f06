//! Active runs: one shared file watch, their states in memory, and subscribers to changes.
//!
//! A run belongs to its own process; its journal is only read here. A change wakes the run's viewers
//! immediately; a little later its row is rebuilt for lists and index.

mod reconcile;
mod refresh;
mod run;
mod viewers;
mod watch;

pub use run::LiveRun;
pub use viewers::Viewer;

use crate::index::{Index, Indexed};
use crate::row::RunRow;
use ralph_loop_app::App;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::id::RunId;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use tokio::sync::broadcast;
use viewers::Viewers;
use watch::Watcher;

/// Changes buffered for a slow list reader.
const CHANGES: usize = 4096;

/// A change of the list.
#[derive(Debug, Clone)]
pub enum RowChange {
    /// A new or changed row.
    Row(Arc<RunRow>),
    /// A removed run.
    Removed(String),
}

/// A run that counts against the scheduler's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driven {
    pub run: String,
    /// Its sandbox provider.
    pub provider: String,
    /// The folder it was started from.
    pub repo: String,
    /// Who requested it.
    pub person: Option<String>,
}

/// The active runs.
#[derive(Debug)]
pub struct Live {
    pub(crate) app: App,
    pub(crate) home: StateHome,
    pub(crate) index: Arc<Index>,
    runs: Mutex<HashMap<RunId, Arc<Mutex<LiveRun>>>>,
    viewers: Viewers,
    dirty: Mutex<BTreeSet<RunId>>,
    wake: Condvar,
    rows: broadcast::Sender<RowChange>,
    watcher: Watcher,
    /// Active runs that didn't fit into the file watch, and are polled.
    unwatched: Mutex<BTreeSet<RunId>>,
    /// Rows to be written to the index.
    pending: Mutex<Vec<Indexed>>,
    /// Removed runs: late rows of theirs are dropped.
    removed: Mutex<BTreeSet<String>>,
    /// Serializes writing and removing rows, so that a removed row never reappears.
    writing: tokio::sync::Mutex<()>,
    stopping: AtomicBool,
    reconciled: AtomicBool,
}

impl Live {
    /// Watches nothing before [`Self::begin`].
    pub fn new(app: App, home: StateHome, index: Arc<Index>) -> Arc<Self> {
        Arc::new(Self {
            app,
            home,
            index,
            runs: Mutex::default(),
            viewers: Viewers::default(),
            dirty: Mutex::default(),
            wake: Condvar::new(),
            rows: broadcast::channel(CHANGES).0,
            watcher: Watcher::new(),
            unwatched: Mutex::default(),
            pending: Mutex::default(),
            removed: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            stopping: AtomicBool::new(false),
            reconciled: AtomicBool::new(false),
        })
    }

    /// Starts threads that read the watch, rebuild rows and update the index.
    pub fn begin(self: &Arc<Self>, runtime: &tokio::runtime::Handle) {
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let _ = std::thread::Builder::new().name(name.to_owned()).stack_size(1024 * 1024).spawn(work);
        };
        self.watcher.watch_registry(&self.home);
        let live = self.clone();
        spawn("watch", Box::new(move || live.read_watch()));
        let (live, handle) = (self.clone(), runtime.clone());
        spawn("refresh", Box::new(move || live.refresh_loop(&handle)));
        let (live, handle) = (self.clone(), runtime.clone());
        spawn("reconcile", Box::new(move || live.reconcile(&handle)));
    }

    /// Subscribes to list changes.
    pub fn rows(&self) -> broadcast::Receiver<RowChange> {
        self.rows.subscribe()
    }

    /// Broadcasts a row, unless its run was removed.
    pub fn publish_row(&self, row: &RunRow) {
        let removed = self.removed.lock().unwrap_or_else(|e| e.into_inner());
        if !self.is_among(&removed, &row.id) {
            // Fails without subscribers.
            let _ = self.rows.send(RowChange::Row(Arc::new(row.clone())));
        }
    }

    fn publish_removed(&self, run: &str) {
        let _ = self.rows.send(RowChange::Removed(run.to_owned()));
    }

    /// Marks a run as possibly changed.
    pub fn touch(&self, run: &RunId) {
        self.dirty.lock().unwrap_or_else(|e| e.into_inner()).insert(run.clone());
        self.wake.notify_all();
    }

    /// Adds a viewer; the run is watched as long as it lives.
    pub fn view(self: &Arc<Self>, run: &RunId) -> Viewer {
        let viewer = Viewer::new(self.clone(), run.clone());
        self.watch_run(run);
        viewer
    }

    /// Every run with a driving process.
    pub fn driven(&self) -> Vec<Driven> {
        let runs: Vec<Arc<Mutex<LiveRun>>> = self.runs().values().cloned().collect();
        let rows = runs.iter().map(|run| run.lock().unwrap_or_else(|e| e.into_inner()).row().clone());
        rows.filter(|row| row.driven)
            .map(|row| Driven { run: row.id, provider: row.provider, repo: row.repo, person: row.person })
            .collect()
    }

    /// Whether every record was read since the start.
    pub fn is_reconciled(&self) -> bool {
        self.reconciled.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Number of runs in memory and of watched folders.
    pub fn sizes(&self) -> (usize, usize) {
        (self.runs().len(), self.watcher.len())
    }

    pub fn stop(&self) {
        self.stopping.store(true, std::sync::atomic::Ordering::Relaxed);
        self.wake.notify_all();
    }

    /// Queues a row for the next write.
    pub(crate) fn write_later(&self, row: Indexed) {
        self.pending.lock().unwrap_or_else(|e| e.into_inner()).push(row);
        self.wake.notify_all();
    }

    /// Removes a run permanently, including rows not written yet.
    pub(crate) async fn remove(&self, run: &str) -> Result<(), sqlx::Error> {
        self.removed.lock().unwrap_or_else(|e| e.into_inner()).insert(run.to_owned());
        let _alone = self.writing.lock().await;
        self.index.remove(run).await?;
        if let Ok(run) = RunId::parse(run) {
            self.forget_run(&run);
        }
        self.publish_removed(run);
        Ok(())
    }

    /// Allows a removed run that is requested again under its old id.
    pub(crate) fn comes_back(&self, run: &str) {
        self.removed.lock().unwrap_or_else(|e| e.into_inner()).remove(run);
    }

    /// Whether a run was removed and hasn't come back: a fetched run keeps its id.
    fn is_removed(&self, run: &str) -> bool {
        self.is_among(&self.removed.lock().unwrap_or_else(|e| e.into_inner()), run)
    }

    fn is_among(&self, removed: &BTreeSet<String>, run: &str) -> bool {
        removed.contains(run)
            && !RunId::parse(run)
                .is_ok_and(|id| ralph_loop_journal::folder::registry::find(&self.home, &id).is_some())
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Mutex<LiveRun>>>> {
        self.runs.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn watch_run(&self, run: &RunId) {
        let Some(entry) = ralph_loop_journal::folder::registry::find(&self.home, run) else { return };
        let fits = self.watcher.watch(run, entry.run_dir().path());
        let mut unwatched = self.unwatched.lock().unwrap_or_else(|e| e.into_inner());
        if fits {
            unwatched.remove(run);
        } else {
            unwatched.insert(run.clone());
        }
    }

    fn forget_run(&self, run: &RunId) {
        self.runs().remove(run);
        self.watcher.forget(run);
        self.unwatched.lock().unwrap_or_else(|e| e.into_inner()).remove(run);
    }
}
