//! Where commands run.
//!
//! [`local::LocalSandbox`] runs commands on this machine under a [`guard`]: a tiny helper process that is the reaper
//! of everything a command starts, whatever session or process group it hides in. When a command ends, is stopped or
//! runs out of time, the guard kills and reaps all that is left and only then reports the end; when `ralph` itself
//! dies, the guard sees its socket close, does the same, and lets go of the run's lock last. When the guard is
//! killed, `ralph` adopts what it leaves behind and ends that. [`sweep`] is the last net, used when a run is resumed.
//!
//! [`memory::MemorySandbox`] is the same port without processes or files, for tests of the engine.
//!
//! [`hosted::HostedSandbox`] is a run's sandbox somewhere else, over a workspace on this machine.
//!
//! [`docker`] makes containers through the engine's own API, [`sbx`] microVMs through their command-line tool.

mod adopted;
pub mod docker;
pub mod guard;
pub mod hosted;
pub mod local;
pub mod memory;
mod os;
mod paths;
pub mod sbx;
mod shell;
mod sweep;
mod wire;

pub use local::fence::{self, Fence, FenceSpec};
pub use local::{LocalManaged, LocalOptions, LocalProvider, LocalSandbox};
pub use local::{egress, escapes};
pub use memory::{MemoryExit, MemoryFiles, MemoryManaged, MemoryProvider, MemorySandbox, MemoryWorkspace};

pub use sweep::sweep;

/// Lets go of the memory of code that has run and is not needed now; a run calls it once it is set up.
pub fn let_go_of_code() {
    os::raw::let_go_of_code();
}

/// The variable that marks every process of a run; its value is the run's id.
pub const RUN_MARK: &str = "RALPH_RUN";

/// Plays the part of a helper process where the arguments (without the program) name one: `__guard <fd>` watches over a
/// run's commands, `__fence …` and `__inside …` put one behind its fence. Returns the exit code.
///
/// The binary calls this before anything else is set up, so that helpers stay small. A helper is a process of its own: what
/// its environment holds was put there for it by this crate, and it alone may read that.
pub fn helper(args: impl Iterator<Item = std::ffi::OsString>) -> Option<i32> {
    let mut args = args;
    match args.next()?.to_str()? {
        "__guard" => Some(guard::main(args.next()?.to_str()?.parse().ok()?)),
        "__forward" => Some(local::egress::forward_main(args)),
        "__fence" => Some(local::fence::launch_main(args)),
        "__try" => Some(local::escapes::try_main(args)),
        "__inside" => Some(local::fence::inside_main(args)),
        _ => None,
    }
}
