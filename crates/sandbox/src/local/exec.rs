//! One command from start to end: a single loop over its streams and its guard.

use super::isolation::{LeftBehind, LoggedIn, Runtime, Workspace};
use super::link::GuardLink;
use super::request::{self, Prepared};
use super::{GuardTurn, Shared};
use crate::adopted;
use crate::os::End;
use crate::wire::{FromGuard, Received, ToGuard};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Pid, read};
use ralph_loop_domain::ports::{
    ExecEnd, ExecOutcome, ExecRequest, ExecSink, SandboxError, StopCause, Stream,
};
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest sleep: the sink is polled at least this often.
const TICK: Duration = Duration::from_millis(100);
/// The sink is polled at most this often, however much output comes.
const POLL_PAUSE: Duration = Duration::from_millis(50);
/// How much longer than its grace period a guard may take to report an end before it counts as lost.
const GUARD_LIMIT: Duration = Duration::from_secs(20);
const BUFFER: usize = 64 * 1024;
/// Most bytes left in a pipe after the end; with more, another process is writing to it.
const LEFT_IN_PIPE: usize = 32 * 1024 * 1024;

pub(super) fn exec(
    workspace: &Workspace,
    shared: &Shared,
    request: &ExecRequest,
    sink: &mut dyn ExecSink,
    seen: Option<&Path>,
) -> Result<ExecOutcome, SandboxError> {
    let started = Instant::now();
    let outcome = |end, survivors| Ok(ExecOutcome { end, duration: started.elapsed(), survivors });
    let mut turn = match shared.turn(sink) {
        ControlFlow::Continue(turn) => turn,
        ControlFlow::Break(cause) => return outcome(ExecEnd::Stopped(cause), 0),
    };
    let (prepared, after) = match prepare(workspace, shared, request, seen) {
        Ok(prepared) => prepared,
        Err(error) => {
            turn.give_back();
            return Err(error);
        }
    };
    spawn(&mut turn, &prepared)?;
    let (out, err) = prepared.sent();
    let mut command = Command::new(request, sink, [out, err]);
    let report = command.watch(turn.link()?);
    match report {
        WatchEnd::NotStarted(error) => {
            drop(after);
            turn.give_back();
            Err(error)
        }
        WatchEnd::Ended { alive: 0, end, survivors } => {
            command.drain();
            // The next command must not find a login.
            let tidied = after.map_or(Ok(()), AfterExec::finish);
            turn.give_back();
            tidied?;
            outcome(command.stopped.unwrap_or(end), survivors)
        }
        // A guard with an unkillable process below it isn't used again.
        WatchEnd::Ended { alive, .. } => Err(unkillable(alive)),
        WatchEnd::Lost => {
            if let Some(link) = turn.link.take() {
                link.end_by_force();
            }
            let cleared = adopted::clear(&shared.options.run_id, command.main);
            command.drain();
            if cleared.alive > 0 {
                return Err(unkillable(cleared.alive));
            }
            outcome(ExecEnd::GuardLost, cleared.killed)
        }
    }
}

fn prepare<'a>(
    workspace: &'a Workspace,
    shared: &'a Shared,
    request: &ExecRequest,
    seen: Option<&Path>,
) -> Result<(Prepared, Option<AfterExec<'a>>), SandboxError> {
    let Some(isolation) = shared.isolation.as_deref() else {
        return Ok((request::prepare(workspace, shared, request, seen)?, None));
    };
    // Before mount points are made in the home: some may be in an agent's folder.
    let login = isolation.log_in(request)?;
    let prepared = request::prepare(workspace, shared, request, seen)?;
    let after = AfterExec { isolation, workspace, left: prepared.left.clone(), done: false, _login: login };
    Ok((prepared, Some(after)))
}

/// Cleanup after a sandboxed command, however it ends: what it left for git, and its login.
struct AfterExec<'a> {
    isolation: &'a Runtime,
    workspace: &'a Workspace,
    left: LeftBehind,
    done: bool,
    _login: Option<LoggedIn<'a>>,
}

impl AfterExec<'_> {
    /// Fails if the command left something that can't be cleaned up.
    fn finish(mut self) -> Result<(), SandboxError> {
        self.done = true;
        self.isolation.command_ended(&self.workspace.host, &self.left)
    }
}

impl Drop for AfterExec<'_> {
    fn drop(&mut self) {
        if !self.done {
            let _ = self.isolation.command_ended(&self.workspace.host, &self.left);
        }
    }
}

fn unkillable(alive: u32) -> SandboxError {
    SandboxError::Broken(format!(
        "{alive} process(es) of the command could not be killed; they may hang in a system call (see `ps -el`)"
    ))
}

/// Sends the command to the guard; to a new one if the old one died since the last command.
fn spawn(turn: &mut GuardTurn<'_>, prepared: &Prepared) -> Result<(), SandboxError> {
    if turn.link()?.ask(ToGuard::Spawn, &prepared.fds()).is_ok() {
        return Ok(());
    }
    if let Some(link) = turn.link.take() {
        link.end_by_force();
    }
    turn.link()?
        .ask(ToGuard::Spawn, &prepared.fds())
        .map_err(|errno| SandboxError::Broken(format!("the guard cannot be reached: {}", errno.desc())))
}

enum WatchEnd {
    NotStarted(SandboxError),
    Ended { end: ExecEnd, survivors: u32, alive: u32 },
    Lost,
}

struct Command<'a> {
    request: &'a ExecRequest,
    sink: &'a mut dyn ExecSink,
    streams: [Option<OwnedFd>; 2],
    buffer: Vec<u8>,
    started: Instant,
    last_output: Instant,
    last_poll: Instant,
    /// Why the command must end, and when the guard must have reported that.
    stopped: Option<ExecEnd>,
    answer_by: Option<Instant>,
    /// Whether its grace period was cut short.
    hurried: bool,
    main: Option<Pid>,
}

impl<'a> Command<'a> {
    fn new(request: &'a ExecRequest, sink: &'a mut dyn ExecSink, streams: [OwnedFd; 2]) -> Self {
        let now = Instant::now();
        Self {
            request,
            sink,
            streams: streams.map(Some),
            buffer: vec![0; BUFFER],
            started: now,
            last_output: now,
            last_poll: now,
            stopped: None,
            answer_by: None,
            hurried: false,
            main: None,
        }
    }

    fn watch(&mut self, link: &GuardLink) -> WatchEnd {
        loop {
            let [out, err, guard] = self.sleep(link);
            if out {
                self.pass_on(0);
            }
            if err {
                self.pass_on(1);
            }
            if guard {
                match link.receive() {
                    Received::Packet(FromGuard::Exited { end, survivors, alive }, _) => {
                        let end = match end {
                            End::Code(code) => ExecEnd::Exited(code),
                            End::Signal(signal) => ExecEnd::Signaled(signal),
                        };
                        return WatchEnd::Ended { end, survivors, alive };
                    }
                    Received::Packet(FromGuard::Failed { stage, errno }, _) => {
                        return WatchEnd::NotStarted(request::why_not(self.request, stage, errno));
                    }
                    Received::Packet(FromGuard::Started { pid }, _) => self.main = Some(Pid::from_raw(pid)),
                    Received::Packet(FromGuard::Ready, _) | Received::Nothing => {}
                    Received::Closed => return WatchEnd::Lost,
                }
            }
            let now = Instant::now();
            if self.answer_by.is_some_and(|by| now >= by) {
                return WatchEnd::Lost;
            }
            let Some(end) = self.reason_to_stop(now) else { continue };
            if self.stopped.is_none() {
                self.stopped = Some(end);
                self.answer_by = Some(now + self.request.grace + GUARD_LIMIT);
                let grace_ms = u32::try_from(self.request.grace.as_millis()).unwrap_or(u32::MAX);
                if link.ask(ToGuard::Kill { grace_ms }, &[]).is_err() {
                    return WatchEnd::Lost;
                }
            } else if end == ExecEnd::Stopped(StopCause::Cancelled)
                && self.stopped != Some(end)
                && !self.hurried
            {
                // Asked again, urgently: no more grace period.
                self.hurried = true;
                link.ask(ToGuard::Kill { grace_ms: 0 }, &[]).ok();
            }
        }
    }

    fn sleep(&self, link: &GuardLink) -> [bool; 3] {
        let now = Instant::now();
        let mut limit = TICK;
        if self.stopped.is_none() {
            for deadline in [self.deadline(), self.idle_deadline()].into_iter().flatten() {
                // Rounded up: waking early would only mean another turn.
                limit = limit.min(deadline.saturating_duration_since(now) + Duration::from_millis(1));
            }
        }
        let timeout = PollTimeout::from(u8::try_from(limit.as_millis()).unwrap_or(100));
        let mut fds: [_; 3] = std::array::from_fn(|_| PollFd::new(link.socket(), PollFlags::POLLIN));
        // In place of a closed stream, polls the guard's socket again and ignores the answer.
        for (place, stream) in fds.iter_mut().zip(&self.streams) {
            if let Some(stream) = stream {
                *place = PollFd::new(stream.as_fd(), PollFlags::POLLIN);
            }
        }
        if poll(&mut fds, timeout).is_err() {
            return [false; 3];
        }
        let ready = fds.map(|fd| fd.revents().is_some_and(|events| !events.is_empty()));
        let open = |at: usize| self.streams.get(at).is_some_and(Option::is_some);
        [ready[0] && open(0), ready[1] && open(1), ready[2]]
    }

    /// Reads once from a stream; returns how much came, `None` at its end.
    fn pass_on(&mut self, at: usize) -> Option<usize> {
        let place = self.streams.get_mut(at)?;
        match read(place.as_ref()?, &mut self.buffer) {
            Ok(count) if count > 0 => {
                self.last_output = Instant::now();
                let stream = if at == 0 { Stream::Stdout } else { Stream::Stderr };
                self.sink.output(stream, self.buffer.get(..count).unwrap_or_default());
                Some(count)
            }
            Err(Errno::EINTR) => Some(0),
            Err(Errno::EAGAIN) => None,
            _ => {
                *place = None;
                None
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.request.timeout.and_then(|timeout| self.started.checked_add(timeout))
    }

    fn idle_deadline(&self) -> Option<Instant> {
        self.request.idle_timeout.and_then(|timeout| self.last_output.checked_add(timeout))
    }

    fn reason_to_stop(&mut self, now: Instant) -> Option<ExecEnd> {
        if now.duration_since(self.last_poll) >= POLL_PAUSE {
            self.last_poll = now;
            if let ControlFlow::Break(cause) = self.sink.poll() {
                return Some(ExecEnd::Stopped(cause));
            }
        }
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            return Some(ExecEnd::TimedOut);
        }
        self.idle_deadline().is_some_and(|deadline| now >= deadline).then_some(ExecEnd::IdleTimedOut)
    }

    /// Reads what is left in the pipes. All processes of the command are gone, so this ends soon; another process
    /// that was handed a pipe's other end isn't waited for.
    fn drain(&mut self) {
        for at in [0, 1] {
            if let Some(stream) = self.streams.get(at).and_then(Option::as_ref) {
                fcntl(stream, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).ok();
            }
            let mut left = LEFT_IN_PIPE;
            while let Some(count) = self.pass_on(at)
                && left > 0
            {
                left = left.saturating_sub(count);
            }
        }
    }
}
