//! Checks and advice as async closures of the calling program.

use super::jobs::{Caught, Filler, ask, receive};
use super::turn::Turn;
use crate::clock::SystemClock;
use crate::help::{StuckAdvisor, StuckContext};
use ralph_loop_domain::ports::{
    Clock as _, CustomCheck, ExecEnd, ExecRequest, ExecSink, Sandbox, StopCause, Stream,
};
use std::future::Future;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// Output limit per stream of a check's command.
const OUTPUT_MAX: usize = 4 * 1024 * 1024;
/// Default timeout for a check's command and for advice.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

type Verdict = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
type Advice = Pin<Box<dyn Future<Output = Option<String>> + Send>>;
pub(super) type CheckFn = Arc<dyn Fn(CheckContext) -> Verdict + Send + Sync>;
pub(super) type AdviceFn = Arc<dyn Fn(StuckContext) -> Advice + Send + Sync>;

/// A condition implemented by the caller.
pub(super) struct OwnCheck {
    /// Verifier name.
    pub(super) name: String,
    pub(super) check: CheckFn,
    pub(super) timeout: Duration,
}

/// Boxes a check's closure.
pub(super) fn check_fn<F, Fut>(check: F) -> CheckFn
where
    F: Fn(CheckContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), String>> + Send + 'static,
{
    Arc::new(move |context| Box::pin(check(context)))
}

/// Boxes an advisor's closure.
pub(super) fn advice_fn<F, Fut>(advise: F) -> AdviceFn
where
    F: Fn(StuckContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Option<String>> + Send + 'static,
{
    Arc::new(move |context| Box::pin(advise(context)))
}

/// Files and commands of the checked tree: the agent's files, at the end a clean checkout. The driving thread
/// performs the calls, so none blocks the caller's runtime.
#[derive(Clone, Debug)]
pub struct CheckContext {
    to_driver: Sender<Request>,
}

/// The result of a check's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit code; `None` if it was killed.
    pub code: Option<i32>,
    /// The end of stdout.
    pub stdout: String,
    /// The end of stderr.
    pub stderr: String,
}

impl CommandOutput {
    /// Whether it exited with 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

enum Request {
    Exec(Vec<String>, Filler<Result<CommandOutput, String>>),
    Read(PathBuf, Filler<Result<Option<Vec<u8>>, String>>),
    List(PathBuf, Filler<Result<Vec<String>, String>>),
    Done(Result<(), String>),
}

/// Error for a check whose run ended first.
const GIVEN_UP: &str = "the run ended before this check did";

impl CheckContext {
    /// Runs a command, given as program and arguments.
    pub async fn exec(&self, argv: &[&str]) -> Result<CommandOutput, String> {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        if argv.is_empty() {
            return Err("there is no command".to_owned());
        }
        ask(&self.to_driver, |to| Request::Exec(argv, to)).await.unwrap_or_else(|| Err(GIVEN_UP.into()))
    }

    /// A file's bytes; `None` if it doesn't exist.
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<Option<Vec<u8>>, String> {
        let path = path.as_ref().to_owned();
        ask(&self.to_driver, |to| Request::Read(path, to)).await.unwrap_or_else(|| Err(GIVEN_UP.into()))
    }

    /// The names in a folder, sorted.
    pub async fn list(&self, path: impl AsRef<Path>) -> Result<Vec<String>, String> {
        let path = path.as_ref().to_owned();
        ask(&self.to_driver, |to| Request::List(path, to)).await.unwrap_or_else(|| Err(GIVEN_UP.into()))
    }
}

/// Error for a check that panicked; its run is suspended.
const BROKE: &str = "the check broke";

/// Adapts an async closure to the engine's check trait.
pub(super) struct AsyncCheck {
    pub(super) check: CheckFn,
    pub(super) timeout: Duration,
    pub(super) turn: Turn,
}

impl CustomCheck for AsyncCheck {
    fn check(&self, sandbox: &dyn Sandbox) -> Result<(), String> {
        let (to_driver, requests) = mpsc::channel();
        let (check, turn, clock) = (Arc::clone(&self.check), self.turn.clone(), SystemClock::default());
        let is_late = || clock.elapsed() >= self.timeout;
        let ends = || self.turn.is_aborted() || is_late();
        // All senders drop with this future, which ends the wait.
        let _waited = self.turn.jobs.spawn(async move {
            let context = CheckContext { to_driver: to_driver.clone() };
            let verdict = Caught::new(async move { check(context).await }).await.unwrap_or_else(|panic| {
                turn.note_panic(&*panic);
                Err(BROKE.into())
            });
            let _ = to_driver.send(Request::Done(verdict));
        });
        let verdict = loop {
            match receive(&requests, &ends) {
                Some(Request::Done(verdict)) => break verdict,
                Some(Request::Exec(argv, to)) => to.fill(exec(sandbox, argv, &ends)),
                Some(Request::Read(path, to)) => to.fill(sandbox.read(&path).map_err(|e| e.to_string())),
                Some(Request::List(path, to)) => to.fill(sandbox.list(&path).map_err(|e| e.to_string())),
                None => break Err(GIVEN_UP.into()),
            }
        };
        match verdict {
            Err(_) if is_late() => {
                Err(format!("no end after {}", ralph_loop_protocol::display::text::duration(self.timeout)))
            }
            verdict => verdict,
        }
    }
}

fn exec(sandbox: &dyn Sandbox, argv: Vec<String>, ends: &dyn Fn() -> bool) -> Result<CommandOutput, String> {
    let mut request = ExecRequest::new(argv);
    request.timeout = Some(TIMEOUT);
    let mut sink = OutputSink { streams: [Vec::new(), Vec::new()], ends };
    let outcome = sandbox.exec(&request, &mut sink).map_err(|error| error.to_string())?;
    match outcome.end {
        ExecEnd::TimedOut => {
            return Err(format!("no end after {}", ralph_loop_protocol::display::text::duration(TIMEOUT)));
        }
        ExecEnd::Stopped(_) => return Err(GIVEN_UP.into()),
        _ => {}
    }
    let [stdout, stderr] = sink.streams.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(CommandOutput { code: outcome.end.code(), stdout, stderr })
}

struct OutputSink<'a> {
    streams: [Vec<u8>; 2],
    ends: &'a dyn Fn() -> bool,
}

impl ExecSink for OutputSink<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let kept = &mut self.streams[usize::from(stream == Stream::Stderr)];
        kept.extend_from_slice(bytes);
        // Cut rarely, so that a flood of output isn't moved with every piece.
        if kept.len() > 2 * OUTPUT_MAX {
            kept.drain(..kept.len() - OUTPUT_MAX);
        }
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        if (self.ends)() { ControlFlow::Break(StopCause::Cancelled) } else { ControlFlow::Continue(()) }
    }
}

#[derive(Clone)]
pub(super) struct Advisor {
    pub(super) advise: Option<AdviceFn>,
    pub(super) timeout: Duration,
}

impl Default for Advisor {
    fn default() -> Self {
        Self { advise: None, timeout: TIMEOUT }
    }
}

/// Adapts an async closure to the engine's advisor trait.
pub(super) struct AsyncAdvisor {
    pub(super) advise: AdviceFn,
    pub(super) timeout: Duration,
    pub(super) turn: Turn,
}

impl StuckAdvisor for AsyncAdvisor {
    fn advise(&self, context: &StuckContext) -> Option<String> {
        self.ask(context).unwrap_or_default()
    }

    fn ask(&self, context: &StuckContext) -> Result<Option<String>, String> {
        let (advise, context, turn) = (Arc::clone(&self.advise), context.clone(), self.turn.clone());
        let clock = SystemClock::default();
        let is_late = || clock.elapsed() >= self.timeout;
        let ends = || self.turn.is_aborted() || is_late();
        let advice = async move {
            Caught::new(async move { advise(context).await }).await.unwrap_or_else(|panic| {
                turn.note_panic(&*panic);
                None
            })
        };
        match self.turn.jobs.wait_for(advice, &ends) {
            None if is_late() => Err(format!(
                "`on_stuck` gave no answer within {}",
                ralph_loop_protocol::display::text::duration(self.timeout)
            )),
            advice => Ok(advice.flatten()),
        }
    }
}
