//! A background command in a thread with its own connection, with the end of its output in memory.

use super::address;
use super::ready::Signal;
use super::requests;
use crate::bounded::Tail;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, ExecSink, Sandbox, StopCause, Stream};
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const KEPT: usize = 128 * 1024;
/// How much earlier output is searched together with each new piece.
const RECENT: usize = 2 * 1024;
/// Only the beginning is searched for a URL; a watcher that prints for hours shows none later.
const ADDRESS_WITHIN: u64 = 1024 * 1024;
/// How often to check for connections to the process.
const REQUESTS_EVERY: Duration = Duration::from_secs(5);

/// How a background command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// On its own or by us.
    Exec(ExecEnd),
    /// It couldn't be started, or the sandbox broke.
    Failed(String),
}

impl ProcessEnd {
    /// Whether nothing went wrong.
    pub(crate) fn fine(&self) -> bool {
        matches!(self, Self::Exec(ExecEnd::Exited(0) | ExecEnd::Stopped(_)))
    }
    /// As text, to follow the name of the process.
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

/// A background command. Dropping it ends the command and everything it started.
#[derive(Debug)]
pub(crate) struct Background {
    shared: Arc<ProcessShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub(crate) struct ProcessShared {
    state: Mutex<ProcessState>,
    changed: Condvar,
}

#[derive(Debug)]
pub(crate) struct ProcessState {
    stop: bool,
    tail: Tail,
    /// The last bytes, for signals and URLs that come in pieces.
    recent: Tail,
    seen: u64,
    signal: Option<Signal>,
    /// Whether it has printed its signal.
    pub(crate) signalled: bool,
    /// When it last printed something or had a connection.
    pub(crate) active: Instant,
    /// The URL that it printed.
    pub(crate) url: Option<String>,
    pub(crate) ended: Option<ProcessEnd>,
}

impl ProcessState {
    /// The end of its output, unredacted.
    pub(crate) fn output(&self) -> String {
        self.tail.text()
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.active = Instant::now();
        self.seen = self.seen.saturating_add(bytes.len() as u64);
        self.tail.push(bytes);
        let waits = self.signal.is_some() && !self.signalled;
        let looks = self.url.is_none() && self.seen <= ADDRESS_WITHIN;
        if !waits && !looks {
            return;
        }
        let text = self.recent.text() + &String::from_utf8_lossy(bytes);
        let text = ralph_loop_protocol::display::sanitize::block(&text);
        if looks {
            self.url = address::find(&text);
        }
        if waits {
            self.signalled = self.signal.as_ref().is_some_and(|signal| signal.is_in(&text));
        }
        self.recent.push(bytes);
    }
}

impl ProcessShared {
    pub(crate) fn state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits for a change, at most `limit`.
    pub(crate) fn news(&self, limit: Duration) {
        let state = self.state();
        drop(self.changed.wait_timeout(state, limit));
    }
}

impl Background {
    /// Starts `request` in `connection` and watches for its signal.
    pub(crate) fn start(
        connection: Box<dyn Sandbox>,
        request: ExecRequest,
        signal: Option<Signal>,
    ) -> Result<Self, String> {
        let state = ProcessState {
            stop: false,
            tail: Tail::new(KEPT),
            recent: Tail::new(RECENT),
            seen: 0,
            signal,
            signalled: false,
            active: Instant::now(),
            url: None,
            ended: None,
        };
        let shared = Arc::new(ProcessShared { state: Mutex::new(state), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let body = move || {
            let mut sink = OutputSink { shared: &theirs, looked: Instant::now() };
            let ended = match connection.exec(&request, &mut sink) {
                Ok(outcome) => ProcessEnd::Exec(outcome.end),
                Err(error) => ProcessEnd::Failed(error.to_string()),
            };
            // The connection's guard is gone before the end is reported.
            drop(connection);
            theirs.state().ended = Some(ended);
            theirs.changed.notify_all();
        };
        let thread = std::thread::Builder::new()
            .name("ralph-process".to_owned())
            .spawn(body)
            .map_err(|error| format!("no thread could be made for it: {error}"))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// A view for readers.
    pub(crate) fn view(&self) -> Arc<ProcessShared> {
        Arc::clone(&self.shared)
    }

    /// Asks it to end, without waiting.
    pub(crate) fn request_stop(&self) {
        self.shared.state().stop = true;
    }

    /// Ends it, SIGTERM first, and waits until nothing of it lives.
    pub(crate) fn stop(&mut self) {
        self.request_stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has dropped its connection, which ends the command.
            thread.join().ok();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

struct OutputSink<'a> {
    shared: &'a ProcessShared,
    looked: Instant,
}

impl ExecSink for OutputSink<'_> {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.shared.state().keep(bytes);
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
