//! The process table, from `libproc` and `sysctl`.
#![allow(
    unsafe_code,
    reason = "the process table of macOS has no safe form; each call gets a place of known size"
)]

use nix::libc;
use nix::unistd::Pid;
use std::ffi::c_int;

/// More processes than a system has.
const MOST: usize = 64 * 1024;
/// The longest arguments and environment; the system allows no more.
const TEXT_MAX: usize = 1024 * 1024;

pub(crate) fn all() -> Vec<Pid> {
    let mut numbers: Vec<libc::pid_t> = vec![0; MOST];
    let room = c_int::try_from(numbers.len() * size_of::<libc::pid_t>()).unwrap_or(c_int::MAX);
    // SAFETY: the kernel writes at most `room` bytes, which is the size of the list.
    let found = unsafe { libc::proc_listallpids(numbers.as_mut_ptr().cast(), room) };
    numbers.truncate(usize::try_from(found).unwrap_or(0));
    numbers.into_iter().filter(|number| *number > 0).map(Pid::from_raw).collect()
}

/// The system's information on `pid`, even for a zombie.
fn about(pid: Pid) -> Option<libc::proc_bsdinfo> {
    const WITH_DEAD: u64 = 1;
    // SAFETY: all zeros is a value of this plain structure.
    let mut info: libc::proc_bsdinfo = unsafe { std::mem::zeroed() };
    let size = c_int::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    // SAFETY: the kernel writes at most `size` bytes, which is the size of `info`.
    let got = unsafe {
        libc::proc_pidinfo(pid.as_raw(), libc::PROC_PIDTBSDINFO, WITH_DEAD, (&raw mut info).cast(), size)
    };
    (got == size).then_some(info)
}

pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    all().into_iter().filter(|one| parent(*one) == Some(pid)).collect()
}

/// Everything below `root` in one pass: processes that fork at the same time may be missing, so repeat until nothing
/// is left to be sure.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    let table: Vec<(Pid, Pid)> =
        all().into_iter().filter_map(|pid| parent(pid).map(|parent| (pid, parent))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(above) = found.get(next).copied() {
        found.extend(
            table.iter().filter(|(pid, parent)| *parent == above && *pid != above).map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.remove(0);
    found
}

/// What has left the tree below a guard, as orphans become children of the first process here. Recognized by the
/// session of the command `main`, or by the guard's mark in their environment.
pub(crate) fn strays(main: Option<Pid>, mark: Option<&str>) -> Vec<Pid> {
    let own = nix::unistd::getuid().as_raw();
    let here = nix::unistd::getpid();
    all()
        .into_iter()
        .filter(|pid| *pid != here && owner(*pid) == Some(own) && !zombie(*pid))
        .filter(|pid| {
            (main.is_some() && session(*pid) == main) || mark.is_some_and(|mark| carries(*pid, mark))
        })
        .collect()
}

pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    i32::try_from(about(pid)?.pbi_ppid).ok().map(Pid::from_raw)
}

pub(crate) fn session(pid: Pid) -> Option<Pid> {
    nix::unistd::getsid(Some(pid)).ok()
}

/// Whether `pid` is dead (maybe a zombie).
pub(crate) fn zombie(pid: Pid) -> bool {
    const DEAD: u32 = 5;
    about(pid).is_none_or(|info| info.pbi_status == DEAD)
}

pub(crate) fn owner(pid: Pid) -> Option<u32> {
    about(pid).map(|info| info.pbi_uid)
}

/// Not available here.
pub(crate) fn killable_mark(_: Pid) -> Option<i32> {
    None
}

/// Whether `pid` was started with `entry` (`NAME=value`) in its environment. The system hides it for its own
/// programs.
pub(crate) fn carries(pid: Pid, entry: &str) -> bool {
    let mut which = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid.as_raw()];
    let mut text = vec![0u8; TEXT_MAX];
    let mut size = text.len();
    let names = libc::c_uint::try_from(which.len()).unwrap_or(0);
    // SAFETY: the kernel writes at most `size` bytes, which is the size of `text`, and then says how many it wrote.
    let done = unsafe {
        libc::sysctl(
            which.as_mut_ptr(),
            names,
            text.as_mut_ptr().cast(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    if done != 0 {
        return false;
    }
    text.truncate(size);
    // A number, the program, its arguments, its environment, each ended by NUL; searches all of them for the entry.
    text.get(4..).unwrap_or_default().split(|byte| *byte == 0).any(|one| one == entry.as_bytes())
}
