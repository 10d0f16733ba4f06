//! The only way from inside the sandbox into the network: a proxy in this process.
//!
//! A sandboxed command has no network but a socket in the file system ([`bridge`] makes it look like a proxy on a port).
//! The proxy resolves names itself, looks at the addresses, and dials exactly those, so a name that changes its mind
//! between the look and the connection leads nowhere. Hosts that are not on the list are refused and reported.

mod address;
pub(super) mod bridge;
pub mod defaults;
mod dial;
mod head;
mod policy;
mod pump;
mod reach;
mod serve;

pub use policy::{Dialer, EgressPolicy, EgressRefusal, Endpoint, HostRule, OnRefusal, Resolver};
pub use reach::PublishedPort;

pub(crate) use bridge::forward_main;
use reach::Bridges;
use serve::Server;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Ports that are shown at a time.
const SHOWN: usize = 32;

/// The proxy's port in the sandbox. Every command has a network of its own, so it is always free.
pub(super) const INSIDE_PORT: u16 = 3128;

/// Reads any bytes as what a client says to the proxy, and forgets it: what fuzzing calls. Returns the host that it asks for.
#[doc(hidden)]
pub fn read_anything(mut bytes: &[u8]) -> Option<String> {
    match head::wish(&head::read(&mut bytes).ok()?).ok()? {
        head::ProxyRequest::Connect { host, .. } | head::ProxyRequest::Forward { host, .. } => Some(host),
        _ => None,
    }
}

/// A running proxy; it ends when dropped.
#[derive(Debug)]
pub struct Egress {
    socket: PathBuf,
    tcp: Option<u16>,
    server: Arc<Server>,
    /// Ports inside that are ports of this machine, too, as long as the proxy runs.
    shown: Mutex<BTreeMap<u16, PublishedPort>>,
}

impl Egress {
    /// Listens on a socket in `folder`, and on a port of this machine where `tcp` asks for one.
    pub fn start(policy: EgressPolicy, folder: &Path, tcp: bool) -> io::Result<Self> {
        let socket = folder.join("egress.sock");
        fs::remove_file(&socket).ok();
        // The name of a socket has 107 bytes; by way of the open folder every name is short enough.
        let opened = fs::File::open(folder)?;
        let listener = UnixListener::bind(crate::os::short_path(&opened, folder, "egress.sock"))?;
        let server = Arc::new(Server::new(policy));
        let own = Arc::clone(&server);
        serve::spawn("ralph-egress", move || serve::accept(listener.incoming(), &own))?;
        let tcp = if tcp { Some(Self::listen(&server)?) } else { None };
        Ok(Self { socket, tcp, server, shown: Mutex::default() })
    }

    fn listen(server: &Arc<Server>) -> io::Result<u16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let own = Arc::clone(server);
        serve::spawn("ralph-egress", move || serve::accept(listener.incoming(), &own))?;
        Ok(port)
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its port on this machine, where it has one.
    pub(super) fn tcp_port(&self) -> Option<u16> {
        self.tcp
    }

    /// Ports of servers on this machine that can be reached from inside.
    pub fn local_ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> =
            self.server.policy.endpoints.iter().filter(|e| e.is_local()).map(|e| e.port).collect();
        ports.retain(|port| *port != INSIDE_PORT);
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// A connection to `port` inside, of whichever running command listens there.
    pub fn reach(&self, port: u16) -> io::Result<UnixStream> {
        self.bridges().reach(port)
    }

    /// Makes `port` inside a port of this machine, for a browser on this side of the sandbox.
    pub fn publish(&self, port: u16) -> io::Result<PublishedPort> {
        reach::publish(&self.server, port)
    }

    /// The port of this machine that leads to `port` inside; made when it is first asked for.
    pub fn shown_at(&self, port: u16) -> io::Result<SocketAddr> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shown.get(&port) {
            return Ok(known.address);
        }
        if shown.len() >= SHOWN {
            return Err(io::Error::other("too many ports are shown already"));
        }
        let published = self.publish(port)?;
        let address = published.address;
        shown.insert(port, published);
        Ok(address)
    }

    fn bridges(&self) -> &Bridges {
        &self.server.bridges
    }
}

impl Drop for Egress {
    fn drop(&mut self) {
        self.server.over.store(true, Ordering::SeqCst);
        // Wakes those who wait for the next client, so that they see it.
        if let Some(folder) = self.socket.parent()
            && let Ok(opened) = fs::File::open(folder)
        {
            UnixStream::connect(crate::os::short_path(&opened, folder, "egress.sock")).ok();
        }
        if let Some(port) = self.tcp {
            std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        }
        fs::remove_file(&self.socket).ok();
    }
}
