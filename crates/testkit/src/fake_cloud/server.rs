//! A small threaded HTTP server with switchable faults.
#![allow(clippy::disallowed_methods, reason = "a slow answer sleeps")]

use crate::model_server::http::{ReadEnd, Reader, Request};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of recorded requests.
const SEEN_MAX: usize = 2000;

#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// This status instead, with a `Retry-After` in seconds; the request has no effect.
    Status(u16, Option<u32>),
    /// This status instead, but the request has its effect.
    StatusAfter(u16),
    Slow(Duration),
    /// The connection is closed without an answer; the request has no effect.
    Hangup,
    /// The request has its effect, and the connection is closed without an answer.
    HangupAfter,
    /// This status instead, with these headers and this body; the request has no effect.
    Answer(u16, Vec<(String, String)>, String),
    /// 200 with these bytes instead of the answer; the request has no effect.
    Instead(Vec<u8>),
    /// 200 with an endless response, as fast as the client reads it; the request has no effect.
    Endless,
    /// 200 with a response sent byte by byte, with this delay before each, and never the last byte.
    Drip(Duration),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `GET /path?query`.
    pub line: String,
    /// The body, if it is text.
    pub body: String,
    pub status: u16,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        Self::bytes(status, "application/json; charset=utf-8", value.to_string().into_bytes())
    }
    pub(crate) fn bytes(status: u16, kind: &str, body: Vec<u8>) -> Self {
        Self { status, headers: vec![("content-type".into(), kind.into())], body }
    }
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }
    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;
type Spoil = dyn Fn(u16, &str) -> Reply + Send + Sync;

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    connections: Mutex<BTreeMap<u64, TcpStream>>,
    faults: Mutex<VecDeque<(String, Fault)>>,
    seen: Mutex<VecDeque<Seen>>,
}

/// The server; it ends when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    pub(crate) fn start(
        handler: impl Fn(&Request) -> Reply + Send + Sync + 'static,
        spoil: impl Fn(u16, &str) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (for_thread, both): (_, Arc<(Box<Handler>, Box<Spoil>)>) =
            (Arc::clone(&shared), Arc::new((Box::new(handler), Box::new(spoil))));
        let accepting = std::thread::spawn(move || {
            for (number, stream) in (0_u64..).zip(listener.incoming()) {
                if for_thread.stop.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let Ok(kept) = stream.try_clone() else { continue };
                lock(&for_thread.connections).insert(number, kept);
                let (shared, both) = (Arc::clone(&for_thread), Arc::clone(&both));
                std::thread::spawn(move || {
                    let _ = serve(&stream, &shared, &both.0, &both.1);
                    lock(&shared.connections).remove(&number);
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes the next response fail if the request line contains `part`; may be called several times.
    pub(crate) fn fail(&self, part: &str, fault: Fault) {
        lock(&self.shared.faults).push_back((part.to_owned(), fault));
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).iter().cloned().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        for stream in lock(&self.shared.connections).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve(stream: &TcpStream, shared: &Shared, handler: &Handler, spoil: &Spoil) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = Reader::new(stream.try_clone()?);
    while !shared.stop.load(Ordering::Relaxed) {
        let request = match reader.next() {
            Ok(request) => request,
            Err(ReadEnd::Closed) => return Ok(()),
            Err(ReadEnd::Bad { status, why }) => return send(stream, &spoil(status, why), false),
        };
        let line = format!("{} {}", request.method, request.target);
        let fault = {
            let mut faults = lock(&shared.faults);
            let due = faults.iter().position(|(part, _)| line.contains(part.as_str()));
            due.and_then(|at| faults.remove(at)).map(|(_, fault)| fault)
        };
        let mut reply = match fault {
            Some(Fault::Hangup) => return Ok(()),
            Some(Fault::Status(status, after)) => {
                let reply = spoil(status, "spoilt by a test");
                match after {
                    Some(seconds) => reply.header("retry-after", seconds.to_string()),
                    None => reply,
                }
            }
            Some(Fault::StatusAfter(status)) => {
                handler(&request);
                spoil(status, "spoilt by a test")
            }
            Some(Fault::HangupAfter) => {
                let status = handler(&request).status;
                remember(shared, line, &request, status);
                return Ok(());
            }
            Some(Fault::Answer(status, headers, words)) => headers
                .into_iter()
                .fold(spoil(status, &words), |reply, (name, value)| reply.header(&name, value)),
            Some(Fault::Instead(bytes)) => Reply::bytes(200, "application/json", bytes),
            Some(Fault::Endless) => {
                remember(shared, line, &request, 200);
                return flood(stream, shared, 64 * 1024, Duration::ZERO);
            }
            Some(Fault::Drip(wait)) => {
                remember(shared, line, &request, 200);
                return flood(stream, shared, 1, wait);
            }
            Some(Fault::Slow(time)) => {
                std::thread::sleep(time);
                handler(&request)
            }
            None => handler(&request),
        };
        remember(shared, line, &request, reply.status);
        if request.method == "HEAD" {
            reply.body.clear();
        }
        send(stream, &reply, request.keep_alive)?;
        if !request.keep_alive {
            return Ok(());
        }
    }
    Ok(())
}

/// Answers with blanks, which any JSON may start with, until the client closes the connection.
fn flood(mut stream: &TcpStream, shared: &Shared, size: usize, wait: Duration) -> io::Result<()> {
    let head = "HTTP/1.1 200 X\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    let piece = vec![b' '; size];
    while !shared.stop.load(Ordering::Relaxed) {
        stream.write_all(&piece)?;
        std::thread::sleep(wait);
    }
    Ok(())
}

fn remember(shared: &Shared, line: String, request: &Request, status: u16) {
    let mut seen = lock(&shared.seen);
    if seen.len() >= SEEN_MAX {
        seen.pop_front();
    }
    let body = String::from_utf8_lossy(request.body.get(..4096).unwrap_or(&request.body)).into_owned();
    seen.push_back(Seen { line, body, status });
}

fn send(mut stream: &TcpStream, reply: &Reply, keep: bool) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if reply.status != 204 {
        head.push_str(&format!("content-length: {}\r\n", reply.body.len()));
    }
    head.push_str(if keep { "connection: keep-alive\r\n\r\n" } else { "connection: close\r\n\r\n" });
    stream.write_all(head.as_bytes())?;
    stream.write_all(&reply.body)
}
