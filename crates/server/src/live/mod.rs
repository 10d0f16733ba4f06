//! The runs that something happens to: one shared watch on their records, their states in memory, and whoever is told of changes.
//!
//! A run belongs to its own process. Here its journal is only read: a change of the file wakes those who look at the run at once,
//! and a little later its row is made anew for the lists and the index.

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
use ralph_loop_journal::layout::StateHome;
use ralph_loop_protocol::id::RunId;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use tokio::sync::broadcast;
use viewers::Viewers;
use watch::Watcher;

/// Changes that a slow reader of the list may lag behind.
const CHANGES: usize = 4096;

/// A change of the list.
#[derive(Debug, Clone)]
pub enum RowChange {
    /// A row is new or another one.
    Row(Arc<RunRow>),
    /// A run is gone from the list.
    Removed(String),
}

/// A run that takes a place in the scheduler's count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driven {
    /// The run.
    pub run: String,
    /// Who makes its sandbox.
    pub provider: String,
    /// The folder it was started from.
    pub repo: String,
    /// Who asked for it.
    pub person: Option<String>,
}

/// The runs that something happens to.
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
    /// Runs that may go on, but for which there is no room in the watch: looked at now and then.
    unwatched: Mutex<BTreeSet<RunId>>,
    /// Rows on their way into the index.
    pending: Mutex<Vec<Indexed>>,
    /// Runs that were taken out: a row of theirs that is still on its way comes too late.
    removed: Mutex<BTreeSet<String>>,
    /// Held by whoever writes rows or takes one out: a row that was taken out is not seen again, not even for a moment.
    writing: tokio::sync::Mutex<()>,
    stopping: AtomicBool,
    reconciled: AtomicBool,
}

impl Live {
    /// Nothing is watched before [`Self::begin`].
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

    /// Begins to watch: threads of their own read the watch, make rows anew, and bring the index up to date.
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

    /// Changes of the list from now on.
    pub fn rows(&self) -> broadcast::Receiver<RowChange> {
        self.rows.subscribe()
    }

    /// Tells those who look at the list of a row, unless its run was taken out: nothing is told of it after that.
    pub fn tell_row(&self, row: &RunRow) {
        let removed = self.removed.lock().unwrap_or_else(|e| e.into_inner());
        if !self.is_among(&removed, &row.id) {
            // Nobody may be looking.
            let _ = self.rows.send(RowChange::Row(Arc::new(row.clone())));
        }
    }

    fn tell_removed(&self, run: &str) {
        let _ = self.rows.send(RowChange::Removed(run.to_owned()));
    }

    /// Something may have happened to this run.
    pub fn touch(&self, run: &RunId) {
        self.dirty.lock().unwrap_or_else(|e| e.into_inner()).insert(run.clone());
        self.wake.notify_all();
    }

    /// Looks at a run from now on: it is watched as long as the viewer lives.
    pub fn view(self: &Arc<Self>, run: &RunId) -> Viewer {
        let viewer = Viewer::new(self.clone(), run.clone());
        self.watch_run(run);
        viewer
    }

    /// Every run that a process works on.
    pub fn driven(&self) -> Vec<Driven> {
        let runs: Vec<Arc<Mutex<LiveRun>>> = self.runs().values().cloned().collect();
        let rows = runs.iter().map(|run| run.lock().unwrap_or_else(|e| e.into_inner()).row().clone());
        rows.filter(|row| row.driven)
            .map(|row| Driven { run: row.id, provider: row.provider, repo: row.repo, person: row.person })
            .collect()
    }

    /// Whether every record was looked at since the start.
    pub fn is_reconciled(&self) -> bool {
        self.reconciled.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Runs that are held in memory, and folders that are watched.
    pub fn sizes(&self) -> (usize, usize) {
        (self.runs().len(), self.watcher.len())
    }

    /// Ends the threads.
    pub fn stop(&self) {
        self.stopping.store(true, std::sync::atomic::Ordering::Relaxed);
        self.wake.notify_all();
    }

    /// Rows that somebody has made are written with the next pass.
    pub(crate) fn write_later(&self, row: Indexed) {
        self.pending.lock().unwrap_or_else(|e| e.into_inner()).push(row);
        self.wake.notify_all();
    }

    /// Takes a run out of the list for good, also a row of it that is still on its way.
    pub(crate) async fn remove(&self, run: &str) -> Result<(), sqlx::Error> {
        self.removed.lock().unwrap_or_else(|e| e.into_inner()).insert(run.to_owned());
        let _alone = self.writing.lock().await;
        self.index.remove(run).await?;
        if let Ok(run) = RunId::parse(run) {
            self.forget_run(&run);
        }
        self.tell_removed(run);
        Ok(())
    }

    /// A run that was taken out is asked for again, under its old name.
    pub(crate) fn comes_back(&self, run: &str) {
        self.removed.lock().unwrap_or_else(|e| e.into_inner()).remove(run);
    }

    /// Whether a run was taken out, and has not come back since: one that is fetched again has its old name.
    fn is_removed(&self, run: &str) -> bool {
        self.is_among(&self.removed.lock().unwrap_or_else(|e| e.into_inner()), run)
    }

    fn is_among(&self, removed: &BTreeSet<String>, run: &str) -> bool {
        removed.contains(run)
            && !RunId::parse(run)
                .is_ok_and(|id| ralph_loop_journal::registry::find(&self.home, &id).is_some())
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Mutex<LiveRun>>>> {
        self.runs.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn watch_run(&self, run: &RunId) {
        let Some(entry) = ralph_loop_journal::registry::find(&self.home, run) else { return };
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
