//! Where commands run.
//!
//! [`local::LocalSandbox`] runs commands on this machine under a guard: a tiny helper process that reaps everything a
//! command starts, whatever session or process group it hides in. When a command ends, is stopped or times out, the
//! guard kills and reaps the rest and only then reports the end. When `ralph` dies, the guard sees its socket close,
//! does the same, and releases the run's lock last. If the guard is killed, its leftovers are found and ended;
//! [`become_subreaper`] makes that certain. [`sweep`] is the last safety net when a run is resumed.
//!
//! Any program may own sandboxes, many at a time and from several threads: it calls [`init`] first in its `main`, or
//! names another program as the guard. Nothing of its process changes unless it asks for that ([`become_subreaper`],
//! [`release_code_pages`]).
//!
//! [`memory::MemorySandbox`] implements the port without processes or files, for tests of the engine.
//!
//! [`hosted::HostedSandbox`] is a run's sandbox elsewhere, over a workspace on this machine.
//!
//! `docker` (feature `docker`, on by default) creates containers through the engine's API, [`sbx`] microVMs through
//! their command-line tool.

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
pub use local::{LocalOptions, LocalSandbox};
pub use local::{egress, escapes};
pub use memory::{MemoryExit, MemoryFiles, MemorySandbox, MemoryWorkspace};

pub use adopted::become_subreaper;
pub use git_identity::GitIdentity;
pub use helper::{helper, init};
pub use lease_clock::{LeaseClock, MonotonicTime};
pub use sweep::sweep;

/// Releases the memory of code that isn't needed now; the binary `ralph` calls it once a run is set up.
pub fn release_code_pages() {
    os::raw::release_code_pages();
}

/// The variable that marks every process of a run; its value is the run id.
pub const RUN_MARK: &str = "RALPH_RUN";
