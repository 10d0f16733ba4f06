//! Differences between operating systems: the process table, adoption of orphans, anonymous files.
//!
//! `linux.rs` and `macos.rs` provide the same functions; nothing outside this folder knows `/proc`. Only Linux has
//! isolation.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_raw;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
mod macos_process;
#[cfg(target_os = "macos")]
mod macos_raw;
#[cfg(target_os = "linux")]
mod process;
pub(crate) mod raw;
#[cfg(target_os = "linux")]
pub(crate) mod trace;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!(
    "ralph-sandbox: `os/linux.rs`, `os/linux_raw.rs` and `os/process.rs` need siblings for this system"
);

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(target_os = "macos")]
use macos_process as process;

#[cfg(target_os = "linux")]
pub(crate) use linux::strays;
#[cfg(target_os = "macos")]
pub(crate) use macos_process::strays;
pub(crate) use process::{
    all, carries, children, descendants, killable_mark, owner, parent, session, zombie,
};
pub(crate) use system::{
    CLOCK, Deaths, FOLDER, KillableMark, LOOK_EVERY, RECEIVE, SEND, SOCKET, anonymous_file, become_subreaper,
    die_with, empty_file, guard_mark, own_program, pipe, received, set_name, short_path, socket_pair,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
}
