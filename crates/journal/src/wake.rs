//! Waking whoever drives a run: a datagram socket in the run's folder that anybody who puts a letter into the inbox
//! pokes.
//!
//! A poke says only "look now". The driver looks at its usual pace anyway, so a socket that is missing, stale or full
//! costs a moment and loses nothing. Unlike a FIFO it cannot hold up somebody who reads all files of the folder.

use crate::layout::RunDir;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest path that fits a socket's address everywhere.
const ADDRESS_MAX: usize = 100;

/// The driver's end.
#[derive(Debug)]
pub struct Waker {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Waker {
    /// Listens in this run's folder; `None` where that cannot be, and pokes go unheard.
    pub fn listen(run: &RunDir) -> Option<Self> {
        let path = run.wake();
        // Only the holder of the lock comes here: what a dead driver left goes, anything else stays.
        if std::fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_socket()) {
            let _ = std::fs::remove_file(&path);
        }
        let socket = at(run, |path| UnixDatagram::bind(path)).ok()?;
        Some(Self { socket, path })
    }

    /// Waits until somebody pokes, at most this long.
    pub fn wait(&self, length: Duration) {
        let length = length.max(Duration::from_millis(1));
        let mut byte = [0];
        let poked = self.socket.set_read_timeout(Some(length)).and_then(|()| self.socket.recv(&mut byte));
        match poked {
            // One look answers all who have poked.
            Ok(_) => {
                if self.socket.set_nonblocking(true).is_ok() {
                    while self.socket.recv(&mut byte).is_ok() {}
                    let _ = self.socket.set_nonblocking(false);
                }
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // A broken socket must not make a wait a busy one.
            Err(_) => pause(length),
        }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Tells whoever drives the run, if anybody, to look at the inbox now.
pub fn poke(run: &RunDir) {
    let _ = UnixDatagram::unbound().and_then(|socket| {
        socket.set_nonblocking(true)?;
        at(run, |path| socket.send_to(b".", path))
    });
}

/// Lets a moment pass.
pub(crate) fn pause(length: Duration) {
    let mut none: [nix::poll::PollFd<'_>; 0] = [];
    let _ = nix::poll::poll(&mut none, u16::try_from(length.as_millis()).unwrap_or(u16::MAX));
}

/// Calls with the socket's path, by way of the open folder where it is too long for an address.
fn at<T>(run: &RunDir, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = run.wake();
    if path.as_os_str().as_bytes().len() <= ADDRESS_MAX {
        return call(&path);
    }
    let folder = File::open(run.path())?;
    let name = path.file_name().unwrap_or_default();
    call(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}
