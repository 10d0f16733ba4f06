//! The only way from the sandbox into the network: a proxy in this process.
//!
//! A sandboxed command has no network, only a socket in the file system ([`bridge`] makes it look like a proxy on a
//! port). The proxy resolves names itself, checks the addresses, and dials exactly those, so a name can't resolve
//! differently between check and connection. Other hosts are refused and reported.

mod address;
pub(super) mod bridge;
pub mod defaults;
mod dial;
mod head;
mod policy;
mod pump;
mod reach;
mod serve;

pub use policy::{
    Dialer, EgressKind, EgressPolicy, EgressRefusal, Endpoint, HostRule, InsideServer, OnRefusal, Resolver,
};
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

/// Most ports published at a time.
const SHOWN: usize = 32;

/// The proxy's port in the sandbox. Every command has a separate network, so it is always free.
pub(super) const INSIDE_PORT: u16 = 3128;

/// The entry point of fuzzing: reads any bytes as what a client sends to the proxy; returns the requested host.
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
    /// Ports inside that are published on this machine as long as the proxy runs.
    shown: Mutex<BTreeMap<u16, PublishedPort>>,
}

impl Egress {
    /// Listens on a socket in `folder`, and on a local port if `tcp` is set.
    pub fn start(policy: EgressPolicy, folder: &Path, tcp: bool) -> io::Result<Self> {
        let socket = folder.join("egress.sock");
        fs::remove_file(&socket).ok();
        // A socket name is limited to 107 bytes; through the open folder every name is short enough.
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

    /// The path of its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its local port, if any.
    pub(super) fn tcp_port(&self) -> Option<u16> {
        self.tcp
    }

    /// Ports of local servers that are reachable from inside.
    pub fn local_ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> =
            self.server.policy.endpoints.iter().filter(|e| e.is_local()).map(|e| e.port).collect();
        ports.extend(self.server.policy.inside.iter().map(|server| server.port));
        ports.retain(|port| *port != INSIDE_PORT);
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Connects to `port` inside, of whichever running command listens there.
    pub fn reach(&self, port: u16) -> io::Result<UnixStream> {
        self.bridges().reach(port)
    }

    /// Publishes `port` inside on this machine, for a browser outside the sandbox.
    pub fn publish(&self, port: u16) -> io::Result<PublishedPort> {
        reach::publish(&self.server, port)
    }

    /// The local address for `port` inside; published on first use.
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
        // Wakes the accepting threads so that they see it.
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
