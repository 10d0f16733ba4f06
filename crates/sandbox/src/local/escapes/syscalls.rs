//! `ralph __try`: one system call that a shell can't make; 0 if it worked.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::ptrace;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(3);
const STOPPED: i32 = 1;

/// Tries the call of the first argument on the second one.
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> i32 {
    let words: Vec<String> = args.map(|word| word.to_string_lossy().into_owned()).collect();
    let name = words.first().map_or("", String::as_str);
    let on = words.get(1).map_or("", String::as_str);
    let worked = match name {
        "ptrace" => on.parse().is_ok_and(|pid| {
            let pid = Pid::from_raw(pid);
            // Released at once: the bait is needed later.
            ptrace::seize(pid, ptrace::Options::empty()).is_ok()
        }),
        "raw" => socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Icmp).is_ok(),
        "packet" => socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), None).is_ok(),
        "userns" => unshare(CloneFlags::CLONE_NEWUSER).is_ok(),
        "mount" => mount(Some("tmpfs"), "/tmp", Some("tmpfs"), MsFlags::empty(), None::<&str>).is_ok(),
        "keyring" => crate::os::raw::session_keyring().is_ok(),
        "udp" => UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"?", on)).is_ok(),
        "tcp" => on.parse().is_ok_and(|address| TcpStream::connect_timeout(&address, TIMEOUT).is_ok()),
        "unix" => UnixStream::connect(on).is_ok(),
        "proxy" => proxy(on).is_some_and(|answer| answer.ends_with(b" 200")),
        "proxy-answers" => proxy(on).is_some_and(|answer| answer.ends_with(b" 403")),
        _ => return 2,
    };
    if worked { 0 } else { STOPPED }
}

/// The proxy's answer to a tunnel request.
#[allow(clippy::disallowed_methods, reason = "a helper process in the sandbox reads what it was given")]
fn proxy(to: &str) -> Option<[u8; 12]> {
    let proxy = std::env::var("HTTPS_PROXY").ok()?;
    let mut stream = TcpStream::connect(proxy.strip_prefix("http://")?).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    write!(stream, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").ok()?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).ok()?;
    Some(answer)
}
