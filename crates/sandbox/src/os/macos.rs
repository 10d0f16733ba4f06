//! macOS: a port without isolation. Orphans can't be adopted and processes can't die with a parent, so a command's
//! leftovers are searched for, by session and by a mark in their environment.
#![allow(clippy::disallowed_methods, reason = "reads the path of this program once")]

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl, open};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, socketpair};
use nix::sys::stat::Mode;
use nix::time::ClockId;
use nix::unistd::{Pid, getppid, mkstemp, unlink};
use std::ffi::CStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// Opens a folder as a base for further steps.
pub(crate) const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
/// The kind of socket between `ralph` and its guard. All packets have one size, so a stream separates them as well.
pub(crate) const SOCKET: SockType = SockType::Stream;
/// `ralph` ignores SIGPIPE, and the guard blocks it.
pub(crate) const SEND: MsgFlags = MsgFlags::empty();
pub(crate) const RECEIVE: MsgFlags = MsgFlags::MSG_DONTWAIT;
/// A monotonic clock that also runs while the machine sleeps.
pub(crate) const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
/// How often a guard checks for dead children while a command runs: nothing wakes it.
pub(crate) const LOOK_EVERY: Option<Duration> = Some(Duration::from_millis(20));

pub(crate) fn own_program() -> &'static Path {
    static OWN: OnceLock<PathBuf> = OnceLock::new();
    OWN.get_or_init(|| std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ralph")))
}

fn close_on_exec(fd: &OwnedFd) -> nix::Result<()> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map(drop)
}

/// Makes a descriptor received over a socket close-on-exec.
pub(crate) fn received(fd: OwnedFd) -> OwnedFd {
    close_on_exec(&fd).ok();
    fd
}

pub(crate) fn pipe() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (out, into) = nix::unistd::pipe()?;
    close_on_exec(&out)?;
    close_on_exec(&into)?;
    Ok((out, into))
}

pub(crate) fn socket_pair() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::Unix, SOCKET, None, SockFlag::empty())?;
    close_on_exec(&ours)?;
    close_on_exec(&theirs)?;
    Ok((ours, theirs))
}

/// A name in an open folder, as a path that is short enough for a socket. Here it is the path itself.
pub(crate) fn short_path(_: &File, folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

/// An unlinked file of this user, and a read-only handle to it.
fn nameless() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (file, path) = mkstemp("/tmp/ralph.XXXXXX")?;
    let reader = open(&path, OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty());
    unlink(&path)?;
    close_on_exec(&file)?;
    Ok((file, reader?))
}

/// An empty anonymous file.
pub(crate) fn empty_file(_: &CStr) -> nix::Result<OwnedFd> {
    nameless().map(|(file, _)| file)
}

pub(crate) fn anonymous_file(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let (file, reader) = nameless()?;
    File::from(file).write_all(bytes)?;
    Ok(reader)
}

/// Orphans can't be adopted here; leftovers are searched for.
pub(crate) fn become_subreaper() -> nix::Result<()> {
    Ok(())
}

pub(crate) fn guard_mark(guard: Pid) -> Option<String> {
    Some(format!("RALPH_GUARD={guard}"))
}

/// A process has its program's name here.
pub(crate) fn set_name(_: &CStr) {}

/// A process can't die with its parent here; only checks that the parent lives.
pub(crate) fn die_with(parent: Pid) -> nix::Result<()> {
    if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH) }
}

/// Processes can't be marked here.
pub(crate) struct KillableMark;

impl KillableMark {
    pub(crate) fn new() -> Option<Self> {
        None
    }

    pub(crate) fn put_on(&self) {}
}

/// A notice of dead children: it never wakes, see [`LOOK_EVERY`].
pub(crate) struct Deaths {
    never: OwnedFd,
    _writer: OwnedFd,
}

impl Deaths {
    /// For this process, in which every signal is blocked.
    pub(crate) fn new() -> nix::Result<Self> {
        let (never, writer) = pipe()?;
        Ok(Self { never, _writer: writer })
    }

    pub(crate) fn forget(&self) {}
}

impl AsFd for Deaths {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }
}
