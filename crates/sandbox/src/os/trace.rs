//! Watches processes from outside: the calls that the compiler can't check, and what `/proc` says of a stopped
//! process.
#![allow(
    unsafe_code,
    reason = "tracing and forking have no safe API; each call's arguments are right next to it"
)]

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::Options;
use nix::unistd::{ForkResult, Pid};
use std::ffi::OsString;
use std::io::IoSliceMut;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

const PATH_MAX: usize = 4096;
const PAGE: usize = 4096;

/// Missing in musl's list.
#[cfg(target_env = "musl")]
const GET_SYSCALL_INFO: libc::c_int = 0x420e;
#[cfg(not(target_env = "musl"))]
const GET_SYSCALL_INFO: libc::c_uint = libc::PTRACE_GET_SYSCALL_INFO;

/// Why a watched process is stopped or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It ended, with this code (a shell's, if a signal ended it).
    Ended(i32),
    /// It is about to make a system call that the filter marks.
    Call,
    /// It created another process or thread.
    Forked(Pid),
    /// It became another program.
    Executed,
    /// It is stopped like a shell's job, and stays so.
    Rests,
    /// A signal is on its way to it; 0 for none.
    Signal(i32),
}

/// The arguments of a pending system call, after its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) number: i64,
    pub(crate) args: [u64; 6],
}

/// Forks this process. Called only by a helper with one thread.
pub(crate) fn fork() -> nix::Result<ForkResult> {
    // SAFETY: the helper `__watch` has just started and has no second thread, so the child may do whatever it could.
    unsafe { nix::unistd::fork() }
}

/// Watches `pid` and its children, which end with this process.
pub(crate) fn seize(pid: Pid) -> nix::Result<()> {
    let options = Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_EXITKILL;
    nix::sys::ptrace::seize(pid, options)
}

/// Waits for the next stop or end of anything below.
pub(crate) fn wait() -> nix::Result<(Pid, Stop)> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer. Not nix's `waitpid`, which answers real-time signals with an error.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    let pid = Pid::from_raw(Errno::result(pid)?);
    if libc::WIFEXITED(status) {
        return Ok((pid, Stop::Ended(libc::WEXITSTATUS(status))));
    }
    if libc::WIFSIGNALED(status) {
        return Ok((pid, Stop::Ended(128 + libc::WTERMSIG(status))));
    }
    let signal = libc::WSTOPSIG(status);
    let stop = match status >> 16 {
        libc::PTRACE_EVENT_SECCOMP => Stop::Call,
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            let new = nix::sys::ptrace::getevent(pid).unwrap_or(0);
            Stop::Forked(Pid::from_raw(i32::try_from(new).unwrap_or(0)))
        }
        libc::PTRACE_EVENT_EXEC => Stop::Executed,
        libc::PTRACE_EVENT_STOP
            if matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) =>
        {
            Stop::Rests
        }
        0 => Stop::Signal(signal),
        _ => Stop::Signal(0),
    };
    Ok((pid, stop))
}

/// Resumes `pid`, with a pending signal if any.
pub(crate) fn go_on(pid: Pid, signal: i32) {
    // SAFETY: only numbers are passed. One that is gone meanwhile answers ESRCH.
    unsafe { libc::ptrace(libc::PTRACE_CONT, pid.as_raw(), 0usize, libc::c_long::from(signal)) };
}

/// Leaves `pid` stopped, and gets notified when it wakes.
pub(crate) fn let_rest(pid: Pid) {
    // SAFETY: only numbers are passed.
    unsafe { libc::ptrace(libc::PTRACE_LISTEN, pid.as_raw(), 0usize, 0usize) };
}

/// The system call that `pid` is about to make.
pub(crate) fn call(pid: Pid) -> Option<Call> {
    /// `struct ptrace_syscall_info`: kind, architecture, instruction pointer, then number and arguments of the call.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        kind: u8,
        pad: [u8; 3],
        architecture: u32,
        instruction: u64,
        stack: u64,
        number: u64,
        args: [u64; 6],
        more: u64,
    }
    const AT_ENTRY: u8 = 1;
    const AT_FILTER: u8 = 3;
    let mut info = Info::default();
    // SAFETY: the kernel writes at most the given number of bytes, which is the size of `info`.
    let got = unsafe { libc::ptrace(GET_SYSCALL_INFO, pid.as_raw(), size_of::<Info>(), &raw mut info) };
    let known = got > 0 && matches!(info.kind, AT_ENTRY | AT_FILTER);
    known.then_some(Call { number: info.number.cast_signed(), args: info.args })
}

fn memory(pid: Pid, address: usize, into: &mut [u8]) -> usize {
    use nix::sys::uio::{RemoteIoVec, process_vm_readv};
    let remote = [RemoteIoVec { base: address, len: into.len() }];
    process_vm_readv(pid, &mut [IoSliceMut::new(into)], &remote).unwrap_or(0)
}

pub(crate) fn text(pid: Pid, address: u64) -> Option<Vec<u8>> {
    let mut at = usize::try_from(address).ok().filter(|at| *at != 0)?;
    let mut text = Vec::new();
    while text.len() < PATH_MAX {
        // Never across the end of a page: the next one may not be mapped.
        let mut chunk = vec![0; (PAGE - at % PAGE).min(PATH_MAX)];
        let got = memory(pid, at, &mut chunk);
        let chunk = chunk.get(..got).filter(|chunk| !chunk.is_empty())?;
        if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(chunk.get(..end)?);
            return Some(text);
        }
        text.extend_from_slice(chunk);
        at += got;
    }
    None
}

pub(crate) fn number(pid: Pid, address: u64) -> Option<u64> {
    bytes(pid, address).map(u64::from_ne_bytes)
}

/// The bytes at an address, as far as they are readable; the rest is zero.
pub(crate) fn bytes<const N: usize>(pid: Pid, address: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let got = memory(pid, usize::try_from(address).ok()?, &mut bytes);
    (got > 0).then_some(bytes)
}

/// The folder of `pid`, or the target of its descriptor.
pub(crate) fn folder_of(pid: Pid, descriptor: Option<i32>) -> Option<PathBuf> {
    let link = match descriptor {
        None => format!("/proc/{pid}/cwd"),
        Some(number) => format!("/proc/{pid}/fd/{number}"),
    };
    std::fs::read_link(link).ok()
}

/// The program of `pid`, and its arguments.
pub(crate) fn program_of(pid: Pid) -> Option<(PathBuf, Vec<String>)> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = arguments.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    Some((program, arguments.collect()))
}

pub(crate) fn variable_of(pid: Pid, name: &str) -> Option<OsString> {
    let all = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut pairs = all.split(|byte| *byte == 0);
    let value = pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(OsString::from_vec(value.to_vec()))
}

/// The process of the thread `pid`, and its parent.
pub(crate) fn family_of(pid: Pid) -> Option<(Pid, Pid)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok().map(Pid::from_raw)
    };
    Some((value("Tgid:")?, value("PPid:")?))
}
