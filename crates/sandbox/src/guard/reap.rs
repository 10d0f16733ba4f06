//! Reaps dead processes and ends living ones below a process.

use crate::os;
use crate::os::End;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpgrp};

pub(super) enum Reaped {
    Child(Pid, End),
    /// Children live, none is dead.
    NoneDead,
    /// No child exists. As orphans come to us, this proves that nothing is left below us.
    NoneLeft,
}

pub(super) fn one() -> Reaped {
    loop {
        match os::raw::wait_any() {
            Ok(None) => return Reaped::NoneDead,
            Ok(Some((pid, end))) => return Reaped::Child(pid, end),
            Err(Errno::ECHILD) => return Reaped::NoneLeft,
            Err(_) => {}
        }
    }
}

/// Kills everything below `me` that one scan finds, and the `strays` that have left the tree.
///
/// A process can't fork once SIGKILL is pending, and the groups go first because the kernel signals a group in one
/// step: a fork bomb that stays in its group ends there, and one that doesn't loses ground with every scan.
pub(super) fn kill_below(me: Pid, strays: Vec<Pid>) {
    let ours = getpgrp();
    let mut last_group = ours;
    for pid in os::descendants(me).into_iter().chain(strays) {
        // Every group below us was created below us: a command starts with its own session.
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

pub(super) fn alive_below(me: Pid) -> u32 {
    let alive = os::descendants(me).into_iter().filter(|pid| !os::zombie(*pid)).count();
    u32::try_from(alive).unwrap_or(u32::MAX)
}

/// Sends SIGTERM to everything below `me`, once per process, as many take a second one for impatience.
pub(super) fn ask_below(me: Pid) {
    for pid in os::descendants(me) {
        kill(pid, Signal::SIGTERM).ok();
        // A stopped process would otherwise get the signal only after its end.
        kill(pid, Signal::SIGCONT).ok();
    }
}
