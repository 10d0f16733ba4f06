//! Linux: sockets that keep packets apart, files without a name, subreapers and death signals.

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

/// How a folder is opened as a base for further steps: no permission to list it is needed.
pub(crate) const FOLDER: OFlag =
    OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// The kind of sockets between `ralph` and its guard: packets stay whole.
pub(crate) const SOCKET: SockType = SockType::SeqPacket;
/// How packets are sent.
pub(crate) const SEND: MsgFlags = MsgFlags::MSG_NOSIGNAL;
/// How packets are received.
pub(crate) const RECEIVE: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_CMSG_CLOEXEC);
/// The clock that goes on while the machine sleeps, and that nobody sets.
pub(crate) const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
/// How often a guard looks for dead children while a command runs; it is woken for each.
pub(crate) const LOOK_EVERY: Option<Duration> = None;

/// This very program, even after its file was replaced by an upgrade.
pub(crate) fn own_program() -> &'static Path {
    Path::new("/proc/self/exe")
}

/// A descriptor that came over a socket, closed for programs that are run: [`RECEIVE`] has seen to that.
pub(crate) fn received(fd: OwnedFd) -> OwnedFd {
    fd
}

/// A pipe: the end to read from, the end to write to.
pub(crate) fn pipe() -> nix::Result<(OwnedFd, OwnedFd)> {
    pipe2(OFlag::O_CLOEXEC)
}

/// A connected pair of sockets that keep packets whole and report the other side's end.
pub(crate) fn socket_pair() -> nix::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SOCKET, None, SockFlag::SOCK_CLOEXEC)
}

/// A name in an open folder, as a path that is short enough for a socket, whose name has 107 bytes.
pub(crate) fn short_path(opened: &File, _: &Path, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()))
}

/// A file without a name, empty.
pub(crate) fn empty_file(name: &CStr) -> nix::Result<OwnedFd> {
    memfd_create(name, MFdFlags::MFD_CLOEXEC)
}

/// A file without a name holding `bytes`, at its beginning.
pub(crate) fn anonymous_file(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(c"ralph", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    let seals =
        SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

/// Makes this process the parent of every orphan below it.
pub(crate) fn adopt_orphans() -> nix::Result<()> {
    prctl::set_child_subreaper(true)
}

/// What a command carries in its environment, so that the guard finds what it left behind: nothing, it adopts it.
pub(crate) fn guard_mark(_: Pid) -> Option<String> {
    None
}

/// What has left the tree below a guard: nothing can.
pub(crate) fn strays(_: Option<Pid>, _: Option<&str>) -> Vec<Pid> {
    Vec::new()
}

/// What `ps` and `top` show for this process.
pub(crate) fn set_name(name: &CStr) {
    prctl::set_name(name).ok();
}

/// Ties this process's life to that of its parent, `parent`.
pub(crate) fn die_with(parent: Pid) -> nix::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the line above.
    if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH) }
}

/// How a command is marked: it and all that it starts are the first to go when memory runs out. Better a build than
/// the engine that would notice. The mark also tells processes of a dead guard from `ralph`'s own children.
pub(crate) struct KillableMark(String);

impl KillableMark {
    /// The mark for commands of this process; made once, as a spawn should be quick.
    pub(crate) fn new() -> Option<Self> {
        let now = super::process::killable_mark(nix::unistd::getpid())?;
        Some(Self((now + 120).min(1000).to_string()))
    }

    /// Marks this process. A system that refuses (a container without /proc) loses the mark and nothing else.
    pub(crate) fn put_on(&self) {
        if let Ok(mut file) = File::options().write(true).open("/proc/self/oom_score_adj") {
            file.write_all(self.0.as_bytes()).ok();
        }
    }
}

/// Dead children, as something to wait for.
pub(crate) struct Deaths(SignalFd);

impl Deaths {
    /// For this process, in which every signal is blocked.
    pub(crate) fn new() -> nix::Result<Self> {
        let mut death = SigSet::empty();
        death.add(Signal::SIGCHLD);
        SignalFd::with_flags(&death, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map(Self)
    }

    /// Forgets those that were told.
    pub(crate) fn forget(&self) {
        while let Ok(Some(_)) = self.0.read_signal() {}
    }
}

impl AsFd for Deaths {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
