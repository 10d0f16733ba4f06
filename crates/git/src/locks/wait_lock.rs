//! A lock to wait for: two runs that need one checkout use it in turn.

use crate::error::{Error, Result};
use crate::process::running;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

const LONGEST: Duration = Duration::from_secs(1_800);

/// A held lock; released when dropped, and when its process ends.
#[derive(Debug)]
pub struct WaitLock {
    _file: Flock<File>,
}

impl WaitLock {
    /// Waits for the lock. The file stays: its name is the lock.
    pub fn take(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
        }
        let open = || OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let mut file = open().map_err(|e| Error::file("open", path, e))?;
        let deadline = Instant::now() + LONGEST;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => return Ok(Self { _file: file }),
                Err((back, Errno::EWOULDBLOCK | Errno::EINTR)) if Instant::now() < deadline => file = back,
                Err((_, errno)) => return Err(Error::file("lock", path, errno.into())),
            }
            running::pause();
        }
    }
}
