//! Bytes both ways between two connections.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection over which nothing came for this long is given up. A model may think for minutes.
pub(super) const SILENCE: Duration = Duration::from_secs(30 * 60);
const BUFFER: usize = 128 * 1024;

/// A connection of either kind.
pub(super) trait Connection: Read + Write + Send + Sized + 'static {
    fn twin(&self) -> io::Result<Self>;
    fn close(&self, how: Shutdown);
    fn patience(&self, time: Duration);
}

macro_rules! connection {
    ($kind:ty) => {
        impl Connection for $kind {
            fn twin(&self) -> io::Result<Self> {
                self.try_clone()
            }
            fn close(&self, how: Shutdown) {
                self.shutdown(how).ok();
            }
            fn patience(&self, time: Duration) {
                self.set_read_timeout(Some(time)).ok();
            }
        }
    };
}
connection!(TcpStream);
connection!(UnixStream);

/// Passes bytes both ways until both sides have ended.
pub(super) fn both<A: Connection, B: Connection>(a: A, b: B) {
    a.patience(SILENCE);
    b.patience(SILENCE);
    let (Ok(a_twin), Ok(b_twin)) = (a.twin(), b.twin()) else { return };
    let back = std::thread::Builder::new().name("ralph-pump".into()).spawn(move || one(b_twin, a_twin));
    if back.is_err() {
        // Both streams end with their last handle.
        return;
    }
    one(a, b);
    if let Ok(back) = back {
        back.join().ok();
    }
}

fn one<A: Connection, B: Connection>(mut from: A, mut to: B) {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => {
                // Broken or silent for too long: neither way goes on.
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
