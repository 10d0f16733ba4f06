//! The last net: processes of a run, wherever they ended up.

use crate::{RUN_MARK, os};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid, getuid};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(5);
const RESCAN_MS: u8 = 5;

/// Kills every process of this user whose environment carries `RALPH_RUN=<run_id>`; returns how many there were.
///
/// For the resume of a run whose `ralph` and guard both died: whoever holds the run's lock may be sure that nothing
/// of an earlier life goes on. Neither this process nor one above it is touched. Looks for five seconds, and waits five
/// more at most for the last ones to die.
pub fn sweep(run_id: &str) -> u32 {
    sweep_with(run_id, None)
}

/// The same, with those of the session `session`: a command leads one, and its number is not given away while anybody is in it.
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
            // Those that this process had adopted must not stay behind as zombies.
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

/// A killed process is gone only when the scheduler has let it die. On a machine with very many processes one look at all of them
/// takes the whole time of a sweep, and nobody has looked again at those that were killed last.
fn wait_until_gone(killed: &BTreeSet<Pid>) {
    let deadline = Instant::now() + LIMIT;
    while killed.iter().any(|pid| os::owner(*pid).is_some() && !os::zombie(*pid)) && Instant::now() < deadline
    {
        nix::poll::poll(&mut [], RESCAN_MS).ok();
    }
}

/// This process and all above it.
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
