//! A way to the database that can be cut: what is on it stays on it, and arrives late once it is whole again.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub struct Wire {
    port: u16,
    cut: Arc<AtomicBool>,
}

impl Wire {
    /// A way from a port of this machine to this socket.
    pub fn to(socket: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, cut) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(false)));
        let (socket, of_threads): (PathBuf, _) = (socket.to_owned(), cut.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = UnixStream::connect(&socket) else { continue };
                let (near_again, far_again) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                let (there, back) = (of_threads.clone(), of_threads.clone());
                std::thread::spawn(move || carry(near, far_again, &there));
                std::thread::spawn(move || carry(far, near_again, &back));
            }
        });
        Self { port, cut }
    }

    pub fn url(&self) -> String {
        format!("postgres://ralph@127.0.0.1:{}/ralph?sslmode=disable", self.port)
    }

    /// Nothing more arrives, in either direction; nobody is told.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    /// What was on the way arrives, and everything else too.
    pub fn mend(&self) {
        self.cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.mend();
    }
}

fn carry(mut from: impl Read, mut to: impl Write, cut: &AtomicBool) {
    let mut part = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut part) {
        while cut.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if count == 0 || to.write_all(&part[..count]).is_err() {
            return;
        }
    }
}
