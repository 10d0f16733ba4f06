//! Waiting for the dead and ending the living below a process.

use crate::os;
use crate::os::End;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpgrp};

/// The answer to "is a child dead?".
pub(super) enum Reaped {
    /// This one was.
    Child(Pid, End),
    /// Children live, none is dead.
    NoneDead,
    /// There is no child. As orphans come to us, there is then nothing below us at all: the proof that all is gone.
    NoneLeft,
}

/// Waits for one dead child, without blocking.
pub(super) fn one() -> Reaped {
    loop {
        match os::raw::wait_any() {
            Ok(None) => return Reaped::NoneDead,
            Ok(Some((pid, end))) => return Reaped::Child(pid, end),
            Err(Errno::ECHILD) => return Reaped::NoneLeft,
            // Interrupted: ask again.
            Err(_) => {}
        }
    }
}

/// Kills everything below `me` that one look finds, and the `strays` that have left the tree.
///
/// A process cannot fork once SIGKILL is pending, and the groups go first because the kernel signals a group in one
/// step: a fork bomb that stays in its group ends there, and one that does not loses ground with every look.
pub(super) fn kill_below(me: Pid, strays: Vec<Pid>) {
    let ours = getpgrp();
    let mut last_group = ours;
    for pid in os::descendants(me).into_iter().chain(strays) {
        // Every group below us was made below us: a command starts with its own session.
        if let Ok(group) = getpgid(Some(pid))
            && group != ours
            && group != last_group
        {
            killpg(group, Signal::SIGKILL).ok();
            last_group = group;
        }
        kill(pid, Signal::SIGKILL).ok();
    }
}

/// How many live below `me`.
pub(super) fn alive_below(me: Pid) -> u32 {
    let alive = os::descendants(me).into_iter().filter(|pid| !os::zombie(*pid)).count();
    u32::try_from(alive).unwrap_or(u32::MAX)
}

/// Asks everything below `me` to end: each process once, as many take a second request for impatience.
pub(super) fn ask_below(me: Pid) {
    for pid in os::descendants(me) {
        kill(pid, Signal::SIGTERM).ok();
        // A stopped process would hear the request only after its end.
        kill(pid, Signal::SIGCONT).ok();
    }
}
