//! Wakes a run's driver: a datagram socket in the run's folder, poked by every process that puts a letter into the
//! inbox.
//!
//! A poke only means "check now". The driver checks at its usual pace anyway, so a missing, stale or full socket
//! costs a moment and loses nothing. Unlike a FIFO it can't block a process that reads all files of the folder.

use crate::folder::layout::RunDir;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest path that fits a socket address everywhere.
const ADDRESS_MAX: usize = 100;

#[derive(Debug)]
pub struct Waker {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Waker {
    /// Listens in this run's folder; `None` if that fails, and pokes are ignored.
    pub fn listen(run: &RunDir) -> Option<Self> {
        let path = run.wake();
        // Only the lock's holder comes here: removes a dead driver's socket, and nothing else.
        if std::fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_socket()) {
            let _ = std::fs::remove_file(&path);
        }
        let socket = at(run, |path| UnixDatagram::bind(path)).ok()?;
        Some(Self { socket, path })
    }

    /// Waits for a poke, at most this long.
    pub fn wait(&self, length: Duration) {
        let length = length.max(Duration::from_millis(1));
        let mut byte = [0];
        let poked = self.socket.set_read_timeout(Some(length)).and_then(|()| self.socket.recv(&mut byte));
        match poked {
            // One check answers all pokes.
            Ok(_) => {
                if self.socket.set_nonblocking(true).is_ok() {
                    while self.socket.recv(&mut byte).is_ok() {}
                    let _ = self.socket.set_nonblocking(false);
                }
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // A broken socket must not turn a wait into a busy loop.
            Err(_) => pause(length),
        }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Tells the run's driver, if any, to check the inbox now.
pub fn poke(run: &RunDir) {
    let _ = UnixDatagram::unbound().and_then(|socket| {
        socket.set_nonblocking(true)?;
        at(run, |path| socket.send_to(b".", path))
    });
}

pub(crate) fn pause(length: Duration) {
    let mut none: [nix::poll::PollFd<'_>; 0] = [];
    let _ = nix::poll::poll(&mut none, u16::try_from(length.as_millis()).unwrap_or(u16::MAX));
}

/// Calls with the socket's path, through the open folder if it is too long for an address.
fn at<T>(run: &RunDir, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = run.wake();
    if path.as_os_str().as_bytes().len() <= ADDRESS_MAX {
        return call(&path);
    }
    let folder = File::open(run.path())?;
    let name = path.file_name().unwrap_or_default();
    call(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}
