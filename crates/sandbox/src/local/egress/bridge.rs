//! The inner end: ports in the sandbox that lead to the proxy's socket, and the way back to a port inside.

use super::head;
use super::pump;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Listens on `port` for the proxy's clients and on each of `local` for servers of the host, in threads of this
/// process.
pub(crate) fn open(socket: &Path, port: u16, local: &[u16]) -> io::Result<()> {
    let own = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let path = socket.to_owned();
    start("ralph-bridge", move || accept(&own, &path, None))?;
    for port in local {
        let own = match TcpListener::bind((Ipv4Addr::LOCALHOST, *port)) {
            Ok(own) => own,
            // A privileged port: its clients in here are refused, and everything else works.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            Err(error) => return Err(error),
        };
        let (path, port) = (socket.to_owned(), *port);
        start("ralph-bridge", move || accept(&own, &path, Some(port)))?;
    }
    let path = socket.to_owned();
    start("ralph-reach", move || {
        // Without it, ports in here aren't reachable from outside, and everything else works.
        answer(&path).ok();
    })
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

fn accept(listener: &TcpListener, socket: &Path, to: Option<u16>) {
    for client in listener.incoming().flatten() {
        let Ok(proxy) = UnixStream::connect(socket) else { continue };
        // Without a thread, drops the connection and tells the client.
        start("ralph-bridge", move || {
            if to.is_none_or(|port| tunnel(&proxy, port).is_ok()) {
                pump::both(client, proxy);
            }
        })
        .ok();
    }
}

/// Requests a tunnel to a port of the host from the proxy.
fn tunnel(mut proxy: &UnixStream, port: u16) -> io::Result<()> {
    write!(proxy, "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n")?;
    let answer = head::read(&mut proxy)?;
    if answer.starts_with(b"HTTP/1.1 200") { Ok(()) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
}

/// Connects to ports in here on request from outside.
fn answer(socket: &Path) -> io::Result<()> {
    let mut control = UnixStream::connect(socket)?;
    control.write_all(b"RALPH-REACH\n")?;
    for line in BufReader::new(control).lines() {
        let line = line?;
        let mut words = line.split(' ').map(str::parse::<u64>);
        let (Some(Ok(port)), Some(Ok(id))) = (words.next(), words.next()) else { continue };
        let path: PathBuf = socket.to_owned();
        start("ralph-reach", move || {
            let server = u16::try_from(port)
                .ok()
                .and_then(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
            let Ok(mut back) = UnixStream::connect(&path) else { return };
            let word = if server.is_some() { "ok" } else { "no" };
            if writeln!(back, "RALPH-CARRY {id} {word}").is_ok()
                && let Some(server) = server
            {
                pump::both(server, back);
            }
        })
        .ok();
    }
    Ok(())
}

/// `ralph __forward SOCKET PORT [PORT …]`: the inner end in a container.
pub(crate) fn forward_main(args: impl Iterator<Item = std::ffi::OsString>) -> i32 {
    let mut args = args;
    let Some(socket) = args.next().map(PathBuf::from) else { return 2 };
    let ports: Vec<u16> = args.filter_map(|arg| arg.to_str()?.parse().ok()).collect();
    let Some((own, local)) = ports.split_first() else { return 2 };
    if open(&socket, *own, local).is_err() {
        return 1;
    }
    loop {
        std::thread::park();
    }
}
