//! The few calls that the compiler can't check: starting a process, raw descriptors. System-specific ones are in
//! `linux_raw.rs` and `macos_raw.rs`.
#![allow(unsafe_code, reason = "starting a process and descriptors by number have no safe form")]

#[cfg(target_os = "linux")]
pub(crate) use super::linux_raw::{
    close_others, default_signals, drop_capabilities, landlock_abi, release_code_pages, session_keyring,
    spawn_tracer,
};
#[cfg(target_os = "macos")]
pub(crate) use super::macos_raw::{
    close_others, default_signals, landlock_abi, release_code_pages, spawn_tracer,
};

use super::End;
use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

/// A program with its arguments and environment, laid out for the kernel.
pub(crate) struct Program<'a> {
    files: Vec<CString>,
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    texts: PhantomData<&'a CStr>,
}

impl<'a> Program<'a> {
    /// The caller tries `files` in order.
    pub(crate) fn new(files: Vec<CString>, argv: &[&'a CStr], env: &[&'a CStr]) -> Self {
        let pointers =
            |texts: &[&CStr]| texts.iter().map(|t| t.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>();
        Self { files, argv: pointers(argv), env: pointers(env), texts: PhantomData }
    }

    pub(crate) fn files(&self) -> &[CString] {
        &self.files
    }

    /// Becomes `file`; returns only on failure. Allocates nothing.
    pub(crate) fn run(&self, file: &CStr) -> Errno {
        // SAFETY: `file` and all texts end with NUL and outlive the call (`'a`); both lists end with a null pointer.
        unsafe { libc::execve(file.as_ptr(), self.argv.as_ptr(), self.env.as_ptr()) };
        Errno::last()
    }
}

/// Takes a descriptor by its number; refuses a closed number.
///
/// The caller must be the only owner of that number from now on.
pub(crate) fn own(number: RawFd) -> nix::Result<OwnedFd> {
    // SAFETY: asking for the flags of any number is harmless; a closed or negative one answers EBADF.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the number is open (checked above), and callers pass one without another owner: a descriptor just
    // received in a message, or the one the guard was started with.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Puts a copy of `fd` at `number`, open for the program that this process becomes. Closes what was there, so this is
/// for a child that only makes system calls until then.
pub(crate) fn put_at(fd: &OwnedFd, number: RawFd) -> nix::Result<()> {
    let from = fd.as_raw_fd();
    // SAFETY: only numbers are passed; a closed one answers EBADF. The caller owns no descriptor `number` that it still uses.
    let done = unsafe {
        if from == number { libc::fcntl(from, libc::F_SETFD, 0) } else { libc::dup2(from, number) }
    };
    Errno::result(done).map(drop)
}

/// Reaps any dead child without blocking; `None` if none is dead.
///
/// Not nix's `waitpid`: it reaps a child that died of a real-time signal and then returns an error.
pub(crate) fn wait_any() -> nix::Result<Option<(Pid, End)>> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    if Errno::result(pid)? == 0 {
        return Ok(None);
    }
    let end = if libc::WIFSIGNALED(status) {
        End::Signal(libc::WTERMSIG(status))
    } else {
        End::Code(libc::WEXITSTATUS(status))
    };
    Ok(Some((Pid::from_raw(pid), end)))
}
