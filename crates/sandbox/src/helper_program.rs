//! Which program runs the helper processes of sandboxes.

use crate::os;
use ralph_loop_domain::ports::SandboxError;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this program has checked its arguments for a helper's. Per program, so it is kept once for all runs.
static PLAYED_HERE: AtomicBool = AtomicBool::new(false);

pub(crate) fn plays_here() {
    PLAYED_HERE.store(true, Ordering::Relaxed);
}

/// The program that runs the helpers: the named one, or this one if it can.
pub(crate) fn program(named: Option<&Path>) -> Result<&Path, SandboxError> {
    match named {
        Some(program) => Ok(program),
        None if PLAYED_HERE.load(Ordering::Relaxed) => Ok(os::own_program()),
        None => Err(SandboxError::Broken(
            "this program does not play the guard that watches over commands; either it calls `ralph_loop_sandbox::init()` \
             first in its `main`, or `LocalOptions::guard_exe` names a program that does, such as `ralph`"
                .to_owned(),
        )),
    }
}
