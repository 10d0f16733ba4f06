//! macOS-only calls that the compiler can't check.
#![allow(
    unsafe_code,
    reason = "starting a process, descriptors by number and signal dispositions have no safe form"
)]

use nix::errno::Errno;
use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{ForkResult, Pid, read, write};
use std::os::fd::RawFd;

/// Runs `work` in a child process, and waits until it runs a program or has ended; returns the answer of `work`, or
/// zeros if it became a program.
///
/// `work` must not allocate and must not unwind. Called only by the guard, which has one thread and all signals
/// blocked.
pub(crate) fn spawn_tracer(work: &dyn Fn() -> [i32; 2]) -> nix::Result<(Pid, [i32; 2])> {
    // Closed by the program that the child becomes.
    let (ours, theirs) = super::macos::pipe()?;
    // SAFETY: the guard has one thread, so the child may do whatever it could; it only makes system calls.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Child => {
            let [stage, why] = work();
            let mut bytes = [0; 8];
            let (first, second) = bytes.split_at_mut(4);
            first.copy_from_slice(&stage.to_ne_bytes());
            second.copy_from_slice(&why.to_ne_bytes());
            write(&theirs, &bytes).ok();
            // SAFETY: `_exit` ends this child without touching what belongs to the guard.
            unsafe { libc::_exit(127) }
        }
        ForkResult::Parent { child } => {
            drop(theirs);
            let mut bytes = [0; 8];
            let got = loop {
                match read(&ours, &mut bytes) {
                    Err(Errno::EINTR) => {}
                    got => break got.unwrap_or(0),
                }
            };
            let [a, b, c, d, e, f, g, h] = bytes;
            let words = [i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h])];
            Ok((child, if got == bytes.len() { words } else { [0; 2] }))
        }
    }
}

pub(crate) fn close_others(keep: RawFd) {
    /// As many as a process can have, unless its limit was raised.
    const MOST: RawFd = 10_240;
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default();
    let end = RawFd::try_from(limit).unwrap_or(MOST).clamp(MOST, 16 * MOST);
    for number in (3..end).filter(|number| *number != keep) {
        // SAFETY: the guard has just started and owns no descriptor besides `keep` and 0 to 2; closing a number that is not
        // open only answers EBADF.
        unsafe { libc::close(number) };
    }
}

/// Gives every signal its default disposition. An ignored one would stay ignored in every command.
pub(crate) fn default_signals() {
    for number in 1..32 {
        // SAFETY: no handler is installed. Numbers that cannot be changed answer EINVAL.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

pub(crate) fn landlock_abi() -> nix::Result<i32> {
    Err(Errno::ENOSYS)
}

pub(crate) fn release_code_pages() {}
