//! The guard as `ralph` sees it: a process and a socket.
#![allow(clippy::disallowed_methods, reason = "the home of the one process that starts all others")]

use super::LocalOptions;
use crate::wire::{self, FromGuard, Received, ToGuard};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{Shutdown, shutdown};
use nix::unistd::Pid;
use ralph_loop_domain::ports::SandboxError;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a guard may take to start, on a machine under heavy load.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long a guard may take to clean up when released.
const END_LIMIT: Duration = Duration::from_secs(12);

/// A running guard. Dropping it ends the guard and everything below it.
#[derive(Debug)]
pub(super) struct GuardLink {
    child: Child,
    socket: OwnedFd,
}

impl GuardLink {
    /// Starts a guard, waits until it is ready and passes it the lock.
    pub(super) fn start(options: &LocalOptions) -> Result<Self, SandboxError> {
        let broken = |what: &str, why: String| SandboxError::Broken(format!("{what}: {why}"));
        let (socket, theirs) = crate::os::socket_pair()
            .map_err(|errno| broken("no socket for the guard", errno.desc().to_owned()))?;
        let program = options.program()?;
        let mut command = Command::new(program);
        command
            .arg("__guard")
            // The socket becomes standard input: the only way to pass a descriptor without unsafe code.
            .arg("0")
            .arg0("ralph-guard")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Commands get their environment with the request; the guard needs none, and keeps no secret.
            .env_clear();
        for name in ["LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"] {
            if let Some(value) = options.vars.get_os(name) {
                command.env(name, value);
            }
        }
        let child = command.spawn().map_err(|error| {
            broken(&format!("the guard `{}` does not start", program.display()), error.to_string())
        })?;
        // The command still holds its end; a dead guard would go unnoticed.
        drop(command);
        let link = Self { child, socket };
        let deadline = Instant::now() + START_LIMIT;
        loop {
            match link.receive() {
                Received::Packet(FromGuard::Ready, _) => break,
                Received::Nothing if Instant::now() < deadline => {
                    wire::wait_readable(&link.socket, Duration::from_millis(100));
                }
                _ => {
                    link.kill();
                    return Err(broken(
                        "the guard didn't start",
                        format!("`{}` is not the program it should be", program.display()),
                    ));
                }
            }
        }
        if let Some(lock) = &options.lock_fd {
            link.ask(ToGuard::Hold, &[lock.as_fd()])
                .map_err(|errno| broken("the guard didn't receive the lock", errno.desc().to_owned()))?;
        }
        if let Some(lease) = &options.lease_fd {
            link.ask(ToGuard::Deadline, &[lease.as_fd()])
                .map_err(|errno| broken("the guard didn't receive the lease", errno.desc().to_owned()))?;
        }
        Ok(link)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn ask(&self, request: ToGuard, fds: &[BorrowedFd<'_>]) -> nix::Result<()> {
        wire::ask(&self.socket, request, fds)
    }

    pub(super) fn receive(&self) -> Received<FromGuard> {
        wire::next_report(&self.socket)
    }

    /// Kills a guard that is lost or doesn't answer, and waits for it: its orphans are then ours.
    pub(super) fn end_by_force(mut self) {
        self.kill();
        self.child.wait().ok();
    }

    fn kill(&self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
    }
}

impl Drop for GuardLink {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        // The guard sees the socket close, cleans up and exits, which releases the lock.
        shutdown(self.socket.as_raw_fd(), Shutdown::Write).ok();
        let deadline = Instant::now() + END_LIMIT;
        loop {
            match self.receive() {
                Received::Closed => break,
                _ if Instant::now() >= deadline => return,
                Received::Nothing => {
                    wire::wait_readable(&self.socket, Duration::from_millis(100));
                }
                Received::Packet(..) => {}
            }
        }
        self.child.wait().ok();
    }
}
