//! The proxy's work for each client, in its own thread.

use super::head::{self, ProxyRequest};
use super::policy::{EgressKind, EgressPolicy, EgressRefusal, Endpoint, InsideServer, Unreachable};
use super::pump::{self, Connection};
use super::reach::Bridges;
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CLIENTS: usize = 512;
const TOLD: usize = 200;
const REQUEST: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Server {
    pub(super) policy: EgressPolicy,
    pub(super) bridges: Bridges,
    pub(super) over: AtomicBool,
    clients: AtomicUsize,
    told: Mutex<BTreeSet<EgressRefusal>>,
}

enum Upstream {
    Outside(TcpStream),
    Neighbour(UnixStream),
}

impl Upstream {
    /// Sends `first`, then copies both ways.
    fn carry<C: Client>(self, client: C, first: &[u8]) {
        match self {
            Self::Outside(mut server) => {
                if server.write_all(first).is_ok() {
                    pump::both(client, server);
                }
            }
            Self::Neighbour(mut server) => {
                if server.write_all(first).is_ok() {
                    pump::both(client, server);
                }
            }
        }
    }
}

pub(super) trait Client: Connection {
    /// The file system socket, if it is one: only there are bridges.
    fn unix(self) -> Option<UnixStream>;
}

impl Client for UnixStream {
    fn unix(self) -> Option<UnixStream> {
        Some(self)
    }
}

impl Client for TcpStream {
    fn unix(self) -> Option<UnixStream> {
        None
    }
}

impl Server {
    pub(super) fn new(policy: EgressPolicy) -> Self {
        Self {
            policy,
            bridges: Bridges::default(),
            over: AtomicBool::new(false),
            clients: AtomicUsize::new(0),
            told: Mutex::default(),
        }
    }

    fn report(&self, kind: EgressKind, host: &str, port: u16, (reason, allow): (&str, Option<String>)) {
        let Some(tell) = &self.policy.on_refusal else { return };
        let host: String = host.chars().filter(|c| !c.is_control()).take(253).collect();
        let refusal = EgressRefusal { kind, host, port, reason: reason.to_owned(), allow };
        let Ok(mut told) = self.told.lock() else { return };
        if told.len() < TOLD && told.insert(refusal.clone()) {
            drop(told);
            tell(&refusal);
        }
    }

    fn reach(&self, host: &str, port: u16) -> Result<Upstream, (u16, String)> {
        match self.neighbour(host, port) {
            Some(server) => Ok(Upstream::Neighbour(server)),
            None => self.connect(host, port).map(Upstream::Outside),
        }
    }

    fn connect(&self, host: &str, port: u16) -> Result<TcpStream, (u16, String)> {
        let found = self.policy.addresses(host, port).map_err(|Unreachable { kind, why, allow }| {
            self.report(kind, host, port, (&why, allow));
            (if kind == EgressKind::Unresolved { 502 } else { 403 }, why)
        })?;
        if let Some(warning) = &found.warning {
            self.report(EgressKind::Private, host, port, (warning, None));
        }
        let mut last = (502, "no address answered".to_owned());
        for address in found.addresses {
            match (self.policy.dialer)(address) {
                Ok(server) => {
                    server.set_nodelay(true).ok();
                    return Ok(server);
                }
                Err(error) => last = (502, error.to_string()),
            }
        }
        Err(last)
    }

    /// A port that a command of the same sandbox listens on. Inside, names of this machine mean only that, unless the
    /// user named a server of the host; so one command's browser sees another's dev server.
    fn neighbour(&self, host: &str, port: u16) -> Option<UnixStream> {
        let local = Endpoint { host: host.to_owned(), port }.is_local();
        if !local || port == super::INSIDE_PORT || self.policy.addresses(host, port).is_ok() {
            return None;
        }
        self.bridges.reach(port).ok()
    }

    fn inside(&self, host: &str, port: u16) -> Option<&InsideServer> {
        let local = Endpoint { host: host.to_owned(), port }.is_local();
        self.policy.inside.as_ref().filter(|server| local && server.port == port)
    }

    fn serve<C: Client>(&self, mut client: C) {
        client.idle_timeout(REQUEST);
        let Ok(head) = head::read(&mut client) else { return };
        match head::wish(&head) {
            Err(why) => say_no(&mut client, 400, why),
            Ok(ProxyRequest::Connect { host, port }) if self.inside(&host, port).is_some() => {
                let (Some(inside), Some(mut client)) = (self.inside(&host, port), client.unix()) else {
                    return;
                };
                if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").is_ok() {
                    (inside.serve)(client);
                }
            }
            Ok(ProxyRequest::Connect { host, port }) => match self.reach(&host, port) {
                Err((code, why)) => say_no(&mut client, code, &format!("{host}:{port}: {why}")),
                Ok(server) => {
                    if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").is_ok() {
                        server.carry(client, &[]);
                    }
                }
            },
            Ok(ProxyRequest::Forward { host, port, head }) => match self.reach(&host, port) {
                Err((code, why)) => say_no(&mut client, code, &format!("{host}:{port}: {why}")),
                Ok(server) => server.carry(client, &head),
            },
            Ok(ProxyRequest::Reach) => {
                if let Some(control) = client.unix() {
                    self.bridges.add(control);
                }
            }
            Ok(ProxyRequest::Carry { id, reached }) => {
                if let Some(stream) = client.unix() {
                    self.bridges.arrived(id, reached.then_some(stream));
                }
            }
        }
    }
}

fn say_no(client: &mut impl Connection, code: u16, why: &str) {
    let name = match code {
        403 => "Forbidden",
        400 => "Bad Request",
        503 => "Service Unavailable",
        _ => "Bad Gateway",
    };
    let body = format!("ralph: cannot reach {why}\n");
    let error = if code == 403 { "X-Proxy-Error: blocked-by-allowlist\r\n" } else { "" };
    write!(
        client,
        "HTTP/1.1 {code} {name}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n{error}Connection: close\r\n\r\n{body}",
        body.len()
    )
    .ok();
    client.close(std::net::Shutdown::Write);
}

pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).stack_size(256 * 1024).spawn(work).map(drop)
}

/// Serves clients until the proxy ends.
pub(super) fn accept<C: Client>(clients: impl Iterator<Item = io::Result<C>>, server: &Arc<Server>) {
    for client in clients {
        if server.over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(mut client) = client else { continue };
        if server.clients.fetch_add(1, Ordering::SeqCst) >= CLIENTS {
            server.clients.fetch_sub(1, Ordering::SeqCst);
            say_no(&mut client, 503, "anybody: too many connections at a time");
            continue;
        }
        let own = Arc::clone(server);
        let started = spawn("ralph-egress", move || {
            own.serve(client);
            own.clients.fetch_sub(1, Ordering::SeqCst);
        });
        if started.is_err() {
            server.clients.fetch_sub(1, Ordering::SeqCst);
        }
    }
}
