//! Engines behind TLS (`DOCKER_TLS_VERIFY`): a thread carries bytes between the protected connection and one end of a socket
//! pair. The other end is an ordinary socket, with time-outs, copies and half-closes, which a TLS stream does not have.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ralph_loop_http::tls::{ClientConnection, ServerName, client_config_of_files};
use std::io::{ErrorKind, Read as _, Result, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long the two sides may take to agree.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Bytes on their way inward that are held back until they are taken.
const HELD_MAX: usize = 256 * 1024;

/// Connects to `host:port`. `certificates` holds `ca.pem`, `cert.pem` and `key.pem`, as `DOCKER_CERT_PATH` does; without its
/// `ca.pem`, what the machine trusts counts.
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
    // Done here, so that its failure is the failure of the connection.
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp)?;
    }
    tcp.set_nonblocking(true)?;
    let (ours, theirs) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    let mut relay =
        Relay { tls, tcp, local: theirs, held: Vec::new(), local_ended: false, remote_ended: false };
    std::thread::Builder::new().name("engine-tls".into()).spawn(move || {
        // Whoever uses the connection sees its end, however it came.
        let _ = relay.run();
        let _ = relay.local.shutdown(Shutdown::Both);
    })?;
    Ok(ours)
}

struct Relay {
    tls: ClientConnection,
    tcp: TcpStream,
    local: UnixStream,
    /// What the engine said and nobody has taken yet.
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
            // Nobody is there any more: an end of what is said alone is no hang-up.
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

    /// Waits until something can be moved; what can.
    fn wait(&self) -> Result<(PollFlags, PollFlags)> {
        let wish = |flag: PollFlags, wanted: bool| if wanted { flag } else { PollFlags::empty() };
        let writes = self.tls.wants_write();
        let tcp = wish(PollFlags::POLLIN, !self.remote_ended && self.held.len() < HELD_MAX)
            | wish(PollFlags::POLLOUT, writes);
        let local = wish(PollFlags::POLLIN, !self.local_ended && !writes)
            | wish(PollFlags::POLLOUT, !self.held.is_empty());
        let mut fds = [PollFd::new(self.local.as_fd(), local), PollFd::new(self.tcp.as_fd(), tcp)];
        // A connection that ended would be reported again and again.
        let asked = if tcp.is_empty() && self.remote_ended { &mut fds[..1] } else { &mut fds[..] };
        match poll(asked, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [local, tcp] = fds.map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        Ok((tcp, local))
    }

    /// From the engine.
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

    /// To the engine. The end of what we say is told; what it says is still heard.
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

/// `None` where nothing can be moved just now.
fn tolerant(moved: Result<usize>) -> Result<Option<usize>> {
    match moved {
        Ok(moved) => Ok(Some(moved)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        // The other side hung up without saying so.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Some(0)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
