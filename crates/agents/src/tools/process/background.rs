//! A command that runs beside the session, in a thread and a lane of its own, with the end of its output in memory.

use super::address;
use super::requests;
use crate::bounded::Tail;
use ralph_domain::ports::{ExecEnd, ExecRequest, ExecSink, Sandbox, StopCause, Stream};
use ralph_domain::redact::{RedactStream, Redactor};
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Output that is kept of each process.
const KEPT: usize = 128 * 1024;
/// Addresses are looked for in this much of the newest output.
const LOOKED_AT: usize = 4 * 1024;
/// How often it is looked whether somebody talks to the process.
const REQUESTS_EVERY: Duration = Duration::from_secs(5);

/// How a background command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself or by us.
    Exec(ExecEnd),
    /// It could not be started, or the sandbox broke.
    Failed(String),
}

impl Ended {
    /// Whether nothing went wrong.
    pub(crate) fn fine(&self) -> bool {
        matches!(self, Self::Exec(ExecEnd::Exited(0) | ExecEnd::Stopped(_)))
    }
    /// In words, after the name of the process.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Exec(ExecEnd::Exited(code)) => format!("exited with code {code}"),
            Self::Exec(ExecEnd::Signaled(signal)) => format!("was ended by signal {signal}"),
            Self::Exec(ExecEnd::Stopped(_)) => "was stopped".to_owned(),
            Self::Exec(_) => "was lost".to_owned(),
            Self::Failed(why) => why.clone(),
        }
    }
}

/// A command in the background. Dropping it ends the command and everything it started.
#[derive(Debug)]
pub(crate) struct Background {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its owner share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// What is known of it.
#[derive(Debug)]
pub(crate) struct State {
    stop: bool,
    tail: Tail,
    clean: [RedactStream; 2],
    /// When it last printed something or somebody talked to it.
    pub(crate) active: Instant,
    /// The address that it printed.
    pub(crate) url: Option<String>,
    /// How it ended.
    pub(crate) ended: Option<Ended>,
}

impl State {
    /// The end of its output.
    pub(crate) fn output(&self) -> String {
        self.tail.text()
    }
}

impl Shared {
    /// What is known right now.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits for news, not longer than `limit`.
    pub(crate) fn news(&self, limit: Duration) {
        let state = self.state();
        drop(self.changed.wait_timeout(state, limit));
    }
}

impl Background {
    /// Starts `request` in `lane`.
    pub(crate) fn start(
        lane: Box<dyn Sandbox>,
        request: ExecRequest,
        redactor: Arc<Redactor>,
    ) -> Result<Self, String> {
        let state = State {
            stop: false,
            tail: Tail::new(KEPT),
            clean: <[RedactStream; 2]>::default(),
            active: Instant::now(),
            url: None,
            ended: None,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let body = move || {
            let mut sink = Sink { shared: &theirs, redactor: &redactor, looked: Instant::now() };
            let ended = match lane.exec(&request, &mut sink) {
                Ok(outcome) => Ended::Exec(outcome.end),
                Err(error) => Ended::Failed(error.to_string()),
            };
            sink.rest();
            // The lane's guard is gone before anybody hears of the end.
            drop(lane);
            theirs.state().ended = Some(ended);
            theirs.changed.notify_all();
        };
        let thread = std::thread::Builder::new()
            .name("ralph-process".to_owned())
            .spawn(body)
            .map_err(|error| format!("no thread could be made for it: {error}"))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// A view that lives as long as somebody looks.
    pub(crate) fn view(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Tells it to end, without waiting.
    pub(crate) fn tell_to_stop(&self) {
        self.shared.state().stop = true;
    }

    /// Ends it, politely first, and waits until nothing of it lives.
    pub(crate) fn stop(&mut self) {
        self.tell_to_stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has dropped its lane, which ends the command.
            thread.join().ok();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Sink<'a> {
    shared: &'a Shared,
    redactor: &'a Redactor,
    looked: Instant,
}

impl Sink<'_> {
    fn keep(&self, state: &mut State, bytes: &[u8]) {
        state.tail.push(bytes);
        if state.url.is_none() && !bytes.is_empty() {
            let text = state.tail.text();
            state.url = address::find(ralph_domain::text::tail(&text, bytes.len() + LOOKED_AT));
        }
    }

    /// What was held back as the possible beginning of a secret.
    fn rest(&self) {
        let mut state = self.shared.state();
        for at in 0..state.clean.len() {
            let rest = state.clean.get_mut(at).map(|clean| clean.finish(self.redactor)).unwrap_or_default();
            self.keep(&mut state, &rest);
        }
    }
}

impl ExecSink for Sink<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let mut state = self.shared.state();
        state.active = Instant::now();
        let at = usize::from(stream == Stream::Stderr);
        let clean = state.clean.get_mut(at).map(|clean| clean.push(self.redactor, bytes)).unwrap_or_default();
        self.keep(&mut state, &clean);
        drop(state);
        self.shared.changed.notify_all();
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        let now = Instant::now();
        let mut state = self.shared.state();
        if state.stop {
            return ControlFlow::Break(StopCause::Cancelled);
        }
        if now.duration_since(self.looked) >= REQUESTS_EVERY {
            self.looked = now;
            if let Some(port) = state.url.as_deref().and_then(address::port)
                && requests::any(port)
            {
                state.active = now;
            }
        }
        ControlFlow::Continue(())
    }
}
