//! The guard: a tiny process between `ralph` and the commands it runs.
//!
//! It adopts every orphan below it, so nothing that a command starts can escape by forking or with a new session. It
//! runs one command at a time and reports its end only when all its processes are gone. When `ralph` dies in any way,
//! the socket between them closes; the guard then kills everything, and only then exits, which releases the run's
//! lock. It has no threads and blocks every signal, so that neither a terminal nor `kill` ends it before its work is
//! done.

mod child;
mod deadline;
mod reap;

use crate::os::{self, Deaths, End, KillableMark};
use crate::wire::{self, FromGuard, Received, Stage, ToGuard};
use deadline::Deadline;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::socket::{getsockopt, sockopt};
use nix::sys::stat::{Mode, futimens};
use nix::sys::time::TimeSpec;
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, getpid, setsid};
use reap::Reaped;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// How long killing may take while a client waits for the answer.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// Pause between two scans for dying processes.
const RESCAN: Duration = Duration::from_millis(5);

/// Serves the socket with the number `socket_fd` until the other side closes it; returns the exit code.
///
/// The binary calls this before anything else when started as `ralph __guard <fd>`: earlier allocations would stay in
/// memory for the whole run. Closes all other descriptors, so this must own the process.
pub(crate) fn main(socket_fd: i32) -> i32 {
    match Guard::start(socket_fd) {
        Ok(guard) => guard.serve(),
        // The other side sees the socket close.
        Err(_) => 70,
    }
}

struct Guard {
    socket: OwnedFd,
    deaths: Deaths,
    me: Pid,
    mark: Option<KillableMark>,
    held: Vec<OwnedFd>,
    deadline: Option<Deadline>,
    job: Option<Job>,
}

struct Job {
    main: Pid,
    end: Option<End>,
    /// Set by `Kill`: when SIGKILL follows.
    until: Option<Instant>,
    killed: u32,
}

impl Guard {
    fn start(socket_fd: i32) -> nix::Result<Self> {
        let given = crate::os::raw::own(socket_fd)?;
        // Running the hidden command in a terminal gives an error, instead of closing descriptors.
        if getsockopt(&given, sockopt::SockType)? != os::SOCKET {
            return Err(nix::errno::Errno::EPROTOTYPE);
        }
        let socket = crate::os::raw::own(fcntl(&given, FcntlArg::F_DUPFD_CLOEXEC(3))?)?;
        drop(given);
        let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
        dup2_stdin(&null)?;
        dup2_stdout(&null)?;
        dup2_stderr(&null)?;
        // `null` may have got number 0; then there is nothing to close.
        if null.as_raw_fd() < 3 {
            std::mem::forget(null);
        }
        crate::os::raw::close_others(socket.as_raw_fd());
        crate::os::raw::default_signals();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)?;
        // A terminal's Ctrl-C goes to its foreground group. Fails only if we already lead a group.
        setsid().ok();
        crate::os::become_subreaper()?;
        crate::os::set_name(c"ralph-guard");
        // A guard must not keep a folder busy that the user wants to unmount.
        chdir("/")?;
        let deaths = Deaths::new()?;
        Ok(Self {
            socket,
            deaths,
            me: getpid(),
            mark: KillableMark::new(),
            held: Vec::new(),
            deadline: None,
            job: None,
        })
    }

    fn serve(mut self) -> i32 {
        if wire::answer(&self.socket, FromGuard::Ready).is_err() {
            return 1;
        }
        crate::os::raw::release_code_pages();
        loop {
            self.wait();
            if self.deadline.as_ref().is_some_and(Deadline::is_over) {
                // The driver may be frozen, so it isn't asked. Without a guard it starts nothing more.
                while self.clear() > 0 {}
                self.note_end();
                return 0;
            }
            let childless = self.collect();
            self.finish_if_over(childless);
            match wire::next_request(&self.socket) {
                Received::Nothing => {}
                Received::Packet(request, fds) => self.obey(request, fds),
                Received::Closed => {
                    // No time limit: the lock must not be released while anything lives.
                    while self.clear() > 0 {}
                    self.note_end();
                    return 0;
                }
            }
        }
    }

    /// Sleeps until a request, a death or the end of a grace period.
    fn wait(&self) {
        let grace = self.job.as_ref().and_then(|job| job.until);
        let grace = grace.map(|until| until.saturating_duration_since(Instant::now()));
        let lease = self.deadline.as_ref().map(Deadline::left);
        let look = self.job.as_ref().and(os::LOOK_EVERY);
        let timeout = match grace.into_iter().chain(lease).chain(look).min() {
            None => PollTimeout::NONE,
            Some(left) => PollTimeout::from(u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX)),
        };
        let mut fds = [
            PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.deaths.as_fd(), PollFlags::POLLIN),
        ];
        // After an interrupted or failed wait the loop just runs once more.
        poll(&mut fds, timeout).ok();
    }

    /// Reaps every dead child; true if no child is left, alive or dead.
    fn collect(&mut self) -> bool {
        self.deaths.forget();
        loop {
            match reap::one() {
                Reaped::Child(pid, end) => {
                    if let Some(job) = &mut self.job {
                        if pid == job.main {
                            job.end = Some(end);
                        } else if end == End::Signal(Signal::SIGKILL as i32) {
                            job.killed += 1;
                        }
                    }
                }
                Reaped::NoneDead => return false,
                Reaped::NoneLeft => return self.strays().is_empty(),
            }
        }
    }

    /// Processes of the command that are no longer below this process.
    fn strays(&self) -> Vec<Pid> {
        let main = self.job.as_ref().map(|job| job.main);
        os::strays(main, os::guard_mark(self.me).as_deref())
    }

    /// Reports the end of the command once all its processes are gone.
    fn finish_if_over(&mut self, childless: bool) {
        let Some(job) = &self.job else { return };
        let over = match job.until {
            // Ended without a request: its main process decides. Everything else was left behind.
            None => job.end.is_some(),
            // Asked to end: all of it may use the grace period, not only the main process, which is often just a
            // shell.
            Some(until) => childless || Instant::now() >= until,
        };
        if !over {
            return;
        }
        let alive = if childless { 0 } else { self.clear() };
        if let Some(job) = self.job.take() {
            let end = job.end.unwrap_or(End::Signal(Signal::SIGKILL as i32));
            let report = FromGuard::Exited { end, survivors: job.killed, alive };
            // If the client disconnected, the next receive says so.
            wire::answer(&self.socket, report).ok();
        }
    }

    /// Kills and reaps until no descendant is left; returns how many still live after the time limit.
    fn clear(&mut self) -> u32 {
        let deadline = Instant::now() + KILL_LIMIT;
        loop {
            if self.collect() {
                return 0;
            }
            reap::kill_below(self.me, self.strays());
            if Instant::now() >= deadline {
                return reap::alive_below(self.me).max(1);
            }
            wire::wait_readable(&self.deaths, RESCAN);
        }
    }

    /// Records in the held file that nothing of the run lives any more, as no other process may be left to do it.
    fn note_end(&self) {
        for file in &self.held {
            futimens(file, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW).ok();
        }
    }

    fn obey(&mut self, request: ToGuard, fds: Vec<OwnedFd>) {
        match request {
            ToGuard::Hold => self.held.extend(fds),
            ToGuard::Deadline => self.deadline = fds.into_iter().next().map(Deadline::new),
            ToGuard::Kill { grace_ms } => {
                let Some(job) = &mut self.job else { return };
                job.until = Some(Instant::now() + Duration::from_millis(grace_ms.into()));
                if grace_ms > 0 {
                    reap::ask_below(self.me);
                }
            }
            ToGuard::Spawn => {
                let mut fds = fds;
                let variables = if fds.len() == wire::SPAWN_FDS_MAX { fds.pop() } else { None };
                let reply = match (&self.job, <[OwnedFd; wire::SPAWN_FDS]>::try_from(fds)) {
                    (None, Ok(fds)) => child::spawn(self.me, self.mark.as_ref(), fds, variables),
                    _ => FromGuard::Failed { stage: Stage::Process, errno: nix::libc::EBUSY },
                };
                if let FromGuard::Started { pid } = reply {
                    self.job = Some(Job { main: Pid::from_raw(pid), end: None, until: None, killed: 0 });
                }
                wire::answer(&self.socket, reply).ok();
            }
        }
    }
}
