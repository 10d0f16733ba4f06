//! Names and connections in the usual way.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// Longest wait for one address.
const CONNECT: Duration = Duration::from_secs(10);

/// Asks the system.
pub(super) fn resolve(host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
    Ok((host, port).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// Connects directly.
pub(super) fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, CONNECT)
}
