//! Records a session's output, actions and resources as files, events and observer calls, redacted; passes
//! controls and limits back to the session.

use crate::error::DriveError;
use crate::inbox;
use crate::ledger::Ledger;
use crate::observers::SessionProgress;
use crate::record::resources;
use ralph_loop_domain::budget_warning::budget_warnings_with;
use ralph_loop_domain::model::Pricing;
use ralph_loop_domain::ports::{ActionEnd, ActionStart, Agent, SessionSink, StopCause, Stream};
use ralph_loop_domain::redact::RedactStream;
use ralph_loop_journal::folder::artifacts::OutputLog;
use ralph_loop_journal::live::{LivePayload, LiveStream};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{ActionFinished, ActionStarted, EventBody};
use ralph_loop_protocol::money::{Tokens, Usd};
use ralph_loop_task::budget::Spent;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

/// Size limit of `actions.jsonl`.
const ACTIONS_MAX: u64 = 8 * 1024 * 1024;
/// Managed actions of one session that become events; `actions.jsonl` has them all.
const ACTION_EVENTS_MAX: u32 = 500;
/// Polling interval for the inbox during a session.
pub(crate) const POLL: Duration = Duration::from_millis(150);

/// Receives a session's output: logs it redacted, informs the observer, and polls the inbox.
pub(crate) struct Recorder<'a> {
    ledger: &'a mut Ledger,
    log: OutputLog,
    actions: std::io::BufWriter<std::fs::File>,
    actions_bytes: u64,
    iteration: u32,
    tokens: RedactStream,
    activity: String,
    /// Activity not shown yet: an immediate tool call describes it better.
    doing: bool,
    /// Actions are reported one by one.
    managed: bool,
    /// Stdout is the agent's text.
    plain: bool,
    started: Duration,
    last_output: Duration,
    last_poll: Duration,
    /// Tokens so far, if reported.
    used: Tokens,
    /// The model's price.
    pricing: Option<(Pricing, String)>,
    error: Option<DriveError>,
    /// Asked for what it keeps alive.
    agent: Option<&'a dyn Agent>,
}

/// The displayed part of a line in `actions.jsonl`.
#[derive(serde::Deserialize)]
struct ActionLine {
    name: Option<String>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(
        ledger: &'a mut Ledger,
        log: OutputLog,
        actions: std::fs::File,
        iteration: u32,
    ) -> Self {
        let now = ledger.clock.elapsed();
        Self {
            ledger,
            log,
            actions: std::io::BufWriter::with_capacity(4096, actions),
            actions_bytes: 0,
            iteration,
            tokens: RedactStream::default(),
            activity: String::new(),
            doing: false,
            managed: false,
            plain: false,
            started: now,
            last_output: now,
            last_poll: now,
            used: Tokens::default(),
            pricing: None,
            error: None,
            agent: None,
        }
    }

    /// Also records what the agent keeps alive.
    pub(crate) fn of_agent(mut self, agent: &'a dyn Agent) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Adds the model's price, so that budgets warn during the session.
    pub(crate) fn priced_by(mut self, pricing: Option<(Pricing, String)>) -> Self {
        self.pricing = pricing;
        self
    }

    /// Cost so far by the price list.
    fn estimate(&self) -> Option<Usd> {
        let (price, model) = self.pricing.as_ref()?;
        price(model, &self.used).map(|(cost, _)| cost)
    }

    /// Warns as soon as the current session reaches a budget threshold.
    fn warn_of_budgets(&mut self, elapsed: Duration) {
        let session = Spent {
            iterations: 0,
            time: elapsed,
            cost: self.estimate().unwrap_or_default(),
            tokens: self.used.total(),
        };
        for warning in budget_warnings_with(&self.ledger.state, session) {
            self.record(warning);
        }
    }

    fn record(&mut self, body: EventBody) {
        if let Err(error) = self.ledger.record(body) {
            self.error.get_or_insert(error);
        }
    }

    /// Shows the agent's activity unless something else did.
    fn show_doing(&mut self) {
        if std::mem::take(&mut self.doing) {
            self.ledger.show(&LivePayload::Activity { text: self.activity.clone() });
        }
    }

    pub(crate) fn finish(mut self) -> Result<(), DriveError> {
        self.show_doing();
        let (_, [stdout, stderr]) = self.log.finish()?;
        if self.plain {
            show_plain(self.ledger, &stdout);
        } else if !stdout.is_empty() {
            self.ledger.observer.output(Stream::Stdout, &stdout);
        }
        if !stderr.is_empty() {
            self.ledger.observer.output(Stream::Stderr, &stderr);
            self.ledger.show_text(&LiveStream::Stderr, &stderr);
        }
        let rest = self.tokens.finish(&self.ledger.redactor);
        if !rest.is_empty() {
            self.ledger.observer.token(&String::from_utf8_lossy(&rest));
            self.ledger.show_text(&LiveStream::Agent, &rest);
        }
        let path = std::path::Path::new("actions.jsonl");
        self.actions.flush().map_err(|e| ralph_loop_journal::JournalError::file("write", path, e))?;
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// Shows redacted output that is the agent's text.
fn show_plain(ledger: &mut Ledger, clean: &[u8]) {
    if !clean.is_empty() {
        ledger.observer.output(Stream::Stdout, clean);
        ledger.observer.token(&String::from_utf8_lossy(clean));
        ledger.show_text(&LiveStream::Agent, clean);
    }
}

impl SessionSink for Recorder<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.last_output = self.ledger.clock.elapsed();
        let clean = self.log.push(stream, bytes);
        if !clean.is_empty() {
            self.ledger.observer.output(stream, &clean);
            if stream == Stream::Stderr {
                self.ledger.show_text(&LiveStream::Stderr, &clean);
            }
        }
    }

    fn text_output(&mut self, bytes: &[u8]) {
        self.last_output = self.ledger.clock.elapsed();
        let clean = self.log.push(Stream::Stdout, bytes);
        self.plain = true;
        show_plain(self.ledger, &clean);
    }

    fn activity(&mut self, line: &str) {
        self.show_doing();
        self.activity = one_line(&self.ledger.redactor.text(line), 160);
        self.doing = true;
    }

    fn action(&mut self, json_line: &str) {
        self.actions_bytes += json_line.len() as u64;
        if self.actions_bytes <= ACTIONS_MAX {
            let clean = self.ledger.redactor.text(json_line);
            let _ = writeln!(self.actions, "{}", clean.trim_end());
            if !self.managed
                && let Ok(ActionLine { name: Some(name) }) = serde_json::from_str(&clean)
            {
                let what =
                    if std::mem::take(&mut self.doing) { self.activity.clone() } else { String::new() };
                self.ledger.show(&LivePayload::ToolCall { name: one_line(&name, 60), what });
            }
        }
    }

    fn result(&mut self, ok: bool, text: &str) {
        let text = self.ledger.redactor.text(text).into_owned();
        self.ledger.show(&LivePayload::ToolResult { ok, text });
    }

    fn action_started(&mut self, action: &ActionStart) {
        self.last_output = self.ledger.clock.elapsed();
        self.managed = true;
        let what = one_line(&self.ledger.redactor.text(&action.what), 200);
        // The preceding activity line describes it best.
        let line = if std::mem::take(&mut self.doing) { self.activity.clone() } else { what.clone() };
        self.ledger.show(&LivePayload::ToolCall { name: one_line(&action.action, 60), what: line });
        if action.number <= ACTION_EVENTS_MAX {
            let (iteration, number) = (self.iteration, action.number);
            let action = one_line(&action.action, 60);
            self.record(EventBody::ActionStarted(ActionStarted { iteration, number, action, what }));
        }
    }

    fn action_finished(&mut self, action: &ActionEnd) {
        self.last_output = self.ledger.clock.elapsed();
        if let Some(agent) = self.agent {
            resources::note_resources(self.ledger, agent);
        }
        let result = one_line(&self.ledger.redactor.text(&action.result), 200);
        self.ledger.show(&LivePayload::ToolResult { ok: action.ok, text: result.clone() });
        if action.number <= ACTION_EVENTS_MAX {
            self.record(EventBody::ActionFinished(ActionFinished {
                iteration: self.iteration,
                number: action.number,
                ok: action.ok,
                result,
                exit_code: action.exit_code,
                duration_ms: action.duration.as_millis() as u64,
            }));
        }
    }

    fn token(&mut self, text: &str) {
        self.last_output = self.ledger.clock.elapsed();
        let clean = self.tokens.push(&self.ledger.redactor, text.as_bytes());
        if !clean.is_empty() {
            self.ledger.observer.token(&String::from_utf8_lossy(&clean));
            self.ledger.show_text(&LiveStream::Agent, &clean);
        }
    }

    fn used(&mut self, tokens: &Tokens) {
        self.used = *tokens;
        self.ledger.show(&LivePayload::Tokens { tokens: *tokens, cost_usd: self.estimate() });
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.error.is_some() {
            return ControlFlow::Break(StopCause::Cancelled);
        }
        if self.ledger.cancel.get().is_none() && self.ledger.clock.elapsed() - self.last_poll < POLL {
            return ControlFlow::Continue(());
        }
        let now = self.ledger.clock.elapsed();
        self.last_poll = now;
        self.show_doing();
        self.ledger.live.keep_pace(now);
        let live = SessionProgress {
            now: self.ledger.clock.now(),
            elapsed: now - self.started,
            silent: Some(now - self.last_output),
            activity: &self.activity,
        };
        self.ledger.observer.live(&self.ledger.state, &live);
        let at_deadline =
            self.ledger.state.spec.settings.budgets.deadline.is_some_and(|deadline| live.now >= deadline);
        self.warn_of_budgets(now - self.started);
        if at_deadline {
            return ControlFlow::Break(StopCause::Budget);
        }
        match inbox::read(self.ledger) {
            Ok(Some(cause)) => ControlFlow::Break(cause),
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => {
                // Without a journal, further spending couldn't be accounted for.
                self.error = Some(error);
                ControlFlow::Break(StopCause::Cancelled)
            }
        }
    }
}
