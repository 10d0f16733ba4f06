//! One command in a container, from start to end.

use super::engine::Engine;
use super::frames::Frames;
use super::http::Connection;
use crate::shell::output::{HeldOutput, KeptOutput};
use crate::shell::tree::{self, ProcessScope};
use crate::shell::{HELPER, MARK, ScriptOutput, Shell, new_mark, wrap};
use ralph_loop_domain::ports::{ExecEnd, ExecOutcome, ExecRequest, ExecSink, SandboxError, Stdin, Stream};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest sleep: the sink and the engine are polled at least this often.
const TICK: Duration = Duration::from_millis(100);
/// The sink is polled at most this often, however much output comes.
const POLL_PAUSE: Duration = Duration::from_millis(50);
/// How long the engine may take to notice an end, or to deliver the last output.
const END_LIMIT: Duration = Duration::from_secs(20);
const DRAIN_LIMIT: Duration = Duration::from_secs(3);
/// Processes beyond the limit, to have room for ending those that fill it.
const ROOM: i64 = 64;
const SCRIPT_LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct ExecTarget<'a> {
    pub(super) engine: &'a Engine,
    pub(super) name: &'a str,
    pub(super) root: &'a Path,
    pub(super) busy: &'a AtomicU32,
}

struct Busy<'a>(&'a AtomicU32);

impl<'a> Busy<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
    fn alone(&self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ExecTarget<'_> {
    /// Runs `request` to its end; nothing it started is alive afterwards.
    pub(super) fn exec(
        &self,
        request: &ExecRequest,
        sink: &mut dyn ExecSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let mark = new_mark();
        let argv = wrap::argv(self.root, request, &mark)?;
        let busy = Busy::new(self.busy);
        let started = Instant::now();
        let mut running = self.begin(&argv, &request.env, &mark, &request.stdin)?;
        let mut out = HeldOutput::new(sink, &mark, false);
        let end = running.watch(self.engine, request, &mut out)?;
        let whose = || ProcessScope::Command { mark: &mark, alone: busy.alone() };
        if end.is_some() {
            // If it fails (no room for a process), the next step makes up for it.
            let _ = tree::terminate(self, whose());
            running.wait(self.engine, request.grace, &mut out)?;
        }
        let survivors = self.kill(whose())?;
        if !running.wait(self.engine, END_LIMIT, &mut out)? {
            return Err(SandboxError::Broken(format!("a command in `{}` does not end", self.name)));
        }
        running.drain(&mut out);
        let state = self.engine.exec_state(&running.id)?;
        if let Some(error) = wrap::refused(request, &mark, &out.held) {
            return Err(error);
        }
        out.release(Stream::Stderr);
        let survivors = if end.is_some() { 0 } else { survivors };
        Ok(ExecOutcome {
            end: end.unwrap_or(ExecEnd::Exited(state.code)),
            duration: started.elapsed(),
            survivors,
        })
    }

    /// Ends processes, even if they have used up the container's process limit.
    pub(super) fn kill(&self, whose: ProcessScope<'_>) -> Result<u32, SandboxError> {
        let first = match tree::kill(self, whose) {
            Ok(count) => return Ok(count),
            Err(error) => error,
        };
        let limit =
            self.engine.inspect(self.name)?.and_then(|found| found["HostConfig"]["PidsLimit"].as_i64());
        let Some(limit) = limit.filter(|limit| *limit > 0) else { return Err(first) };
        self.engine.limit_processes(self.name, limit + ROOM)?;
        let again = tree::kill(self, whose);
        self.engine.limit_processes(self.name, limit)?;
        again
    }

    fn begin(
        &self,
        argv: &[String],
        env: &[(String, String)],
        mark: &str,
        stdin: &Stdin,
    ) -> Result<Running, SandboxError> {
        let mut all: Vec<String> = env
            .iter()
            .filter(|(name, _)| name != MARK)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        all.push(format!("{MARK}={mark}"));
        let body = json!({
            "AttachStdin": !matches!(stdin, Stdin::Empty),
            "AttachStdout": true,
            "AttachStderr": true,
            "Tty": false,
            "Env": all,
            "Cmd": argv,
            "WorkingDir": "/",
        });
        let id = self.engine.exec_create(self.name, &body)?;
        let (stream, early) = self.engine.exec_start(&id)?;
        let broken = |error: std::io::Error| SandboxError::Broken(format!("a command's streams: {error}"));
        stream.set_read_timeout(Some(TICK)).map_err(broken)?;
        feed(&stream, stdin).map_err(broken)?;
        let now = Instant::now();
        Ok(Running {
            id,
            stream,
            early,
            frames: Frames::default(),
            open: true,
            started: now,
            last_output: now,
        })
    }
}

impl Shell for ExecTarget<'_> {
    fn script(&self, script: &str, args: &[&str], stdin: &[u8]) -> Result<ScriptOutput, SandboxError> {
        let mut argv = ["sh", "-c", script, "sh"].map(String::from).to_vec();
        argv.extend(args.iter().map(|arg| (*arg).to_owned()));
        let stdin = if stdin.is_empty() { Stdin::Empty } else { Stdin::Bytes(stdin.to_vec()) };
        let mut running = self.begin(&argv, &[], HELPER, &stdin)?;
        let mut kept = KeptOutput::default();
        let deadline = Instant::now() + SCRIPT_LIMIT;
        loop {
            let quiet = running.read(&mut |stream, bytes| kept.output(stream, bytes));
            if (quiet || !running.open) && !self.engine.exec_state(&running.id)?.running {
                break;
            }
            if kept.too_long || Instant::now() > deadline {
                running.close();
                let what = if kept.too_long { "answers with more than 256 MiB" } else { "does not end" };
                return Err(SandboxError::Broken(format!("a helper in `{}` {what}", self.name)));
            }
        }
        let limit = Instant::now() + DRAIN_LIMIT;
        while running.open && Instant::now() < limit {
            running.read(&mut |stream, bytes| kept.output(stream, bytes));
        }
        running.close();
        let code = self.engine.exec_state(&running.id)?.code;
        Ok(ScriptOutput { code, stdout: kept.stdout, stderr: kept.stderr })
    }
}

/// Feeds the input concurrently: the command may read it late, or never.
fn feed(stream: &Connection, stdin: &Stdin) -> std::io::Result<()> {
    let mut input: Box<dyn std::io::Read + Send> = match stdin {
        Stdin::Empty => return Ok(()),
        Stdin::Bytes(bytes) => Box::new(std::io::Cursor::new(bytes.clone())),
        Stdin::File(path) => Box::new(std::fs::File::open(path)?),
    };
    let mut stream = stream.try_clone()?;
    std::thread::spawn(move || {
        // An error means that the command is gone, which its watcher sees.
        let _ = std::io::copy(&mut input, &mut stream).and_then(|_| stream.flush());
        stream.shutdown(Shutdown::Write);
    });
    Ok(())
}

struct Running {
    id: String,
    stream: Connection,
    early: Vec<u8>,
    frames: Frames,
    open: bool,
    started: Instant,
    last_output: Instant,
}

impl Running {
    /// Passes on new output; true if nothing came for a tick.
    fn read(&mut self, out: &mut dyn FnMut(Stream, &[u8])) -> bool {
        if !self.early.is_empty() {
            let early = std::mem::take(&mut self.early);
            self.frames.feed(&early, out);
            return false;
        }
        if !self.open {
            return true;
        }
        let mut buffer = [0u8; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.open = false,
            Ok(count) => {
                self.last_output = Instant::now();
                self.frames.feed(buffer.get(..count).unwrap_or_default(), out);
                return false;
            }
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return false,
            Err(_) => self.open = false,
        }
        true
    }

    /// Runs until the command ends (`None`) or must be ended.
    fn watch(
        &mut self,
        engine: &Engine,
        request: &ExecRequest,
        out: &mut HeldOutput<'_>,
    ) -> Result<Option<ExecEnd>, SandboxError> {
        let mut last_poll: Option<Instant> = None;
        loop {
            let quiet = self.read(&mut |stream, bytes| out.output(stream, bytes));
            let now = Instant::now();
            if last_poll.is_none_or(|last| now.duration_since(last) >= POLL_PAUSE) {
                last_poll = Some(now);
                if let ControlFlow::Break(cause) = out.poll() {
                    return Ok(Some(ExecEnd::Stopped(cause)));
                }
            }
            if quiet && !engine.exec_state(&self.id)?.running {
                return Ok(None);
            }
            if !self.open {
                // It closed its streams but runs on: nothing else paces this loop.
                pause();
            }
            if request.timeout.is_some_and(|limit| now.duration_since(self.started) >= limit) {
                return Ok(Some(ExecEnd::TimedOut));
            }
            if request.idle_timeout.is_some_and(|limit| now.duration_since(self.last_output) >= limit) {
                return Ok(Some(ExecEnd::IdleTimedOut));
            }
        }
    }

    /// Waits at most this long for its end; returns whether it ended.
    fn wait(
        &mut self,
        engine: &Engine,
        limit: Duration,
        out: &mut HeldOutput<'_>,
    ) -> Result<bool, SandboxError> {
        let begun = Instant::now();
        loop {
            if !engine.exec_state(&self.id)?.running {
                return Ok(true);
            }
            if begun.elapsed() >= limit {
                return Ok(false);
            }
            self.read(&mut |stream, bytes| out.output(stream, bytes));
            if !self.open {
                pause();
            }
        }
    }

    /// Reads the last output. All its processes are gone, so this ends soon.
    fn drain(&mut self, out: &mut HeldOutput<'_>) {
        let limit = Instant::now() + DRAIN_LIMIT;
        while self.open && Instant::now() < limit {
            self.read(&mut |stream, bytes| out.output(stream, bytes));
        }
        self.close();
    }

    fn close(&mut self) {
        self.open = false;
        self.stream.shutdown(Shutdown::Both);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.close();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "waits between two requests to the engine; the sink can stop it in between"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
