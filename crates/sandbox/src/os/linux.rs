//! Linux: packet sockets, anonymous files, subreapers and death signals.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, socketpair};
use nix::time::ClockId;
use nix::unistd::{Pid, getppid, pipe2};
use std::ffi::CStr;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Opens a folder as a base for further steps, without permission to list it.
pub(crate) const FOLDER: OFlag =
    OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// The kind of socket between `ralph` and its guard: keeps packets whole.
pub(crate) const SOCKET: SockType = SockType::SeqPacket;
pub(crate) const SEND: MsgFlags = MsgFlags::MSG_NOSIGNAL;
pub(crate) const RECEIVE: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_CMSG_CLOEXEC);
/// A monotonic clock that also runs while the machine sleeps.
pub(crate) const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
/// How often a guard checks for dead children while a command runs; here it is woken for each.
pub(crate) const LOOK_EVERY: Option<Duration> = None;

pub(crate) fn own_program() -> &'static Path {
    Path::new("/proc/self/exe")
}

/// A descriptor received over a socket, already close-on-exec because of [`RECEIVE`].
pub(crate) fn received(fd: OwnedFd) -> OwnedFd {
    fd
}

pub(crate) fn pipe() -> nix::Result<(OwnedFd, OwnedFd)> {
    pipe2(OFlag::O_CLOEXEC)
}

/// A connected pair of sockets that keep packets whole and report the other side's end.
pub(crate) fn socket_pair() -> nix::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SOCKET, None, SockFlag::SOCK_CLOEXEC)
}

/// A name in an open folder, as a path that is short enough for a socket, which allows 107 bytes.
pub(crate) fn short_path(opened: &File, _: &Path, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()))
}

/// An empty anonymous file.
pub(crate) fn empty_file(name: &CStr) -> nix::Result<OwnedFd> {
    memfd_create(name, MFdFlags::MFD_CLOEXEC)
}

pub(crate) fn anonymous_file(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(c"ralph", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    let seals =
        SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

pub(crate) fn become_subreaper() -> nix::Result<()> {
    prctl::set_child_subreaper(true)
}

/// What a command carries in its environment, so that the guard finds its leftovers: nothing, the guard adopts them.
pub(crate) fn guard_mark(_: Pid) -> Option<String> {
    None
}

/// What has left the tree below a guard: nothing can.
pub(crate) fn strays(_: Option<Pid>, _: Option<&str>) -> Vec<Pid> {
    Vec::new()
}

/// Sets what `ps` and `top` show for this process.
pub(crate) fn set_name(name: &CStr) {
    prctl::set_name(name).ok();
}

/// Ends this process when its parent, `parent`, ends.
pub(crate) fn die_with(parent: Pid) -> nix::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the line above.
    if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH) }
}

/// Marks a command: it and its children are killed first when memory runs out, rather than the engine, which notices.
/// The mark also tells processes of a dead guard from `ralph`'s other children.
pub(crate) struct KillableMark(String);

impl KillableMark {
    /// The mark for commands of this process; created once, as a spawn should be quick.
    pub(crate) fn new() -> Option<Self> {
        let now = super::process::killable_mark(nix::unistd::getpid())?;
        Some(Self((now + 120).min(1000).to_string()))
    }

    /// Marks this process. If the system refuses (a container without /proc), only the mark is lost.
    pub(crate) fn put_on(&self) {
        if let Ok(mut file) = File::options().write(true).open("/proc/self/oom_score_adj") {
            file.write_all(self.0.as_bytes()).ok();
        }
    }
}

/// A pollable notice of dead children.
pub(crate) struct Deaths(SignalFd);

impl Deaths {
    /// For this process, in which every signal is blocked.
    pub(crate) fn new() -> nix::Result<Self> {
        let mut death = SigSet::empty();
        death.add(Signal::SIGCHLD);
        SignalFd::with_flags(&death, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map(Self)
    }

    /// Discards the pending notices.
    pub(crate) fn forget(&self) {
        while let Ok(Some(_)) = self.0.read_signal() {}
    }
}

impl AsFd for Deaths {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
