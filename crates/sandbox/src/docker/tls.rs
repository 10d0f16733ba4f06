//! Engines behind TLS (`DOCKER_TLS_VERIFY`): a thread copies bytes between the TLS connection and one end of a socket
//! pair. The other end is an ordinary socket, with timeouts, clones and half-closes, which a TLS stream lacks.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ralph_loop_http::tls::{ClientConnection, ServerName, client_config_of_files};
use std::io::{ErrorKind, Read as _, Result, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const HANDSHAKE: Duration = Duration::from_secs(10);
/// Inward bytes that are buffered until they are read.
const HELD_MAX: usize = 256 * 1024;

/// Connects to `host:port`. `certificates` holds `ca.pem`, `cert.pem` and `key.pem`, like `DOCKER_CERT_PATH`; without
/// `ca.pem`, the system's CAs apply.
pub(super) fn connect(host: &str, certificates: &Path) -> Result<UnixStream> {
    let file = |name: &str| Some(certificates.join(name)).filter(|path| path.exists());
    let (authority, certificate, key) = (file("ca.pem"), file("cert.pem"), file("key.pem"));
    let identity = certificate.as_deref().zip(key.as_deref());
    let config = client_config_of_files(authority.as_deref(), identity).map_err(std::io::Error::other)?;
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name =
        ServerName::try_from(name.trim_matches(['[', ']']).to_owned()).map_err(std::io::Error::other)?;
    let mut tls = ClientConnection::new(config, name).map_err(std::io::Error::other)?;
    let mut tcp = TcpStream::connect(host)?;
    tcp.set_read_timeout(Some(HANDSHAKE))?;
    tcp.set_write_timeout(Some(HANDSHAKE))?;
    // Done here, so that a handshake failure is a connection failure.
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp)?;
    }
    tcp.set_nonblocking(true)?;
    let (ours, theirs) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    let mut relay =
        Relay { tls, tcp, local: theirs, held: Vec::new(), local_ended: false, remote_ended: false };
    std::thread::Builder::new().name("engine-tls".into()).spawn(move || {
        // Users of the connection see its end, whatever the reason.
        let _ = relay.run();
        let _ = relay.local.shutdown(Shutdown::Both);
    })?;
    Ok(ours)
}

struct Relay {
    tls: ClientConnection,
    tcp: TcpStream,
    local: UnixStream,
    /// Received bytes that haven't been read yet.
    held: Vec<u8>,
    local_ended: bool,
    remote_ended: bool,
}

impl Relay {
    fn run(&mut self) -> Result<()> {
        loop {
            if self.remote_ended && self.held.is_empty() {
                return Ok(());
            }
            let (tcp, local) = self.wait()?;
            // The reader is gone; closing only its write side doesn't set HUP.
            if local.contains(PollFlags::POLLHUP) && !local.contains(PollFlags::POLLIN) {
                return Ok(());
            }
            if tcp.contains(PollFlags::POLLOUT) {
                tolerant(self.tls.write_tls(&mut self.tcp))?;
            }
            if tcp.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) {
                self.receive()?;
            }
            if local.contains(PollFlags::POLLOUT)
                && let Some(written) = tolerant(self.local.write(&self.held))?
            {
                self.held.drain(..written);
            }
            if local.contains(PollFlags::POLLIN) {
                self.send()?;
            }
        }
    }

    /// Waits until something can be copied; returns what.
    fn wait(&self) -> Result<(PollFlags, PollFlags)> {
        let wish = |flag: PollFlags, wanted: bool| if wanted { flag } else { PollFlags::empty() };
        let writes = self.tls.wants_write();
        let tcp = wish(PollFlags::POLLIN, !self.remote_ended && self.held.len() < HELD_MAX)
            | wish(PollFlags::POLLOUT, writes);
        let local = wish(PollFlags::POLLIN, !self.local_ended && !writes)
            | wish(PollFlags::POLLOUT, !self.held.is_empty());
        let mut fds = [PollFd::new(self.local.as_fd(), local), PollFd::new(self.tcp.as_fd(), tcp)];
        // Polling an ended connection would return at once every time.
        let asked = if tcp.is_empty() && self.remote_ended { &mut fds[..1] } else { &mut fds[..] };
        match poll(asked, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [local, tcp] = fds.map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        Ok((tcp, local))
    }

    fn receive(&mut self) -> Result<()> {
        if tolerant(self.tls.read_tls(&mut self.tcp))? == Some(0) {
            self.remote_ended = true;
        }
        let state = self.tls.process_new_packets().map_err(std::io::Error::other)?;
        let mut piece = [0; 16 * 1024];
        while let Some(read) = tolerant(self.tls.reader().read(&mut piece))? {
            if read == 0 {
                break;
            }
            self.held.extend_from_slice(&piece[..read]);
        }
        self.remote_ended |= state.peer_has_closed();
        Ok(())
    }

    /// Sends to the engine. Half-closes after our end; its answer is still read.
    fn send(&mut self) -> Result<()> {
        let mut piece = [0; 16 * 1024];
        match tolerant(self.local.read(&mut piece))? {
            Some(0) => {
                self.local_ended = true;
                self.tls.send_close_notify();
                Ok(())
            }
            Some(read) => self.tls.writer().write_all(&piece[..read]),
            None => Ok(()),
        }
    }
}

/// `None` if nothing can be copied now.
fn tolerant(moved: Result<usize>) -> Result<Option<usize>> {
    match moved {
        Ok(moved) => Ok(Some(moved)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        // The other side closed without a TLS close notice.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Some(0)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
