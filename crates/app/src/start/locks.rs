//! One run at a time per folder. The lock is in `ralph`'s state folder, out of agents' reach; a run's record
//! links to the lock of its folder.

use crate::error::AppError;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::lock::{self, LockError, LockHolder, RunLock};
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::spec::RunSpec;
use std::path::Path;
use std::time::Duration;

/// How long the guard of a dead run may take to end its leftovers.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(15);

/// Takes the lock of a run's folder.
pub fn of_run(home: &StateHome, spec: &RunSpec) -> Result<RunLock, AppError> {
    of_folder(home, spec.home(), &spec.run_id)
}

/// Takes a folder's lock for a run and links the run's record to it.
pub fn of_folder(home: &StateHome, folder: &Path, run_id: &RunId) -> Result<RunLock, AppError> {
    let lock = take(home, folder, run_id, CLEANUP_TIMEOUT)?;
    lead(home, run_id, &lock);
    Ok(lock)
}

/// Links a run's record to the lock of its folder, so that the driver can be found from the run.
pub fn lead(home: &StateHome, run_id: &RunId, lock: &RunLock) {
    use std::os::unix::ffi::OsStrExt as _;
    let record = home.record(run_id);
    let place = record.lock_place();
    if record.path().is_dir() && (place.is_symlink() || record.lock() != lock.path()) {
        let _ = std::fs::remove_file(&place);
        let _ = std::fs::write(&place, lock.path().as_os_str().as_bytes());
    }
}

/// Takes a folder's lock under any name.
pub fn take(home: &StateHome, folder: &Path, name: &RunId, timeout: Duration) -> Result<RunLock, LockError> {
    let holder = LockHolder::new(std::process::id(), name.clone(), SystemClock::default().now());
    RunLock::take(&home.folder_lock(folder), &holder, timeout)
}

/// Who holds a folder's lock.
pub fn holder(home: &StateHome, folder: &Path) -> Option<LockHolder> {
    lock::holder(&home.folder_lock(folder))
}
