//! A session's time limit, and sinks that notice a stop while a model or a command works.

use ralph_loop_domain::model::ModelSink;
use ralph_loop_domain::ports::{SessionRequest, SessionSink, StopCause};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    start: Instant,
    allowed: Duration,
}

impl Deadline {
    /// From now on, for as long as the request and the agent's configuration allow.
    pub(crate) fn of(request: &SessionRequest<'_>) -> Self {
        Self { start: Instant::now(), allowed: request.timeout.min(request.config.timeout()) }
    }
    pub(crate) fn used(&self) -> Duration {
        self.start.elapsed()
    }
    pub(crate) fn left(&self) -> Duration {
        self.allowed.saturating_sub(self.used())
    }
    /// Whether the session has to end now, and how.
    pub(crate) fn check(&self, sink: &mut dyn SessionSink) -> Option<SessionEnd> {
        if let ControlFlow::Break(cause) = sink.poll() {
            return Some(SessionEnd::Stopped { cause });
        }
        self.left().is_zero().then_some(SessionEnd::TimedOut)
    }
}

/// A session's model sink: passes on text and waits, and ends the call on a stop or at the deadline.
pub(crate) struct SessionModelSink<'a> {
    pub(crate) sink: &'a mut dyn SessionSink,
    pub(crate) deadline: Deadline,
    /// Whether the time limit ended the call.
    pub(crate) timed_out: bool,
}

impl ModelSink for SessionModelSink<'_> {
    fn text(&mut self, piece: &str) {
        self.sink.token(piece);
    }
    fn waiting(&mut self, wait: Duration, reason: &str) {
        let line = format!("waiting {} for the model: {reason}", text::duration(wait));
        self.sink.activity(&text::one_line(&line, 160));
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if let ControlFlow::Break(cause) = self.sink.poll() {
            return ControlFlow::Break(cause);
        }
        if self.deadline.left().is_zero() {
            self.timed_out = true;
            return ControlFlow::Break(StopCause::Budget);
        }
        ControlFlow::Continue(())
    }
}
