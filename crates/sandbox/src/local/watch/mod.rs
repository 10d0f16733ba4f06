//! `ralph __watch`: a process between the guard and the sandbox of a check. It records which files of the workspace
//! its runners open and run, and who writes there. It watches from outside, so nothing in the sandbox can prevent it;
//! it changes nothing, and everything that it watches ends with it. Linux only.

#[cfg(target_os = "linux")]
mod installed;
#[cfg(target_os = "linux")]
mod local;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod resolve;
#[cfg(target_os = "linux")]
mod tracer;
#[cfg(target_os = "linux")]
mod watcher;

#[cfg(target_os = "linux")]
pub(crate) use watcher::main;

use ralph_loop_domain::ports::ExecTrace;
use std::path::Path;

/// Tells the first process of a sandbox that it is watched.
pub(super) const WATCHED: &str = "--watched";

/// Reads a watcher's record once; `None` if it couldn't watch, or if it saw too much to keep.
pub(super) fn take(file: &Path) -> Option<ExecTrace> {
    let text = std::fs::read(file).ok();
    std::fs::remove_file(file).ok();
    serde_json::from_slice(&text?).ok()
}
