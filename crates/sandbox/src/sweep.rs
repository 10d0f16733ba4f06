//! Finds processes of a run, wherever they ended up.

use crate::{RUN_MARK, os};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid, getuid};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(5);
const RESCAN_MS: u8 = 5;

/// Kills every process of this user whose environment has `RALPH_RUN=<run_id>`; returns their number.
///
/// For the resume of a run whose `ralph` and guard both died: afterwards the holder of the run's lock can be sure
/// that nothing of the earlier process still runs. Spares this process and its ancestors. Searches for five seconds,
/// and waits at most five more for the last ones to die.
pub fn sweep(run_id: &str) -> u32 {
    sweep_with(run_id, None)
}

/// Also kills the processes of `session`: a command leads one, and its number isn't reused while it has processes.
pub(crate) fn sweep_with(run_id: &str, session: Option<Pid>) -> u32 {
    let entry = format!("{RUN_MARK}={run_id}");
    let me = getpid();
    let above = ancestors(me);
    let uid = getuid().as_raw();
    let deadline = Instant::now() + LIMIT;
    let mut killed = BTreeSet::new();
    loop {
        let found: Vec<Pid> = os::all()
            .into_iter()
            .filter(|pid| !above.contains(pid) && os::owner(*pid) == Some(uid))
            .filter(|pid| os::carries(*pid, &entry) || (session.is_some() && os::session(*pid) == session))
            .filter(|pid| !os::zombie(*pid))
            .collect();
        for pid in &found {
            if kill(*pid, Signal::SIGKILL).is_ok() {
                killed.insert(*pid);
            }
        }
        for pid in &killed {
            // Adopted ones must not stay as zombies.
            if os::parent(*pid) == Some(me) {
                waitpid(*pid, Some(WaitPidFlag::WNOHANG)).ok();
            }
        }
        if found.is_empty() {
            break;
        }
        if Instant::now() >= deadline {
            wait_until_gone(&killed);
            break;
        }
        nix::poll::poll(&mut [], RESCAN_MS).ok();
    }
    u32::try_from(killed.len()).unwrap_or(u32::MAX)
}

/// A killed process is gone only once the scheduler has run it. With very many processes one scan takes the whole
/// time of a sweep, so the last ones killed need another check.
fn wait_until_gone(killed: &BTreeSet<Pid>) {
    let deadline = Instant::now() + LIMIT;
    while killed.iter().any(|pid| os::owner(*pid).is_some() && !os::zombie(*pid)) && Instant::now() < deadline
    {
        nix::poll::poll(&mut [], RESCAN_MS).ok();
    }
}

fn ancestors(me: Pid) -> BTreeSet<Pid> {
    let mut above = BTreeSet::from([me]);
    let mut at = me;
    while let Some(parent) = os::parent(at) {
        if !above.insert(parent) {
            break;
        }
        at = parent;
    }
    above
}
