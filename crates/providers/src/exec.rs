//! Runs one command.
//!
//! A script starts it under a runner inside; further scripts wait for output and for the end. Every call may be
//! repeated, so a broken connection loses nothing.
#![allow(clippy::disallowed_methods, reason = "the time of a command is measured here")]

use crate::error::ProviderError;
use crate::http::{VendorClient, never_stop};
use crate::machine::Machine;
use crate::{paths, script};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ralph_loop_domain::ports::{
    ExecEnd, ExecOutcome, ExecRequest, ExecSink, SandboxError, Stdin, StopCause, Stream,
};
use ralph_loop_http::random_word;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

const STDIN_MAX: u64 = 64 * 1024 * 1024;
/// How long to wait for a killed command's end.
const END: Duration = Duration::from_secs(30);

pub(crate) struct ExecContext<'a, M> {
    pub machine: &'a M,
    pub http: &'a VendorClient,
    pub root: &'a Path,
    pub orphan_after: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    TimedOut,
    Idle,
    Stopped(StopCause),
}

pub(crate) fn exec<M: Machine>(
    context: &ExecContext<'_, M>,
    request: &ExecRequest,
    sink: &mut dyn ExecSink,
) -> Result<ExecOutcome, SandboxError> {
    let cwd = paths::inside(context.root, &request.cwd)?;
    let program = request.argv.first().cloned().unwrap_or_default();
    let cannot = |reason: String| SandboxError::CannotStart { program: program.clone(), reason };
    if program.is_empty() {
        return Err(cannot("the command is empty".into()));
    }
    if let Some((name, _)) = request.env.iter().find(|(name, _)| !is_name(name)) {
        return Err(cannot(format!("`{name}` isn't a valid variable name")));
    }
    if request.argv.iter().chain(request.env.iter().map(|(_, value)| value)).any(|word| word.contains('\0')) {
        return Err(cannot("an argument contains a NUL byte".into()));
    }
    let started = Instant::now();
    let sink: &mut dyn ExecSink = &mut Heard { sink, said: None };
    if let ControlFlow::Break(cause) = sink.poll() {
        return Ok(ExecOutcome { end: ExecEnd::Stopped(cause), duration: started.elapsed(), survivors: 0 });
    }
    let token = random_word();
    let stdin = stdin(&request.stdin).map_err(cannot)?;
    let mut run = || -> Result<ExecOutcome, ProviderError> {
        let folder = script::folder(&token);
        if let Some(bytes) = &stdin {
            context.machine.put(context.http, &format!("{folder}/stdin"), bytes, None)?;
        }
        let command = script::Command {
            token: &token,
            argv: &request.argv,
            cwd: &cwd,
            env: &request.env,
            stdin: stdin.is_some(),
        };
        context.machine.put(
            context.http,
            &format!("{folder}/run"),
            script::runner(&command).as_bytes(),
            None,
        )?;
        let mut running = Running {
            context,
            token: &token,
            started: Instant::now(),
            last_output: Instant::now(),
            last_sign: Instant::now(),
            read: [0, 0],
            launched: false,
        };
        running.follow(request, sink)
    };
    let ran = run();
    // Nothing of it may stay; if even this fails, the watch inside cleans up.
    let _ = context.machine.shell(context.http, &script::clear(&token), &mut never_stop);
    let outcome = ran?;
    if let ExecEnd::Exited(code @ (126 | 127)) = outcome.end {
        let look = format!(
            "cd {} 2>/dev/null || exit 3; command -v {} >/dev/null || exit 4",
            script::quoted(&cwd),
            script::quoted(&program)
        );
        match context.machine.shell(context.http, &look, &mut never_stop)?.code {
            3 => return Err(cannot(format!("there is no folder `{}`", request.cwd.display()))),
            4 if code == 127 => return Err(cannot("there is no such program".into())),
            4 => return Err(cannot("it is not executable".into())),
            _ => {}
        }
    }
    Ok(outcome)
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn stdin(stdin: &Stdin) -> Result<Option<Vec<u8>>, String> {
    let bytes = match stdin {
        Stdin::Empty => return Ok(None),
        Stdin::Bytes(bytes) => bytes.clone(),
        Stdin::File(path) => {
            let failed =
                |e: std::io::Error| format!("standard input `{}` cannot be read: {e}", path.display());
            if std::fs::metadata(path).map_err(failed)?.len() > STDIN_MAX {
                return Err(format!("standard input `{}` is larger than 64 MiB", path.display()));
            }
            std::fs::read(path).map_err(failed)?
        }
    };
    Ok(Some(bytes))
}

#[derive(Debug)]
struct News {
    end: Option<Ended>,
    bytes: [Vec<u8>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Code { code: i32, survivors: u32 },
    Lost,
}

struct Running<'a, M> {
    context: &'a ExecContext<'a, M>,
    token: &'a str,
    started: Instant,
    last_output: Instant,
    last_sign: Instant,
    /// How much of both streams was passed on.
    read: [u64; 2],
    launched: bool,
}

impl<M: Machine> Running<'_, M> {
    fn follow(
        &mut self,
        request: &ExecRequest,
        sink: &mut dyn ExecSink,
    ) -> Result<ExecOutcome, ProviderError> {
        loop {
            if let Some(ended) = self.wait(Some(request), sink)? {
                return Ok(self.outcome(ended, None));
            }
            if let Some(cut) = self.due(request, sink) {
                let ended = self.cut(request.grace, sink)?;
                return Ok(self.outcome(ended, Some(cut)));
            }
            self.keep_alive();
        }
    }

    fn due(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Option<Cut> {
        if let ControlFlow::Break(cause) = sink.poll() {
            return Some(Cut::Stopped(cause));
        }
        if request.timeout.is_some_and(|limit| self.started.elapsed() >= limit) {
            return Some(Cut::TimedOut);
        }
        request.idle_timeout.is_some_and(|limit| self.last_output.elapsed() >= limit).then_some(Cut::Idle)
    }

    /// Waits for news and passes output on. `None` while it runs, or when it must end. Without a request, only the
    /// end counts.
    fn wait(
        &mut self,
        request: Option<&ExecRequest>,
        sink: &mut dyn ExecSink,
    ) -> Result<Option<Ended>, ProviderError> {
        let mut script = script::wait(self.token, self.read[0], self.read[1]);
        if !self.launched {
            // The first wait starts it; repeating that starts it only once.
            script = script::launch(self.token, self.context.orphan_after) + &script;
        }
        let asked = {
            let mut watch = || match request {
                Some(request) if self.due(request, sink).is_some() => ControlFlow::Break(()),
                Some(_) => ControlFlow::Continue(()),
                None => {
                    let _ = sink.poll();
                    ControlFlow::Continue(())
                }
            };
            self.context.machine.shell(self.context.http, &script, &mut watch)
        };
        let shell = match asked {
            Ok(shell) => shell,
            Err(ProviderError::Cut) => return Ok(None),
            Err(error) => return Err(error),
        };
        self.launched = true;
        let news =
            news(&shell.out).map_err(|reason| self.context.http.garbled("wait for a command", reason))?;
        let mut all = true;
        for (index, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            let bytes = &news.bytes[index];
            all &= (bytes.len() as u64) < script::CHUNK;
            self.read[index] += bytes.len() as u64;
            if !bytes.is_empty() {
                self.last_output = Instant::now();
                sink.output(stream, bytes);
            }
        }
        Ok(news.end.filter(|_| all))
    }

    /// Ends it: SIGTERM, then SIGKILL.
    fn cut(&mut self, grace: Duration, sink: &mut dyn ExecSink) -> Result<Ended, ProviderError> {
        for (signal, time) in [("TERM", grace), ("KILL", END)] {
            let machine = self.context.machine;
            machine.shell(self.context.http, &script::signal(self.token, signal), &mut || {
                let _ = sink.poll();
                ControlFlow::Continue(())
            })?;
            let end = Instant::now() + time;
            let mut last = false;
            while !last {
                last = Instant::now() >= end;
                if let Some(ended) = self.wait_until(end, sink)? {
                    return Ok(ended);
                }
            }
        }
        Ok(Ended::Lost)
    }

    /// Like [`Running::wait`], but not beyond `end`.
    fn wait_until(&mut self, end: Instant, sink: &mut dyn ExecSink) -> Result<Option<Ended>, ProviderError> {
        let mut limited = ExecRequest::new(Vec::new());
        limited.timeout = Some(
            end.saturating_duration_since(self.started)
                .max(self.started.elapsed() + Duration::from_millis(300)),
        );
        self.wait(Some(&limited), &mut Deaf(sink))
    }

    /// A refused extension (the vendor's time limit) doesn't end the command.
    fn keep_alive(&mut self) {
        if self.last_sign.elapsed() >= self.context.machine.keep_alive_every() {
            self.last_sign = Instant::now();
            let _ = self.context.machine.keep_alive(self.context.http);
        }
    }

    fn outcome(&self, ended: Ended, cut: Option<Cut>) -> ExecOutcome {
        let (end, survivors) = match (cut, ended) {
            (Some(Cut::TimedOut), _) => (ExecEnd::TimedOut, ended),
            (Some(Cut::Idle), _) => (ExecEnd::IdleTimedOut, ended),
            (Some(Cut::Stopped(cause)), _) => (ExecEnd::Stopped(cause), ended),
            (None, Ended::Lost) => (ExecEnd::GuardLost, ended),
            // The waiting shell encodes a signal this way.
            (None, Ended::Code { code, .. }) if (129..=192).contains(&code) => {
                (ExecEnd::Signaled(code - 128), ended)
            }
            (None, Ended::Code { code, .. }) => (ExecEnd::Exited(code), ended),
        };
        let survivors = match survivors {
            Ended::Code { survivors, .. } => survivors,
            Ended::Lost => 0,
        };
        ExecOutcome { end, duration: self.started.elapsed(), survivors }
    }
}

/// Keeps the sink's request to end: it may come only once, in the middle of a call.
struct Heard<'a> {
    sink: &'a mut dyn ExecSink,
    said: Option<StopCause>,
}

impl ExecSink for Heard<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.sink.output(stream, bytes);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if let ControlFlow::Break(cause) = self.sink.poll() {
            self.said = Some(cause);
        }
        self.said.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}

/// A sink that can no longer end the command, because it is ending.
struct Deaf<'a>(&'a mut dyn ExecSink);

impl ExecSink for Deaf<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.0.output(stream, bytes);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        let _ = self.0.poll();
        ControlFlow::Continue(())
    }
}

fn news(text: &str) -> Result<News, String> {
    let line = |mark: &str| text.lines().find_map(|line| line.strip_prefix(mark)).map(str::trim);
    let said = line("c ").ok_or_else(|| {
        format!("no state in `{}`", ralph_loop_protocol::display::text::one_line(text, 120))
    })?;
    let end = match said.split_once(' ') {
        None if said == "-" => None,
        None if said == "lost" || said == "gone" => Some(Ended::Lost),
        Some((code, left)) => Some(Ended::Code {
            code: code.parse().map_err(|_| format!("`{code}` isn't an exit code"))?,
            survivors: left.trim().parse().unwrap_or(0),
        }),
        None => return Err(format!("`{said}` isn't a known state")),
    };
    let bytes = |mark: &str| match line(mark) {
        None | Some("") => Ok(Vec::new()),
        Some(coded) => STANDARD.decode(coded).map_err(|e| format!("output is garbled: {e}")),
    };
    Ok(News { end, bytes: [bytes("o ")?, bytes("e ")?] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_wait_is_parsed() {
        let some = news("c -\no aGk=\ne \n").unwrap();
        assert_eq!((some.end, some.bytes), (None, [b"hi".to_vec(), Vec::new()]));
        let over = news("c 7 2\no \ne aGk=\n").unwrap();
        assert_eq!(over.end, Some(Ended::Code { code: 7, survivors: 2 }));
        assert_eq!(news("c lost\no \ne \n").unwrap().end, Some(Ended::Lost));
        assert_eq!(news("sh: not found").unwrap_err(), "no state in `sh: not found`");
        assert!(news("c -\no ???\n").unwrap_err().starts_with("output is garbled"));
    }

    #[test]
    fn variable_names_cannot_smuggle_commands() {
        assert!(is_name("A_b1"));
        for bad in ["", "1a", "a b", "a;b", "a=$(x)"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
