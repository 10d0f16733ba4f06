//! A connection to the database that can be cut: data in transit stays there and arrives late once it is restored. It can also be
//! redirected to another database.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub struct Wire {
    host: String,
    pub port: u16,
    cut: Arc<AtomicBool>,
    to: Arc<Mutex<PathBuf>>,
}

impl Wire {
    /// Forwards a port of this machine to this socket.
    pub fn to(socket: &Path) -> Self {
        Self::from("127.0.0.1", socket)
    }

    /// Forwards a port of this address to this socket.
    pub fn from(host: &str, socket: &Path) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let (port, cut) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(false)));
        let to = Arc::new(Mutex::new(socket.to_owned()));
        let (socket, of_threads) = (to.clone(), cut.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let to = socket.lock().unwrap().clone();
                let Ok(far) = UnixStream::connect(to) else { continue };
                join(near, far, &of_threads);
            }
        });
        Self { host: host.to_owned(), port, cut, to }
    }

    /// Redirects new connections. Connections to an ended database have ended with it.
    pub fn redirect(&self, socket: &Path) {
        *self.to.lock().unwrap() = socket.to_owned();
    }

    pub fn url(&self) -> String {
        format!("postgres://ralph@{}:{}/ralph?sslmode=disable", self.host, self.port)
    }

    /// Nothing more arrives, in either direction, without an error.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    /// Restores the connection; data in transit arrives, and everything after it.
    pub fn mend(&self) {
        self.cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.mend();
    }
}

/// Copies in both directions. If one end closes, the other end sees it once the connection is restored.
fn join(near: TcpStream, far: UnixStream, cut: &Arc<AtomicBool>) {
    let (near, far) = (Arc::new(near), Arc::new(far));
    for there in [true, false] {
        let (near, far, cut) = (near.clone(), far.clone(), cut.clone());
        std::thread::spawn(move || {
            match there {
                true => carry(&*near, &*far, &cut),
                false => carry(&*far, &*near, &cut),
            }
            wait_until_restored(&cut);
            let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
        });
    }
}

fn wait_until_restored(cut: &AtomicBool) {
    while cut.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn carry(mut from: impl Read, mut to: impl Write, cut: &AtomicBool) {
    let mut part = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut part) {
        wait_until_restored(cut);
        if count == 0 || to.write_all(&part[..count]).is_err() {
            return;
        }
    }
}
