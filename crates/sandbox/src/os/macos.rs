//! macOS: a port without isolation. There is no way to be told of orphans or to die with a parent, so what a command leaves
//! behind is looked for: by its session and by a mark in its environment.
#![allow(clippy::disallowed_methods, reason = "the path of this program is asked for once")]

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

/// How a folder is opened as a base for further steps.
pub(crate) const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
/// The kind of sockets between `ralph` and its guard. Packets all have one size, so that a stream keeps them apart, too.
pub(crate) const SOCKET: SockType = SockType::Stream;
/// How packets are sent: `ralph` ignores the signal of a closed pipe, and the guard blocks it.
pub(crate) const SEND: MsgFlags = MsgFlags::empty();
/// How packets are received.
pub(crate) const RECEIVE: MsgFlags = MsgFlags::MSG_DONTWAIT;
/// The clock that goes on while the machine sleeps, and that nobody sets.
pub(crate) const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
/// How often a guard looks for dead children while a command runs: nothing wakes it.
pub(crate) const LOOK_EVERY: Option<Duration> = Some(Duration::from_millis(20));

/// This very program.
pub(crate) fn own_program() -> &'static Path {
    static OWN: OnceLock<PathBuf> = OnceLock::new();
    OWN.get_or_init(|| std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ralph")))
}

fn close_on_exec(fd: &OwnedFd) -> nix::Result<()> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map(drop)
}

/// A descriptor that came over a socket, closed for programs that are run.
pub(crate) fn received(fd: OwnedFd) -> OwnedFd {
    close_on_exec(&fd).ok();
    fd
}

/// A pipe: the end to read from, the end to write to.
pub(crate) fn pipe() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (out, into) = nix::unistd::pipe()?;
    close_on_exec(&out)?;
    close_on_exec(&into)?;
    Ok((out, into))
}

/// A connected pair of sockets that report the other side's end.
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

/// A file of this user's whose name is gone already, and a handle for those who only read.
fn nameless() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (file, path) = mkstemp("/tmp/ralph.XXXXXX")?;
    let reader = open(&path, OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty());
    unlink(&path)?;
    close_on_exec(&file)?;
    Ok((file, reader?))
}

/// A file without a name, empty.
pub(crate) fn empty_file(_: &CStr) -> nix::Result<OwnedFd> {
    nameless().map(|(file, _)| file)
}

/// A file without a name holding `bytes`, at its beginning.
pub(crate) fn anonymous_file(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let (file, reader) = nameless()?;
    File::from(file).write_all(bytes)?;
    Ok(reader)
}

/// Orphans cannot be adopted here; what is left behind is looked for.
pub(crate) fn adopt_orphans() -> nix::Result<()> {
    Ok(())
}

/// What a command carries in its environment, so that the guard finds what it left behind.
pub(crate) fn guard_mark(guard: Pid) -> Option<String> {
    Some(format!("RALPH_GUARD={guard}"))
}

/// A process has the name of its program here.
pub(crate) fn set_name(_: &CStr) {}

/// A process cannot be told to die with its parent here; that the parent lives is all that can be known.
pub(crate) fn die_with(parent: Pid) -> nix::Result<()> {
    if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH) }
}

/// Nothing marks a process here.
pub(crate) struct KillableMark;

impl KillableMark {
    /// There is none.
    pub(crate) fn new() -> Option<Self> {
        None
    }

    /// Does nothing.
    pub(crate) fn put_on(&self) {}
}

/// Dead children, as something to wait for: it never wakes anybody, see [`LOOK_EVERY`].
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

    /// Forgets those that were told.
    pub(crate) fn forget(&self) {}
}

impl AsFd for Deaths {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }
}
