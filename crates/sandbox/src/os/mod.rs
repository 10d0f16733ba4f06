//! What differs between operating systems: the process table, adoption of orphans, anonymous files.
//!
//! A port to another system gives the same functions as `linux.rs`; nothing outside this folder knows `/proc`.

mod linux;
mod process;
pub(crate) mod raw;
pub(crate) mod trace;

#[cfg(not(target_os = "linux"))]
compile_error!("ralph-sandbox: `os/linux.rs` and `os/process.rs` need a sibling for this system");

pub(crate) use linux::{
    FOLDER, KillableMark, OWN_PROGRAM, adopt_orphans, anonymous_file, die_with, set_name, socket_pair,
};
pub(crate) use process::{
    all, carries, children, descendants, killable_mark, owner, parent, session, zombie,
};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}
