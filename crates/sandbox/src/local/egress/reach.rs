//! Connects from outside the sandbox to a port inside: a dev server for a browser on this machine.

use super::pump;
use super::serve::{self, Server};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const ANSWER: Duration = Duration::from_secs(5);
/// One bridge for each running command.
const BRIDGES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Bridges {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    controls: Vec<UnixStream>,
    waiting: BTreeMap<u64, SyncSender<Option<UnixStream>>>,
    next: u64,
}

impl Bridges {
    /// Registers a bridge that can reach ports on its side.
    pub(super) fn add(&self, control: UnixStream) {
        control.set_write_timeout(Some(ANSWER)).ok();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.controls.len() >= BRIDGES {
            // The oldest is the likeliest to be dead: a bridge lives as long as its command.
            inner.controls.remove(0);
        }
        inner.controls.push(control);
    }

    pub(super) fn arrived(&self, id: u64, stream: Option<UnixStream>) {
        let waiting = self.inner.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&id);
        if let Some(waiting) = waiting {
            waiting.try_send(stream).ok();
        }
    }

    /// Asks the bridges, the newest first, for a connection to `port`.
    pub(super) fn reach(&self, port: u16) -> io::Result<UnixStream> {
        for (id, answer) in self.ask(port) {
            let stream = answer.recv_timeout(ANSWER).ok().flatten();
            self.inner.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&id);
            if let Some(stream) = stream {
                return Ok(stream);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::ConnectionRefused,
            format!("no running command listens on port {port} in the sandbox"),
        ))
    }

    fn ask(&self, port: u16) -> Vec<(u64, Receiver<Option<UnixStream>>)> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut asked = Vec::new();
        let mut living = Vec::new();
        for mut control in std::mem::take(&mut inner.controls) {
            inner.next += 1;
            let id = inner.next;
            if writeln!(control, "{port} {id}").is_ok() {
                let (sender, receiver) = sync_channel(1);
                inner.waiting.insert(id, sender);
                asked.push((id, receiver));
                living.push(control);
            }
        }
        inner.controls = living;
        asked.reverse();
        asked
    }
}

/// A local port that leads to one in the sandbox, until dropped.
#[derive(Debug)]
pub struct PublishedPort {
    /// Its local address.
    pub address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Drop for PublishedPort {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).ok();
    }
}

/// Listens on a free local port and forwards everything to `port` inside.
pub(super) fn publish(server: &Arc<Server>, port: u16) -> io::Result<PublishedPort> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let over = Arc::new(AtomicBool::new(false));
    let (server, told) = (Arc::clone(server), Arc::clone(&over));
    serve::spawn("ralph-publish", move || {
        for client in listener.incoming().flatten() {
            if told.load(Ordering::SeqCst) {
                return;
            }
            let server = Arc::clone(&server);
            // Without a thread, the client's connection is closed.
            serve::spawn("ralph-publish", move || {
                if let Ok(inside) = server.bridges.reach(port) {
                    pump::both(client, inside);
                }
            })
            .ok();
        }
    })?;
    Ok(PublishedPort { address, over })
}
