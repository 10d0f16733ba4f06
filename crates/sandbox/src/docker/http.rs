//! A minimal HTTP/1.1 client for an engine's socket: one request per connection, answers of any framing, and the raw
//! stream after an upgrade.
//!
//! Not `bollard`: that would add 13 crates (a second `base64` among them, and 10 s of build time) and an async
//! runtime, for the seventeen calls of [`super::engine`].

use super::tls;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest answer that is kept in memory.
const BODY_MAX: u64 = 64 * 1024 * 1024;
const HEAD_MAX: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    /// A plain port, `host:port`.
    Tcp(String),
    Tls {
        /// `host:port`.
        host: String,
        /// The folder with `ca.pem`, `cert.pem` and `key.pem`.
        certificates: PathBuf,
    },
}

impl Address {
    /// Parses the form of `DOCKER_HOST`: `unix:///path` or `tcp://host:port`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix://") {
            return (!path.is_empty()).then(|| Self::Unix(PathBuf::from(path)));
        }
        let host = text.strip_prefix("tcp://").or_else(|| text.strip_prefix("http://"))?;
        let host = host.trim_end_matches('/');
        let port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        (port && !host.contains('/')).then(|| Self::Tcp(host.to_owned()))
    }

    /// Adds TLS with the certificates of a folder; a local socket needs none.
    #[must_use]
    pub fn with_tls(self, certificates: &Path) -> Self {
        match self {
            Self::Tcp(host) => Self::Tls { host, certificates: certificates.to_owned() },
            other => other,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(host) | Self::Tls { host, .. } => write!(f, "tcp://{host}"),
        }
    }
}

#[derive(Debug)]
pub(super) enum Connection {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Connection {
    fn open(address: &Address) -> std::io::Result<Self> {
        match address {
            Address::Unix(path) => UnixStream::connect(path).map(Self::Unix),
            Address::Tcp(host) => TcpStream::connect(host).map(Self::Tcp),
            Address::Tls { host, certificates } => tls::connect(host, certificates).map(Self::Unix),
        }
    }

    pub(super) fn set_read_timeout(&self, limit: Option<Duration>) -> std::io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(limit),
            Self::Tcp(stream) => stream.set_read_timeout(limit),
        }
    }

    pub(super) fn try_clone(&self) -> std::io::Result<Self> {
        match self {
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    /// Content type and bytes.
    pub(super) body: Option<(&'static str, &'a [u8])>,
    pub(super) limit: Duration,
}

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

struct Head {
    status: u16,
    length: Option<u64>,
    chunked: bool,
}

/// Sends a request and reads the whole answer.
pub(super) fn ask(address: &Address, request: &Request<'_>) -> std::io::Result<Reply> {
    let (head, mut reader) = send(address, request, "close")?;
    let mut body = Vec::new();
    match head {
        Head { status: 204 | 304, .. } => {}
        Head { chunked: true, .. } => chunks(&mut reader, &mut body)?,
        Head { length, .. } => {
            reader.take(length.unwrap_or(BODY_MAX).min(BODY_MAX)).read_to_end(&mut body)?;
        }
    }
    Ok(Reply { status: head.status, body })
}

/// Sends a request whose answer is a raw stream in both directions; also returns the bytes received so far.
pub(super) fn upgrade(
    address: &Address,
    request: &Request<'_>,
) -> std::io::Result<Result<(Connection, Vec<u8>), Reply>> {
    let (head, reader) = send(address, request, "Upgrade\r\nUpgrade: tcp")?;
    if head.status != 101 && head.status != 200 {
        let mut body = Vec::new();
        reader.take(head.length.unwrap_or(HEAD_MAX).min(HEAD_MAX)).read_to_end(&mut body)?;
        return Ok(Err(Reply { status: head.status, body }));
    }
    let early = reader.buffer().to_vec();
    Ok(Ok((reader.into_inner(), early)))
}

fn send(
    address: &Address,
    request: &Request<'_>,
    connection: &str,
) -> std::io::Result<(Head, BufReader<Connection>)> {
    let mut stream = Connection::open(address)?;
    stream.set_read_timeout(Some(request.limit))?;
    let (kind, bytes) = request.body.unwrap_or(("application/json", b""));
    let head = format!(
        "{} {} HTTP/1.1\r\nHost: docker\r\nUser-Agent: ralph\r\nConnection: {connection}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        request.method,
        request.path,
        bytes.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(bytes)?;
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader)?;
    Ok((head, reader))
}

fn bad(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned())
}

fn read_line(reader: &mut BufReader<Connection>) -> std::io::Result<String> {
    let mut line = String::new();
    reader.take(HEAD_MAX).read_line(&mut line)?;
    if line.ends_with('\n') { Ok(line.trim_end().to_owned()) } else { Err(bad("the answer broke off")) }
}

fn read_head(reader: &mut BufReader<Connection>) -> std::io::Result<Head> {
    let first = read_line(reader)?;
    let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status =
        status.filter(|_| first.starts_with("HTTP/1.")).ok_or_else(|| bad("it does not speak HTTP"))?;
    let mut head = Head { status, length: None, chunked: false };
    for _ in 0..100 {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Ok(head);
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => head.length = value.trim().parse().ok(),
            "transfer-encoding" => head.chunked = value.to_ascii_lowercase().contains("chunked"),
            _ => {}
        }
    }
    Err(bad("its answer has too many headers"))
}

fn chunks(reader: &mut BufReader<Connection>, body: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        let line = read_line(reader)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| bad("a chunk has no size"))?;
        if size == 0 {
            return Ok(());
        }
        if body.len() as u64 + size > BODY_MAX {
            return Err(bad("the answer is too long"));
        }
        let before = body.len() as u64;
        reader.by_ref().take(size).read_to_end(body)?;
        if body.len() as u64 != before + size {
            return Err(bad("the answer broke off"));
        }
        read_line(reader)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(Address::parse("unix:///run/x.sock"), Some(Address::Unix(PathBuf::from("/run/x.sock"))));
        assert_eq!(Address::parse("tcp://10.0.0.1:2375"), Some(Address::Tcp("10.0.0.1:2375".to_owned())));
        for bad in ["", "unix://", "ssh://me@there", "tcp://host", "npipe:////./pipe/docker_engine"] {
            assert_eq!(Address::parse(bad), None, "{bad}");
        }
    }
}
