//! Resolves names and connects through the system.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(10);

pub(super) fn resolve(host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
    Ok((host, port).to_socket_addrs()?.map(|address| address.ip()).collect())
}

pub(super) fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, CONNECT)
}
