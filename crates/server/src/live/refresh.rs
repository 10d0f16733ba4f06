//! Rebuilds rows soon after changes, at a limited rate.

use super::watch::Seen;
use super::{Live, LiveRun};
use crate::index::{Indexed, read_run};
use jiff::Timestamp;
use ralph_loop_app::AppError;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::folder::registry;
use ralph_loop_protocol::id::RunId;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Interval between passes.
const PACE: Duration = Duration::from_millis(100);
/// Rows kept while the database doesn't answer. Others are read again at the next start.
const PENDING: usize = 10_000;
/// Interval for checking runs that may have died or aren't watched.
const SWEEP: Duration = Duration::from_secs(2);

impl Live {
    /// Reads the watch until it ends.
    pub(super) fn read_watch(&self) {
        while !self.is_stopping() {
            let Some(seen) = self.watcher.read() else { return };
            for one in seen {
                match one {
                    Seen::Journal(run) => {
                        self.viewers.wake(&run);
                        self.touch(&run);
                    }
                    Seen::Output(run) => self.viewers.wake(&run),
                    Seen::Registered(run) => self.touch(&run),
                    Seen::Everything => {
                        self.viewers.wake_all();
                        self.touch_held();
                    }
                }
            }
        }
    }

    /// Rebuilds rows until the server ends.
    pub(super) fn refresh_loop(&self, runtime: &tokio::runtime::Handle) {
        let mut swept = Instant::now();
        while !self.is_stopping() {
            let begun = Instant::now();
            let dirty = self.next_dirty(SWEEP);
            let mut changed = std::mem::take(&mut *self.pending());
            for run in dirty {
                match self.refresh(&run) {
                    Some(row) => changed.push(row),
                    None => self.forget_gone(&run, runtime),
                }
            }
            self.write_rows(changed, runtime);
            if swept.elapsed() >= SWEEP {
                self.touch_held();
                self.touch_unwatched();
                swept = Instant::now();
            }
            self.rest(PACE.saturating_sub(begun.elapsed()));
        }
    }

    /// Writes rows of runs that weren't removed; failures are retried.
    fn write_rows(&self, mut rows: Vec<Indexed>, runtime: &tokio::runtime::Handle) {
        let _alone = self.writing.blocking_lock();
        rows.retain(|one| !self.is_removed(&one.row.id));
        if rows.is_empty() {
            return;
        }
        if let Err(error) = runtime.block_on(self.index.put(&rows)) {
            tracing::warn!(%error, "the index could not be written");
            let mut pending = self.pending();
            rows.truncate(PENDING);
            rows.append(&mut pending);
            *pending = rows;
        }
    }

    /// Removes a run whose registration is gone.
    fn forget_gone(&self, run: &RunId, runtime: &tokio::runtime::Handle) {
        if registry::find(&self.home, run).is_some() {
            return;
        }
        self.forget_run(run);
        if let Err(error) = runtime.block_on(self.index.remove(run.as_str())) {
            tracing::warn!(%error, "the index could not be written");
        }
        self.publish_removed(run.as_str());
    }

    /// The changed runs, waiting for one up to `timeout`.
    fn next_dirty(&self, timeout: Duration) -> Vec<RunId> {
        let mut dirty = self.dirty.lock().unwrap_or_else(|e| e.into_inner());
        let deadline = Instant::now() + timeout;
        while dirty.is_empty() && self.pending().is_empty() && !self.is_stopping() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            dirty = self.wake.wait_timeout(dirty, left).unwrap_or_else(|e| e.into_inner()).0;
        }
        std::mem::take(&mut *dirty).into_iter().collect()
    }

    /// Waits for more changes.
    fn rest(&self, length: Duration) {
        let deadline = Instant::now() + length;
        let mut dirty = self.dirty.lock().unwrap_or_else(|e| e.into_inner());
        while !self.is_stopping() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            dirty = self.wake.wait_timeout(dirty, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Vec<Indexed>> {
        self.pending.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn touch_held(&self) {
        let held: Vec<RunId> = self.runs().keys().cloned().collect();
        held.iter().for_each(|run| self.touch(run));
    }

    fn touch_unwatched(&self) {
        let runs: Vec<RunId> =
            self.unwatched.lock().unwrap_or_else(|e| e.into_inner()).iter().take(1000).cloned().collect();
        for run in runs {
            self.viewers.wake(&run);
            self.touch(&run);
        }
    }

    /// Reads a run now; returns what to write.
    pub(crate) fn refresh(&self, run: &RunId) -> Option<Indexed> {
        if self.is_removed(run.as_str()) {
            return None;
        }
        let indexed = match self.held(run) {
            Some(live) => {
                let mut live = live.lock().unwrap_or_else(|e| e.into_inner());
                match live.refresh(now()) {
                    Ok(changed) => {
                        let (over, driven) = (live.row().is_over(), live.row().driven);
                        drop(live);
                        self.let_go(run, over, driven);
                        changed
                    }
                    // The journal was rewritten: read it from the start.
                    Err(_) => {
                        drop(live);
                        self.runs().remove(run);
                        self.read(run)
                    }
                }
            }
            None => self.read(run),
        };
        if let Some(indexed) = &indexed {
            self.publish_row(&indexed.row);
        }
        indexed
    }

    /// Reads a run that isn't in memory and keeps an active one.
    fn read(&self, run: &RunId) -> Option<Indexed> {
        let entry = registry::find(&self.home, run)?;
        let (indexed, reading) = read_run(self.app.environment(), &entry);
        if !indexed.row.is_over() {
            self.watch_run(run);
        } else if !self.viewers.is_viewed(run) {
            self.forget_run(run);
        }
        let wanted = indexed.row.driven || self.viewers.is_viewed(run);
        if let Some(reading) = reading.filter(|_| wanted)
            && let Ok(live) = LiveRun::of(*reading, indexed.row.person.clone())
        {
            self.runs().insert(run.clone(), Arc::new(Mutex::new(live)));
        }
        Some(indexed)
    }

    /// Releases a run that is idle.
    fn let_go(&self, run: &RunId, over: bool, driven: bool) {
        if driven || self.viewers.is_viewed(run) {
            return;
        }
        if over {
            self.forget_run(run);
        } else {
            // Its folder stays watched in case it is resumed.
            self.runs().remove(run);
        }
    }

    fn held(&self, run: &RunId) -> Option<Arc<Mutex<LiveRun>>> {
        self.runs().get(run).cloned()
    }

    /// Calls `look` with a run from memory, else from its record.
    pub fn with<T>(&self, run: &RunId, look: impl FnOnce(&LiveRun) -> T) -> Result<T, AppError> {
        // A removed run may still be in memory.
        if let Some(live) = self.held(run).filter(|_| !self.is_removed(run.as_str())) {
            let mut live = live.lock().unwrap_or_else(|e| e.into_inner());
            let changed = live.refresh(now());
            if changed.is_ok() {
                if let Ok(Some(indexed)) = changed {
                    self.publish_row(&indexed.row);
                    self.write_later(indexed);
                }
                return Ok(look(&live));
            }
        }
        let entry = self.find(run)?;
        let live = LiveRun::load(self.app.environment(), entry)?;
        Ok(look(&live))
    }

    /// Finds a run's registration.
    pub fn find(&self, run: &RunId) -> Result<registry::Registration, AppError> {
        registry::find(&self.home, run).ok_or_else(|| {
            AppError::usage(format!("run `{run}` doesn't exist")).hint("choose a run from the list")
        })
    }
}

pub(crate) fn now() -> Timestamp {
    SystemClock::default().now()
}
