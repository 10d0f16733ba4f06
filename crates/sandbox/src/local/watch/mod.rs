//! `ralph __watch`: stands between the guard and the sandbox of a check, and sees which files of the workspace its runners
//! open and run, and who writes there. It watches from outside, so nothing in the sandbox can keep it from seeing; it
//! changes nothing, and everything that it watches ends with it. Only Linux has it.

#[cfg(target_os = "linux")]
mod installed;
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

/// The flag by which the first process of a sandbox knows that somebody watches.
pub(super) const WATCHED: &str = "--watched";

/// What a watcher left, once; `None` where it could not watch, or saw too much to keep.
pub(super) fn take(file: &Path) -> Option<ExecTrace> {
    let text = std::fs::read(file).ok();
    std::fs::remove_file(file).ok();
    serde_json::from_slice(&text?).ok()
}
