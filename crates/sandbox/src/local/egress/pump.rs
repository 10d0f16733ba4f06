//! Copies bytes both ways between two connections.

use nix::errno::Errno;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection without data for this long is closed. A model may think for minutes.
pub(super) const SILENCE: Duration = Duration::from_secs(30 * 60);
const BUFFER: usize = 128 * 1024;

pub(super) trait Connection: Read + Write + AsFd + Send + Sized + 'static {
    fn try_clone_stream(&self) -> io::Result<Self>;
    fn close(&self, how: Shutdown);
    fn idle_timeout(&self, time: Duration);
}

macro_rules! connection {
    ($kind:ty) => {
        impl Connection for $kind {
            fn try_clone_stream(&self) -> io::Result<Self> {
                self.try_clone()
            }
            fn close(&self, how: Shutdown) {
                self.shutdown(how).ok();
            }
            fn idle_timeout(&self, time: Duration) {
                self.set_read_timeout(Some(time)).ok();
            }
        }
    };
}
connection!(TcpStream);
connection!(UnixStream);

pub(super) fn both<A: Connection, B: Connection>(a: A, b: B) {
    a.idle_timeout(SILENCE);
    b.idle_timeout(SILENCE);
    let (Ok(a_clone), Ok(b_clone)) = (a.try_clone_stream(), b.try_clone_stream()) else { return };
    let back = std::thread::Builder::new().name("ralph-pump".into()).spawn(move || one(b_clone, a_clone));
    if back.is_err() {
        // Both streams end with their last handle.
        return;
    }
    one(a, b);
    if let Ok(back) = back {
        back.join().ok();
    }
}

fn one<A: Connection, B: Connection>(from: A, to: B) {
    match moved(&from, &to) {
        Ok(()) => to.close(Shutdown::Write),
        // The kernel can't splice between sockets of these kinds; nothing has been read yet.
        Err(Errno::EINVAL | Errno::ENOSYS) => copied(from, to),
        Err(_) => {
            // Broken or silent for too long: closes both directions.
            from.close(Shutdown::Both);
            to.close(Shutdown::Both);
        }
    }
}

/// Only Linux can splice between any two connections.
#[cfg(not(target_os = "linux"))]
fn moved(_: &impl Connection, _: &impl Connection) -> nix::Result<()> {
    Err(Errno::ENOSYS)
}

/// Lets the kernel move the bytes through a pipe, without copying them here.
#[cfg(target_os = "linux")]
fn moved(from: &impl Connection, to: &impl Connection) -> nix::Result<()> {
    use nix::fcntl::{FcntlArg, SpliceFFlags, fcntl, splice};
    /// Unprivileged pipes are limited to 1 MiB.
    const PIPE: i32 = 512 * 1024;
    let (out, into) = crate::os::pipe().map_err(|_| Errno::ENOSYS)?;
    fcntl(&into, FcntlArg::F_SETPIPE_SZ(PIPE)).ok();
    let most = usize::try_from(PIPE).unwrap_or(BUFFER);
    loop {
        let mut left = match splice(from, None, &into, None, most, SpliceFFlags::SPLICE_F_MOVE) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno),
        };
        while left > 0 {
            match splice(&out, None, to, None, left, SpliceFFlags::SPLICE_F_MOVE) {
                Ok(written) => left = left.saturating_sub(written),
                Err(Errno::EINTR) => {}
                // Bytes are in the pipe already, so there is no fallback.
                Err(_) => return Err(Errno::EPIPE),
            }
        }
    }
}

fn copied<A: Connection, B: Connection>(mut from: A, mut to: B) {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => {
                // Broken or silent for too long: closes both directions.
                from.close(Shutdown::Both);
                to.close(Shutdown::Both);
                return;
            }
        };
        if to.write_all(buffer.get(..read).unwrap_or_default()).is_err() {
            from.close(Shutdown::Both);
            break;
        }
    }
    to.close(Shutdown::Write);
}
