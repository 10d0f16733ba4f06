//! The protocol between `ralph` and its guard: small fixed packets, with descriptors attached.
//!
//! A command's arguments and environment don't fit a packet; they are passed as an anonymous file, which only the
//! forked child reads. So the guard's memory stays small.

use crate::os::End;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, recvmsg, sendmsg};
use std::ffi::{CStr, OsStr, OsString};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;

/// Descriptors of [`ToGuard::Spawn`]: body, folder, standard input, output and error.
pub(crate) const SPAWN_FDS: usize = 5;
/// A sixth one if our launchers start the command: the variables that only the command may get. A launcher's
/// environment never has them, because it runs before there is a sandbox, and a variable can make a program load
/// foreign code (`LD_PRELOAD` for one).
pub(crate) const SPAWN_FDS_MAX: usize = SPAWN_FDS + 1;
/// The descriptor number where launchers find those variables.
pub(crate) const VARIABLES_FD: RawFd = 3;
const PACKET: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToGuard {
    /// Start a command; five or six descriptors are attached.
    Spawn,
    /// Keep the attached descriptor open until the end (the run's lock).
    Hold,
    /// End everything at the time in the attached file, unless it is extended by then.
    Deadline,
    /// End the command and its descendants; 0 means at once.
    Kill { grace_ms: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FromGuard {
    Ready,
    Started {
        pid: i32,
    },
    Failed {
        stage: Stage,
        errno: i32,
    },
    /// The command and its descendants are gone, except for `alive`.
    Exited {
        /// How the command itself ended.
        end: End,
        /// Processes killed after or alongside it.
        survivors: u32,
        /// Processes that couldn't be killed in time.
        alive: u32,
    },
}

/// A step between fork and the running program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Process = 1,
    Folder = 2,
    Program = 3,
}

impl Stage {
    pub(crate) fn from_number(number: i32) -> Self {
        match number {
            2 => Self::Folder,
            3 => Self::Program,
            _ => Self::Process,
        }
    }
}

impl ToGuard {
    fn encode(self) -> [i32; 4] {
        match self {
            Self::Spawn => [1, 0, 0, 0],
            Self::Hold => [2, 0, 0, 0],
            Self::Deadline => [4, 0, 0, 0],
            Self::Kill { grace_ms } => [3, grace_ms.cast_signed(), 0, 0],
        }
    }

    fn decode(words: [i32; 4]) -> Option<Self> {
        match words {
            [1, ..] => Some(Self::Spawn),
            [2, ..] => Some(Self::Hold),
            [4, ..] => Some(Self::Deadline),
            [3, grace, ..] => Some(Self::Kill { grace_ms: grace.cast_unsigned() }),
            _ => None,
        }
    }
}

impl FromGuard {
    fn encode(self) -> [i32; 4] {
        match self {
            Self::Ready => [1, 0, 0, 0],
            Self::Started { pid } => [2, pid, 0, 0],
            Self::Failed { stage, errno } => [3, stage as i32, errno, 0],
            Self::Exited { end: End::Code(code), survivors, alive } => {
                [4, code, survivors.cast_signed(), alive.cast_signed()]
            }
            Self::Exited { end: End::Signal(signal), survivors, alive } => {
                [5, signal, survivors.cast_signed(), alive.cast_signed()]
            }
        }
    }

    fn decode(words: [i32; 4]) -> Option<Self> {
        Some(match words {
            [1, ..] => Self::Ready,
            [2, pid, ..] => Self::Started { pid },
            [3, stage, errno, _] => Self::Failed { stage: Stage::from_number(stage), errno },
            [kind @ (4 | 5), number, survivors, alive] => Self::Exited {
                end: if kind == 4 { End::Code(number) } else { End::Signal(number) },
                survivors: survivors.cast_unsigned(),
                alive: alive.cast_unsigned(),
            },
            _ => return None,
        })
    }
}

#[derive(Debug)]
pub(crate) enum Received<T> {
    Packet(T, Vec<OwnedFd>),
    Nothing,
    Closed,
}

pub(crate) fn ask(socket: &OwnedFd, request: ToGuard, fds: &[BorrowedFd<'_>]) -> nix::Result<()> {
    send(socket, request.encode(), fds)
}

pub(crate) fn answer(socket: &OwnedFd, reply: FromGuard) -> nix::Result<()> {
    send(socket, reply.encode(), &[])
}

pub(crate) fn next_request(socket: &OwnedFd) -> Received<ToGuard> {
    receive(socket, ToGuard::decode)
}

pub(crate) fn next_report(socket: &OwnedFd) -> Received<FromGuard> {
    receive(socket, FromGuard::decode)
}

fn send(socket: &OwnedFd, words: [i32; 4], fds: &[BorrowedFd<'_>]) -> nix::Result<()> {
    let mut bytes = [0u8; PACKET];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    let numbers: Vec<RawFd> = fds.iter().map(BorrowedFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let beside = if numbers.is_empty() { &[][..] } else { &rights[..] };
    loop {
        match sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], beside, crate::os::SEND, None) {
            Err(Errno::EINTR) => {}
            other => return other.map(drop),
        }
    }
}

fn receive<T>(socket: &OwnedFd, decode: fn([i32; 4]) -> Option<T>) -> Received<T> {
    let mut bytes = [0u8; PACKET];
    let mut space = nix::cmsg_space!([RawFd; SPAWN_FDS_MAX]);
    let mut fds = Vec::new();
    let length = {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), crate::os::RECEIVE) {
            Ok(message) => {
                for beside in message.cmsgs().into_iter().flatten() {
                    if let ControlMessageOwned::ScmRights(numbers) = beside {
                        let own = numbers.into_iter().filter_map(|n| crate::os::raw::own(n).ok());
                        fds.extend(own.map(crate::os::received));
                    }
                }
                message.bytes
            }
            Err(Errno::EAGAIN | Errno::EINTR) => return Received::Nothing,
            Err(_) => return Received::Closed,
        }
    };
    if length != PACKET {
        // An empty packet means that the other side closed; we never send a partial one.
        return Received::Closed;
    }
    let mut words = [0i32; 4];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = chunk.try_into().map_or(0, i32::from_ne_bytes);
    }
    decode(words).map_or(Received::Closed, |packet| Received::Packet(packet, fds))
}

/// A command's arguments and environment as bytes; the caller has checked that no text holds a NUL.
pub(crate) fn encode_body<'a>(argv: &[String], env: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut body = Vec::with_capacity(4096);
    body.extend_from_slice(&u32::try_from(argv.len()).unwrap_or(u32::MAX).to_ne_bytes());
    for argument in argv {
        body.extend_from_slice(argument.as_bytes());
        body.push(0);
    }
    body.extend(encode_variables(env));
    body
}

pub(crate) fn encode_variables<'a>(env: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut body = Vec::with_capacity(4096);
    for (name, value) in env {
        body.extend_from_slice(name);
        body.push(b'=');
        body.extend_from_slice(value);
        body.push(0);
    }
    body
}

pub(crate) fn decode_variables(body: &[u8]) -> Vec<(OsString, OsString)> {
    let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let pair = |entry: &[u8]| {
        let at = entry.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
        Some((text(entry.get(..at)?), text(entry.get(at + 1..)?)))
    };
    body.split(|byte| *byte == 0).filter_map(pair).collect()
}

pub(crate) fn decode_body(body: &[u8]) -> Option<(Vec<&CStr>, Vec<&CStr>)> {
    let (count, mut rest) = body.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_ne_bytes(*count)).ok()?;
    let mut argv = Vec::new();
    while !rest.is_empty() {
        let text = CStr::from_bytes_until_nul(rest).ok()?;
        rest = rest.get(text.to_bytes_with_nul().len()..)?;
        argv.push(text);
    }
    if count == 0 || count > argv.len() {
        return None;
    }
    let env = argv.split_off(count);
    Some((argv, env))
}

/// Waits until `fd` is readable, `limit` has passed or a signal arrived.
pub(crate) fn wait_readable(fd: &impl AsFd, limit: std::time::Duration) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let millis = u16::try_from(limit.as_millis()).unwrap_or(u16::MAX);
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(millis)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn packets_and_descriptors_arrive_whole_and_the_end_is_seen() {
        let (ours, theirs) = crate::os::socket_pair().unwrap();
        assert!(matches!(next_report(&ours), Received::Nothing));
        let all = [
            FromGuard::Ready,
            FromGuard::Started { pid: 77 },
            FromGuard::Failed { stage: Stage::Folder, errno: 2 },
            FromGuard::Exited { end: End::Code(3), survivors: 4, alive: 0 },
            FromGuard::Exited { end: End::Signal(9), survivors: 0, alive: 1 },
        ];
        for one in all {
            answer(&theirs, one).unwrap();
        }
        for one in all {
            assert!(matches!(next_report(&ours), Received::Packet(got, _) if got == one));
        }
        let file = crate::os::anonymous_file(b"hello").unwrap();
        ask(&ours, ToGuard::Kill { grace_ms: u32::MAX }, &[file.as_fd()]).unwrap();
        let Received::Packet(ToGuard::Kill { grace_ms: u32::MAX }, fds) = next_request(&theirs) else {
            panic!("no packet")
        };
        let mut text = String::new();
        std::fs::File::from(fds.into_iter().next().unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        drop(theirs);
        assert!(matches!(next_report(&ours), Received::Closed));
    }

    #[test]
    fn bodies_keep_empty_and_unicode_texts() {
        let argv = ["sh".to_owned(), String::new(), "ü ∆".to_owned()];
        let body = encode_body(&argv, [(&b"A"[..], &b""[..]), (b"B", b"=x")].into_iter());
        let (args, env) = decode_body(&body).unwrap();
        assert_eq!(args, [c"sh", c"", c"ü ∆"]);
        assert_eq!(env, [c"A=", c"B==x"]);
        let variables = encode_variables([(&b"A"[..], &b""[..]), (b"B", b"=x\ny")].into_iter());
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        assert_eq!(decode_variables(&variables), [pair("A", ""), pair("B", "=x\ny")]);
        assert_eq!(decode_variables(b"=x\0no\0\0"), []);
        assert!(decode_body(b"").is_none());
        assert!(decode_body(&[9, 0, 0, 0, b'x', 0]).is_none());
    }
}
