//! Where commands run.
//!
//! [`local::LocalSandbox`] runs commands on this machine under a guard: a tiny helper process that is the reaper
//! of everything a command starts, whatever session or process group it hides in. When a command ends, is stopped or
//! runs out of time, the guard kills and reaps all that is left and only then reports the end; when `ralph` itself
//! dies, the guard sees its socket close, does the same, and lets go of the run's lock last. When the guard is
//! killed, what it leaves behind is found and ended; [`adopt_orphans`] makes that certain. [`sweep`] is the last net, used when
//! a run is resumed.
//!
//! Any program may own sandboxes, many at a time and from several threads: it calls [`init`] first in its `main`, or names
//! another program that plays the guard. Nothing of its process is changed unless it asks for that ([`adopt_orphans`],
//! [`let_go_of_code`]).
//!
//! [`memory::MemorySandbox`] is the same port without processes or files, for tests of the engine.
//!
//! [`hosted::HostedSandbox`] is a run's sandbox somewhere else, over a workspace on this machine.
//!
//! `docker` (feature `docker`, on by default) makes containers through the engine's own API, [`sbx`] microVMs through their
//! command-line tool.

#![cfg_attr(target_os = "macos", allow(dead_code, reason = "isolation is Linux's alone"))]

mod adopted;
#[cfg(feature = "docker")]
pub mod docker;
mod git_identity;
mod guard;
mod helper;
mod helper_program;
pub mod hosted;
mod lease_clock;
pub mod local;
pub mod memory;
mod os;
mod paths;
pub mod sbx;
mod shell;
mod sweep;
mod wire;

pub use local::isolation::{self, IsolationSpec, LocalIsolation};
pub use local::{LocalManaged, LocalOptions, LocalProvider, LocalSandbox};
pub use local::{egress, escapes};
pub use memory::{MemoryExit, MemoryFiles, MemoryManaged, MemoryProvider, MemorySandbox, MemoryWorkspace};

pub use adopted::adopt_orphans;
pub use git_identity::GitIdentity;
pub use helper::{helper, init};
pub use lease_clock::{LeaseClock, Moment};
pub use sweep::sweep;

/// Lets go of the memory of code that has run and is not needed now; the binary `ralph` calls it once a run is set up.
pub fn let_go_of_code() {
    os::raw::let_go_of_code();
}

/// The variable that marks every process of a run; its value is the run's id.
pub const RUN_MARK: &str = "RALPH_RUN";
