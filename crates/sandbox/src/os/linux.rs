//! Linux: sockets that keep packets apart, files without a name, subreapers and death signals.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{Pid, getppid};
use std::ffi::CStr;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::OwnedFd;

/// This very program, even after its file was replaced by an upgrade.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// How a folder is opened as a base for further steps: no permission to list it is needed.
pub(crate) const FOLDER: OFlag =
    OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// A connected pair of sockets that keep packets whole and report the other side's end.
pub(crate) fn socket_pair() -> nix::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
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
