//! Linux-only calls that the compiler can't check.
#![allow(
    unsafe_code,
    reason = "starting a process, descriptors by number and signal dispositions have no safe form"
)]

use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};

/// The stack of a child that only makes system calls.
const CHILD_STACK: usize = 64 * 1024;

/// Runs `work` in a child process that shares this one's memory, and waits until it runs a program or has ended;
/// returns the answer of `work`, or zeros if it became a program.
///
/// As quick as a spawn can be: no page table is copied. `work` must not allocate, as it never frees, and must not
/// unwind. Called only by the guard, which has one thread and all signals blocked.
pub(crate) fn spawn_tracer(work: &dyn Fn() -> [i32; 2]) -> nix::Result<(Pid, [i32; 2])> {
    struct Beside<'a> {
        work: &'a dyn Fn() -> [i32; 2],
        answer: [AtomicI32; 2],
    }
    extern "C" fn enter(beside: *mut libc::c_void) -> libc::c_int {
        // SAFETY: it points to the `Beside` of `spawn_tracer`, which waits until this child is gone.
        let beside = unsafe { &*beside.cast::<Beside<'_>>() };
        for (place, word) in beside.answer.iter().zip((beside.work)()) {
            place.store(word, Ordering::Relaxed);
        }
        // SAFETY: `_exit` ends this child without touching what belongs to the guard.
        unsafe { libc::_exit(127) }
    }
    let beside = Beside { work, answer: [AtomicI32::new(0), AtomicI32::new(0)] };
    let mut stack: Vec<u128> = Vec::with_capacity(CHILD_STACK / size_of::<u128>());
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack grows down from the end of our buffer, aligned to 16 bytes, which lives until the child has
    // left this memory: CLONE_VFORK suspends us till then. No handler can run in the child: signals are blocked, and
    // all have their default disposition.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(enter, top.cast(), flags, (&raw const beside).cast_mut().cast())
    };
    Errno::result(pid).map(|pid| (Pid::from_raw(pid), beside.answer.map(AtomicI32::into_inner)))
}

pub(crate) fn close_others(keep: RawFd) {
    let keep = libc::c_uint::try_from(keep).unwrap_or(0);
    for (first, last) in [(3, keep.saturating_sub(1)), (keep.saturating_add(1).max(3), libc::c_uint::MAX)] {
        if first <= last {
            // SAFETY: the guard has just started and owns no descriptor besides `keep` and 0 to 2.
            let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
            if done < 0 {
                for number in first..=last.min(1023) {
                    // SAFETY: as above; closing a number that is not open only answers EBADF.
                    unsafe { libc::close(number as RawFd) };
                }
            }
        }
    }
}

/// Gives every signal its default disposition. An ignored one would stay ignored in every command.
pub(crate) fn default_signals() {
    // The kernel's struct: all zeros is "default, no flags, empty mask". libc refuses two signals that it uses
    // itself, and our parent may have ignored those as well.
    let action = [0u64; 8];
    for number in 1..=64 {
        // SAFETY: the kernel reads at most 32 bytes of `action`; no handler is installed. Numbers that cannot be
        // changed answer EINVAL.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, number, action.as_ptr(), 0usize, 8usize) };
    }
}

pub(crate) fn landlock_abi() -> nix::Result<i32> {
    const ASK_VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel reads no memory and makes nothing; it only answers with a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0usize,
            ASK_VERSION,
        )
    };
    Errno::result(abi).map(|abi| i32::try_from(abi).unwrap_or(i32::MAX))
}

/// Requests this session's keyring, as a program that wants its keys would.
pub(crate) fn session_keyring() -> nix::Result<()> {
    const GET_KEYRING_ID: libc::c_int = 0;
    const SESSION: libc::c_int = -3;
    // SAFETY: only numbers are passed, and only a number comes back.
    let answer = unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION, 1) };
    Errno::result(answer).map(drop)
}

/// Drops every capability of this process and its children. Only root has any.
pub(crate) fn drop_capabilities() {
    for capability in 0..64 as libc::c_ulong {
        // SAFETY: only numbers are passed. A number without a capability answers EINVAL.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}

/// Releases the resident pages of this program's code: what has run once (reading arguments, files and settings) need
/// not stay in memory for a night. Needed pages come back from the page cache.
pub(crate) fn release_code_pages() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for line in maps.lines() {
        // Only code that is backed by a file: its pages are never written, so none can be lost.
        let mut words = line.split_whitespace();
        let (Some(range), Some("r-xp")) = (words.next(), words.next()) else { continue };
        if !words.next_back().is_some_and(|path| path.starts_with('/')) {
            continue;
        }
        let parsed = range.split_once('-').and_then(|(from, to)| {
            Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
        });
        let Some((from, to)) = parsed.filter(|(from, to)| from < to) else { continue };
        // SAFETY: the range is a mapping of this process, read-only and backed by a file; dropping its pages changes
        // nothing that a program can see, they are read again from the file.
        unsafe { libc::madvise(std::ptr::without_provenance_mut(from), to - from, libc::MADV_DONTNEED) };
    }
}
