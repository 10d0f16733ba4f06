//! What a dead guard leaves behind: its orphans become children of this process, which ends them.
//!
//! `ralph` has other children (git, other guards), so nothing is killed for merely being a child. An orphan is told
//! by one of three marks: the run's variable in its environment, the session of the command that ran, or, for those that have
//! shed both, a session of its own together with the memory mark that only commands get.

use crate::{RUN_MARK, os};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(10);
const RESCAN_MS: u8 = 3;

/// What killing the orphans came to.
pub(crate) struct Cleared {
    /// How many were killed.
    pub(crate) killed: u32,
    /// How many resisted.
    pub(crate) alive: u32,
}

/// Kills the orphans of a guard that has been waited for; `main` is the command that ran, where one did.
pub(crate) fn clear(run_id: &str, main: Option<Pid>) -> Cleared {
    let deadline = Instant::now() + LIMIT;
    let me = getpid();
    let entry = format!("{RUN_MARK}={run_id}");
    let own_session = os::session(me);
    let own_mark = os::killable_mark(me);
    let is_orphan = |child: Pid| {
        let session = os::session(child);
        let foreign = session != own_session;
        (main.is_some() && session == main)
            || (foreign && os::killable_mark(child) != own_mark)
            || os::carries(child, &entry)
    };
    let mut killed = BTreeSet::new();
    let mut alive = 0;
    loop {
        let orphans: Vec<Pid> = os::children(me).into_iter().filter(|child| is_orphan(*child)).collect();
        if orphans.is_empty() {
            break;
        }
        let below: Vec<Pid> = orphans.iter().flat_map(|orphan| os::descendants(*orphan)).collect();
        let living: Vec<Pid> =
            orphans.iter().chain(&below).copied().filter(|pid| !os::zombie(*pid)).collect();
        for pid in &living {
            if kill(*pid, Signal::SIGKILL).is_ok() {
                killed.insert(*pid);
            }
        }
        for orphan in orphans {
            // Each by name: the other children of this process have owners who wait for them.
            waitpid(orphan, Some(WaitPidFlag::WNOHANG)).ok();
        }
        if Instant::now() >= deadline {
            alive = u32::try_from(living.len()).unwrap_or(u32::MAX);
            break;
        }
        nix::poll::poll(&mut [], RESCAN_MS).ok();
    }
    // The command itself was there before the guard died; it counts as ended, not as left behind.
    if let Some(main) = main {
        killed.remove(&main);
    }
    // Where this process could not adopt them, they went elsewhere; the variable still finds most.
    let elsewhere = crate::sweep(run_id);
    Cleared { killed: u32::try_from(killed.len()).unwrap_or(u32::MAX).saturating_add(elsewhere), alive }
}
