//! The ear of a session: what it prints, does and keeps goes to its files, its events and the observer, without secrets;
//! what people and budgets say goes back to it.

use crate::context::{Context, Live};
use crate::error::DriveError;
use ralph_domain::event::{ActionFinished, ActionStarted, EventBody};
use ralph_domain::ports::{ActionEnd, ActionStart, SessionSink, StopCause, Stream};
use ralph_domain::redact::RedactStream;
use ralph_domain::text::one_line;
use ralph_journal::artifacts::OutputLog;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

/// Actions beyond this many bytes are left out of `actions.jsonl`.
const ACTIONS_MAX: u64 = 8 * 1024 * 1024;
/// Managed actions of one session that become events; `actions.jsonl` has them all.
const ACTION_EVENTS_MAX: u32 = 500;
/// How often the inbox is looked at while a session runs.
pub(crate) const POLL: Duration = Duration::from_millis(150);

/// Receives a session's output: into the log without secrets, to the observer, and out to the inbox for controls.
pub(crate) struct Recorder<'a> {
    ctx: &'a mut Context,
    log: OutputLog,
    actions: std::io::BufWriter<std::fs::File>,
    actions_bytes: u64,
    iteration: u32,
    tokens: RedactStream,
    activity: String,
    started: Duration,
    last_output: Duration,
    last_poll: Duration,
    error: Option<DriveError>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(ctx: &'a mut Context, log: OutputLog, actions: std::fs::File, iteration: u32) -> Self {
        let now = ctx.clock.elapsed();
        Self {
            ctx,
            log,
            actions: std::io::BufWriter::with_capacity(4096, actions),
            actions_bytes: 0,
            iteration,
            tokens: RedactStream::default(),
            activity: String::new(),
            started: now,
            last_output: now,
            last_poll: now,
            error: None,
        }
    }

    fn record(&mut self, body: EventBody) {
        if let Err(error) = self.ctx.record(body) {
            self.error.get_or_insert(error);
        }
    }

    pub(crate) fn finish(mut self) -> Result<(), DriveError> {
        let (_, rest) = self.log.finish()?;
        if !rest.is_empty() {
            self.ctx.observer.output(Stream::Stdout, &rest);
        }
        let rest = self.tokens.finish(&self.ctx.redactor);
        if !rest.is_empty() {
            self.ctx.observer.token(&String::from_utf8_lossy(&rest));
        }
        let path = std::path::Path::new("actions.jsonl");
        self.actions.flush().map_err(|e| ralph_journal::JournalError::file("write", path, e))?;
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl SessionSink for Recorder<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.last_output = self.ctx.clock.elapsed();
        let clean = self.log.push(stream, bytes);
        if !clean.is_empty() {
            self.ctx.observer.output(stream, &clean);
        }
    }

    fn activity(&mut self, line: &str) {
        self.activity = one_line(&self.ctx.redactor.text(line), 160);
    }

    fn action(&mut self, json_line: &str) {
        self.actions_bytes += json_line.len() as u64;
        if self.actions_bytes <= ACTIONS_MAX {
            let clean = self.ctx.redactor.text(json_line);
            let _ = writeln!(self.actions, "{}", clean.trim_end());
        }
    }

    fn action_started(&mut self, action: &ActionStart) {
        self.last_output = self.ctx.clock.elapsed();
        if action.number <= ACTION_EVENTS_MAX {
            let what = one_line(&self.ctx.redactor.text(&action.what), 200);
            let (iteration, number) = (self.iteration, action.number);
            let action = one_line(&action.action, 60);
            self.record(EventBody::ActionStarted(ActionStarted { iteration, number, action, what }));
        }
    }

    fn action_finished(&mut self, action: &ActionEnd) {
        self.last_output = self.ctx.clock.elapsed();
        if action.number <= ACTION_EVENTS_MAX {
            self.record(EventBody::ActionFinished(ActionFinished {
                iteration: self.iteration,
                number: action.number,
                ok: action.ok,
                result: one_line(&self.ctx.redactor.text(&action.result), 200),
                exit_code: action.exit_code,
                duration_ms: action.duration.as_millis() as u64,
            }));
        }
    }

    fn token(&mut self, text: &str) {
        self.last_output = self.ctx.clock.elapsed();
        let clean = self.tokens.push(&self.ctx.redactor, text.as_bytes());
        if !clean.is_empty() {
            self.ctx.observer.token(&String::from_utf8_lossy(&clean));
        }
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.error.is_some() {
            return ControlFlow::Break(StopCause::Cancelled);
        }
        if self.ctx.cancel.get().is_none() && self.ctx.clock.elapsed() - self.last_poll < POLL {
            return ControlFlow::Continue(());
        }
        let now = self.ctx.clock.elapsed();
        self.last_poll = now;
        let live = Live {
            now: self.ctx.clock.now(),
            elapsed: now - self.started,
            silent: Some(now - self.last_output),
            activity: &self.activity,
        };
        self.ctx.observer.live(&self.ctx.state, &live);
        if self.ctx.state.spec.settings.budgets.deadline.is_some_and(|deadline| live.now >= deadline) {
            return ControlFlow::Break(StopCause::Budget);
        }
        match self.ctx.read_inbox() {
            Ok(Some(cause)) => ControlFlow::Break(cause),
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => {
                // The journal cannot be written: going on would spend money that nobody can account for.
                self.error = Some(error);
                ControlFlow::Break(StopCause::Cancelled)
            }
        }
    }
}
