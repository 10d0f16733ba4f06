//! Which program plays the helper processes of sandboxes.

use crate::os;
use ralph_loop_domain::ports::SandboxError;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// This program has shown that it plays helpers: it looked for a helper's arguments and had none. True of the program,
/// not of a run, so it is kept once for all of them.
static PLAYED_HERE: AtomicBool = AtomicBool::new(false);

/// This program plays helpers.
pub(crate) fn plays_here() {
    PLAYED_HERE.store(true, Ordering::Relaxed);
}

/// The program that plays the helpers: the one that was named, or this one where it does.
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
