//! What the kernel enforces.

pub(super) mod bwrap;
#[cfg(target_os = "linux")]
pub(super) mod inside;
#[cfg(target_os = "linux")]
pub(super) mod landlock;
#[cfg(target_os = "linux")]
pub(super) mod launch;
pub(super) mod limits;
#[cfg(target_os = "linux")]
pub(super) mod seccomp;
