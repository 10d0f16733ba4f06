//! The lock of a folder: one driver at a time. It is a `flock` on `.ralph/lock`, shared with the run's guard process,
//! so it is released exactly when the driver and everything it started are gone, however they died.

use crate::error::JournalError;
use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::lease::DriverLease;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const HOLDER_MAX: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    pub pid: u32,
    pub run_id: RunId,
    pub since: Timestamp,
    /// Its lease on the run, once its driver has started.
    #[serde(flatten)]
    pub lease: DriverLease,
}

impl LockHolder {
    /// A holder whose driver hasn't started yet.
    pub fn new(pid: u32, run_id: RunId, since: Timestamp) -> Self {
        Self { pid, run_id, since, lease: DriverLease::default() }
    }
}

/// The lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{}", already_working(path, holder.as_deref()))]
    Held {
        path: PathBuf,
        /// The holder, if the file names one.
        holder: Option<Box<LockHolder>>,
    },
    #[error(transparent)]
    File(#[from] JournalError),
}

fn already_working(path: &Path, holder: Option<&LockHolder>) -> String {
    let Some(holder) = holder else {
        return format!("another process is already working in this folder (lock `{}`)", path.display());
    };
    // Display converts it to the reader's time zone.
    let since = holder.since.strftime("%Y-%m-%dT%H:%M:%SZ");
    // `ralph archive` takes the lock under its own name.
    let who = match holder.run_id.as_str() {
        "archive" => "`ralph archive`".to_owned(),
        run => format!("run {run}"),
    };
    format!("{who} is already working in this folder (process {}, since {since})", holder.pid)
}

/// A held lock; released when it and every inherited copy are closed.
#[derive(Debug)]
pub struct RunLock {
    lock: Flock<File>,
    path: PathBuf,
    holder: LockHolder,
}

impl RunLock {
    /// Takes the lock. If the holder is dead but its guard is still cleaning up, waits for up to `timeout`.
    pub fn take(path: &Path, holder: &LockHolder, timeout: Duration) -> Result<Self, LockError> {
        let deadline = Instant::now() + timeout;
        loop {
            match Self::try_take(path, holder) {
                Err(LockError::Held { holder: Some(found), .. })
                    if !found.lease.is_elsewhere(&holder.lease)
                        && !is_alive(found.pid)
                        && Instant::now() < deadline =>
                {
                    let mut none: [nix::poll::PollFd<'_>; 0] = [];
                    let _ = nix::poll::poll(&mut none, 20u16);
                }
                result => return result,
            }
        }
    }

    fn try_take(path: &Path, holder: &LockHolder) -> Result<Self, LockError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| JournalError::file("make the folder", parent, e))?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(|e| JournalError::file("open", path, e))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => {
                let mut taken = Self { lock, path: path.to_owned(), holder: holder.clone() };
                taken.write()?;
                Ok(taken)
            }
            Err((file, nix::errno::Errno::EWOULDBLOCK)) => {
                let holder = read_holder(&file).map(Box::new);
                Err(LockError::Held { path: path.to_owned(), holder })
            }
            Err((_, errno)) => Err(JournalError::file("lock", path, errno.into()).into()),
        }
    }

    /// Records the lease of the driver that has started under this lock.
    pub fn record_driver(&mut self, lease: &DriverLease) -> Result<(), JournalError> {
        self.holder.lease.clone_from(lease);
        self.write()
    }

    /// Writes the holder for other processes; before truncating, as they may be reading.
    fn write(&mut self) -> Result<(), JournalError> {
        let text = serde_json::to_vec(&self.holder).unwrap_or_default();
        let lock = &mut self.lock;
        lock.rewind()
            .and_then(|()| lock.write_all(&text))
            .and_then(|()| lock.set_len(text.len() as u64))
            .map_err(|e| JournalError::file("write", &self.path, e))
    }

    /// The lock's file, to be inherited by the guard.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn read_holder(file: &File) -> Option<LockHolder> {
    let mut text = Vec::new();
    file.take(HOLDER_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The current holder; `None` if the lock is free.
pub fn holder(path: &Path) -> Option<LockHolder> {
    // A repo may have brought it along: a pipe or a device doesn't count, and doesn't block.
    let file = ralph_loop_safe_fs::open_plain(path).ok()?;
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => None,
        Err((file, _)) => read_holder(&file),
    }
}

/// Whether a process is stopped by a signal (Ctrl-Z, `kill -STOP`) until it is resumed.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A program's name may hold anything, so the state is what follows its last parenthesis.
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['T', 't']))
}

/// When a process began, in ticks since boot: with its id this identifies it even if ids are reused.
pub fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()
}

/// This process's PID namespace: a container has separate ids.
pub fn pid_namespace() -> Option<String> {
    Some(std::fs::read_link("/proc/self/ns/pid").ok()?.display().to_string())
}

/// Whether a process of this id exists.
pub fn is_alive(pid: u32) -> bool {
    let pid = nix::unistd::Pid::from_raw(pid as i32);
    !matches!(nix::sys::signal::kill(pid, None), Err(nix::errno::Errno::ESRCH))
}
