//! The helper processes of sandboxes, and which program runs them.
//!
//! The guard, and the processes between it and a sandboxed command, are small processes. A program that owns
//! sandboxes runs them itself when it is started again with a helper's arguments ([`init`]), or names another program
//! that does ([`crate::LocalOptions::guard_exe`]; `ralph` is one). It is never restarted without knowing that it
//! does.

use crate::helper_program::plays_here;
use crate::{guard, local};
use std::ffi::OsString;

/// For a program with sandboxes, first in its `main`: if started as a sandbox helper, runs as that and doesn't
/// return. Otherwise changes nothing.
///
/// The alternative is to name a program that runs the helpers in [`crate::LocalOptions::guard_exe`].
#[allow(clippy::exit, clippy::disallowed_methods, reason = "a helper has nothing else to do in this process")]
pub fn init() {
    if let Some(code) = helper(std::env::args_os().skip(1)) {
        std::process::exit(code);
    }
}

/// Runs a helper process if the arguments (without the program) name one: `__guard <fd>` watches a run's commands,
/// `__fence …` and `__inside …` put one in its sandbox, `__watch …` records its activity there. Returns the exit
/// code.
///
/// Like [`init`], for a program that exits itself. Call it before any other setup, so that helpers stay small.
pub fn helper(args: impl Iterator<Item = OsString>) -> Option<i32> {
    let code = play(args);
    if code.is_none() {
        plays_here();
    }
    code
}

fn play(mut args: impl Iterator<Item = OsString>) -> Option<i32> {
    match args.next()?.to_str()? {
        "__guard" => Some(guard::main(args.next()?.to_str()?.parse().ok()?)),
        "__forward" => Some(local::egress::forward_main(args)),
        #[cfg(target_os = "linux")]
        "__fence" => Some(local::isolation::launch_main(args)),
        #[cfg(target_os = "linux")]
        "__try" => Some(local::escapes::try_main(args)),
        #[cfg(target_os = "linux")]
        "__watch" => Some(local::watch_main(args)),
        #[cfg(target_os = "linux")]
        "__inside" => Some(local::isolation::inside_main(args)),
        _ => None,
    }
}
