//! Finds and ends what a dead guard leaves behind.
//!
//! If this process adopts orphans, they become its children. It has other children (git, other guards), so nothing is
//! killed just for being a child. One of three marks identifies an orphan: the run's variable in its environment, the
//! session of the command that ran, or, if it has shed both, its own session with the memory mark that only
//! commands get. Without adoption, the first two marks find orphans anywhere.

use crate::{RUN_MARK, os};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};
use ralph_loop_domain::ports::SandboxError;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(10);
const RESCAN_MS: u8 = 3;

/// Per process, like the kernel's flag.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Makes this process the parent of every orphan below it (`PR_SET_CHILD_SUBREAPER`), so that it can end whatever a
/// killed guard leaves behind, even what has cleared its environment and left its session.
///
/// Only for a program that owns all its children: it also gets the orphans of other children and must wait for those.
/// The binary `ralph` calls it; without it, the last of the three orphan marks isn't used.
pub fn become_subreaper() -> Result<(), SandboxError> {
    os::become_subreaper()
        .map_err(|errno| SandboxError::Broken(format!("orphans cannot be adopted: {}", errno.desc())))?;
    ASKED.store(true, Ordering::Relaxed);
    Ok(())
}

pub(crate) struct Cleared {
    pub(crate) killed: u32,
    pub(crate) alive: u32,
}

/// Kills the orphans of a guard that has been waited for; `main` is the command that ran, if any.
pub(crate) fn clear(run_id: &str, main: Option<Pid>) -> Cleared {
    let deadline = Instant::now() + LIMIT;
    let me = getpid();
    let entry = format!("{RUN_MARK}={run_id}");
    let own_session = os::session(me);
    let own_mark = os::killable_mark(me);
    let adopts = ASKED.load(Ordering::Relaxed);
    let is_orphan = |child: Pid| {
        let session = os::session(child);
        let foreign = session != own_session;
        (main.is_some() && session == main)
            || (adopts && foreign && os::killable_mark(child) != own_mark)
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
            // One by one: the other children of this process have owners who wait for them.
            waitpid(orphan, Some(WaitPidFlag::WNOHANG)).ok();
        }
        if Instant::now() >= deadline {
            alive = u32::try_from(living.len()).unwrap_or(u32::MAX);
            break;
        }
        nix::poll::poll(&mut [], RESCAN_MS).ok();
    }
    // The command existed before the guard died; it counts as ended, not as left behind.
    if let Some(main) = main {
        killed.remove(&main);
    }
    // Without adoption they went elsewhere.
    let elsewhere = crate::sweep::sweep_with(run_id, main);
    Cleared { killed: u32::try_from(killed.len()).unwrap_or(u32::MAX).saturating_add(elsewhere), alive }
}
