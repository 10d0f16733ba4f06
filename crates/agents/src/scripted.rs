//! An agent that plays a script of edits in the sandbox, without a model: for demos and tests.

use crate::bounded::{ACTION_INPUT_MAX, RESPONSE_MAX, value};
pub use crate::script::ScriptError;
use crate::script::{Action, Script, Turn, TurnEnd};
use jiff::SignedDuration;
use ralph_loop_domain::ports::{
    Agent, AgentRequests, ExecEnd, ExecRequest, ExecSink, FINAL_MESSAGE_MAX, ReleaseWhen, Sandbox,
    SandboxError, SessionReport, SessionRequest, SessionSink, StopCause, Stream, WriteMode,
};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::{Tokens, Usage, Usd};
use ralph_loop_task::config::{AgentConfig, join_argv};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

const PAUSE_STEP: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
pub struct ScriptedAgent {
    config: AgentConfig,
    script: Script,
}

impl ScriptedAgent {
    /// An agent that plays the script in `json_text`.
    pub fn from_json(config: AgentConfig, json_text: &str) -> Result<Self, ScriptError> {
        Ok(Self { config, script: Script::parse(json_text)? })
    }
}

impl Agent for ScriptedAgent {
    fn name(&self) -> &AgentName {
        &self.config.name
    }

    fn config(&self) -> Option<&AgentConfig> {
        Some(&self.config)
    }

    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        let Some((number, turn)) = self.script.turn(request.iteration) else {
            return Ok(report(0, SessionEnd::Empty, &Turn::default(), Duration::ZERO));
        };
        let mut player = Player { request, sandbox, sink, spent: Duration::ZERO };
        let end = match player.play(turn)? {
            Some(end) => end,
            None => scripted_end(turn, request),
        };
        if end == SessionEnd::Completed {
            player.sink.output(Stream::Stdout, turn.say.as_bytes());
            player.sink.output(Stream::Stdout, b"\n");
            player.sink.token(&turn.say);
            player.sink.token("\n");
        }
        let spent = player.spent;
        Ok(report(number, end, turn, spent))
    }

    fn release_resources(&self, _: ReleaseWhen) {}
}

fn report(number: usize, end: SessionEnd, turn: &Turn, duration: Duration) -> SessionReport {
    let said = if end == SessionEnd::Completed { text::tail(&turn.say, FINAL_MESSAGE_MAX) } else { "" };
    let tokens = turn.tokens.unwrap_or_default();
    let usage = Usage {
        tokens: Some(Tokens {
            input: tokens.input,
            output: tokens.output,
            cached: tokens.cached,
            cache_write: tokens.cache_write,
        }),
        cost: Some(turn.cost_usd.unwrap_or(Usd::ZERO)),
        ..Usage::free()
    };
    SessionReport {
        response: value(json!({ "format": "scripted", "turn": number, "say": turn.say }), RESPONSE_MAX),
        final_message: said.to_owned(),
        exit_code: Some(i32::from(end != SessionEnd::Completed && end != SessionEnd::Empty)),
        end,
        usage,
        duration,
        survivors: 0,
        wishes: AgentRequests::default(),
    }
}

fn scripted_end(turn: &Turn, request: &SessionRequest<'_>) -> SessionEnd {
    match &turn.end {
        Some(TurnEnd::RateLimited { reset_after_seconds, reason }) => SessionEnd::RateLimited {
            reset_at: reset_after_seconds
                .and_then(|after| request.now.checked_add(SignedDuration::from_secs(after.into())).ok()),
            reason: if reason.is_empty() { "scripted rate limit".into() } else { reason.clone() },
        },
        Some(TurnEnd::Fail(reason)) => SessionEnd::Failed { reason: reason.clone() },
        Some(TurnEnd::Auth(reason)) => SessionEnd::Auth { reason: reason.clone() },
        Some(TurnEnd::Empty(true)) => SessionEnd::Empty,
        _ if turn.say.trim().is_empty() && turn.actions.is_empty() => SessionEnd::Empty,
        _ => SessionEnd::Completed,
    }
}

struct Player<'a> {
    request: &'a SessionRequest<'a>,
    sandbox: &'a dyn Sandbox,
    sink: &'a mut dyn SessionSink,
    /// Time used, as far as known without a clock: commands and pauses.
    spent: Duration,
}

impl Player<'_> {
    /// Plays the actions; `Some` if the session ends before its script.
    fn play(&mut self, turn: &Turn) -> Result<Option<SessionEnd>, SandboxError> {
        for action in &turn.actions {
            if let ControlFlow::Break(cause) = self.sink.poll() {
                return Ok(Some(SessionEnd::Stopped { cause }));
            }
            let end = match self.act(action) {
                Ok(end) => end,
                Err(error @ SandboxError::Broken(_)) => return Err(error),
                // A mistake in the script is the agent's failure, not the sandbox's.
                Err(error) => Some(SessionEnd::Failed { reason: error.to_string() }),
            };
            if end.is_some() {
                return Ok(end);
            }
        }
        Ok(None)
    }

    fn act(&mut self, action: &Action) -> Result<Option<SessionEnd>, SandboxError> {
        match action {
            Action::Write { path, content } => {
                self.tell("write", &format!("editing {path}"), json!({ "path": path, "content": content }));
                self.sandbox.write(Path::new(path), content.as_bytes(), WriteMode::Replace)?;
                Ok(None)
            }
            Action::Append { path, content } => {
                self.tell("append", &format!("editing {path}"), json!({ "path": path, "content": content }));
                self.sandbox.write(Path::new(path), content.as_bytes(), WriteMode::Append)?;
                Ok(None)
            }
            Action::Replace { path, from, to } => {
                let input = json!({ "path": path, "from": from, "to": to });
                self.tell("replace", &format!("editing {path}"), input);
                self.replace(path, from, to)
            }
            Action::Remove { path } => {
                self.tell("remove", &format!("removing {path}"), json!({ "path": path }));
                self.sandbox.remove(Path::new(path))?;
                Ok(None)
            }
            Action::Run { argv } => {
                self.tell("run", &format!("running `{}`", join_argv(argv)), json!({ "argv": argv }));
                self.run(argv)
            }
            Action::PauseMs(length) => Ok(self.pause(Duration::from_millis(*length))),
        }
    }

    fn tell(&mut self, name: &str, line: &str, input: Value) {
        self.sink.activity(&text::one_line(line, 160));
        let input = value(input, ACTION_INPUT_MAX);
        self.sink.action(&json!({ "type": "scripted", "name": name, "input": input }).to_string());
    }

    /// Replaces `from` once. Does nothing if an earlier, killed process did it.
    fn replace(&self, path: &str, from: &str, to: &str) -> Result<Option<SessionEnd>, SandboxError> {
        let failed =
            |what: String| Ok(Some(SessionEnd::Failed { reason: format!("cannot edit `{path}`: {what}") }));
        let Some(bytes) = self.sandbox.read(Path::new(path))? else {
            return failed("no such file".into());
        };
        let Ok(content) = String::from_utf8(bytes) else {
            return failed("it is not text".into());
        };
        let already = !to.is_empty() && content.contains(to);
        match content.matches(from).count() {
            0 if already || to.is_empty() => Ok(None),
            // The new text contains the old one: finding the new one means that it was replaced before.
            _ if already && to.contains(from) => Ok(None),
            1 => {
                let edited = content.replacen(from, to, 1);
                self.sandbox.write(Path::new(path), edited.as_bytes(), WriteMode::Replace)?;
                Ok(None)
            }
            0 => failed("the text to replace doesn't exist in the file".into()),
            many => failed(format!("the text to replace exists {many} times in the file")),
        }
    }

    fn run(&mut self, argv: &[String]) -> Result<Option<SessionEnd>, SandboxError> {
        let mut exec = ExecRequest::new(argv.to_vec());
        exec.timeout = Some(self.allowed().saturating_sub(self.spent));
        exec.idle_timeout = self.request.config.idle_timeout();
        let outcome = self.sandbox.exec(&exec, &mut PassThroughSink(&mut *self.sink))?;
        self.spent += outcome.duration;
        Ok(match outcome.end {
            // A script has no reaction to a failed command.
            ExecEnd::Exited(_) | ExecEnd::Signaled(_) => None,
            ExecEnd::TimedOut => Some(SessionEnd::TimedOut),
            ExecEnd::IdleTimedOut => Some(SessionEnd::IdleTimedOut),
            ExecEnd::Stopped(cause) => Some(SessionEnd::Stopped { cause }),
            ExecEnd::GuardLost => Some(SessionEnd::Interrupted),
        })
    }

    fn pause(&mut self, length: Duration) -> Option<SessionEnd> {
        let mut left = length;
        while !left.is_zero() {
            if let ControlFlow::Break(cause) = self.sink.poll() {
                return Some(SessionEnd::Stopped { cause });
            }
            if self.spent >= self.allowed() {
                return Some(SessionEnd::TimedOut);
            }
            let step = left.min(PAUSE_STEP);
            wait(step);
            self.spent += step;
            left -= step;
        }
        None
    }

    fn allowed(&self) -> Duration {
        self.request.timeout.min(self.request.config.timeout())
    }
}

#[allow(clippy::disallowed_methods, reason = "one step of a pause that polls between its steps")]
fn wait(step: Duration) {
    std::thread::sleep(step);
}

struct PassThroughSink<'a>(&'a mut dyn SessionSink);

impl ExecSink for PassThroughSink<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.0.output(stream, bytes);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.0.poll()
    }
}
