//! Agents that are installed commands: one process per session, in the sandbox, its output read by one parser per format.

mod activity;
mod claude;
mod claude_result;
mod codex;
mod command;
mod gemini;
mod ledger;
mod parser;
mod stream;
mod text;
mod words;

use self::command::CommandError;
use self::ledger::Ledger;
use self::parser::{Close, Notes, Parser};
use jiff::{SignedDuration, Timestamp};
use ralph_domain::config::{AgentConfig, OutputFormat};
use ralph_domain::event::SessionEnd;
use ralph_domain::id::AgentName;
use ralph_domain::money::Usage;
use ralph_domain::ports::{
    Agent, ExecRequest, ExecSink, Sandbox, SandboxError, SessionReport, SessionRequest, SessionSink,
    StopCause, Stream,
};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// An agent that is an installed command.
#[derive(Debug, Clone)]
pub struct CliAgent {
    config: AgentConfig,
    as_root: bool,
    ledger: Arc<Ledger>,
}

impl CliAgent {
    /// An agent of kind `cli`. Unless told otherwise it takes the agent to run as root where this process does.
    pub fn new(config: AgentConfig) -> Self {
        Self { config, as_root: nix::unistd::Uid::effective().is_root(), ledger: Arc::default() }
    }
    /// Says whether the command will run as root inside its sandbox (claude then needs `IS_SANDBOX=1`).
    pub fn running_as_root(mut self, as_root: bool) -> Self {
        self.as_root = as_root;
        self
    }

    /// Runs a session with the prompt on stdin as bytes instead of a file of the host.
    pub(crate) fn session_with_prompt_bytes(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        self.run(request, sandbox, sink, |exec| {
            if matches!(exec.stdin, ralph_domain::ports::Stdin::File(_)) {
                exec.stdin = ralph_domain::ports::Stdin::Bytes(request.prompt.as_bytes().to_vec());
            }
        })
    }

    fn run(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
        adapt: impl FnOnce(&mut ExecRequest),
    ) -> Result<SessionReport, SandboxError> {
        let mut exec = match command::build(request, self.as_root) {
            Ok(exec) => exec,
            Err(error) => return Ok(not_started(&error)),
        };
        adapt(&mut exec);
        let mut pump = Pump {
            parser: parser_for(request.config.output_format),
            sink,
            root: sandbox.root(),
            hopeless: false,
        };
        let outcome = sandbox.exec(&exec, &mut pump)?;
        let close = Close {
            exec: outcome.end,
            now: later(request.now, outcome.duration),
            patterns: &request.config.rate_limit_detection.patterns,
        };
        let parsed = pump.parser.finish(&close);
        let mut usage = match &parsed.counted_over {
            Some(session) => self.ledger.since(session, parsed.usage),
            None => parsed.usage,
        };
        if usage.model.is_none() {
            usage.model = command::model(request).map(str::to_owned);
        }
        Ok(SessionReport {
            end: parsed.end,
            final_message: parsed.final_message,
            usage,
            response: parsed.response,
            duration: outcome.duration,
            exit_code: outcome.end.code(),
            survivors: outcome.survivors,
        })
    }
}

impl Agent for CliAgent {
    fn name(&self) -> &AgentName {
        &self.config.name
    }
    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        self.run(request, sandbox, sink, |_| {})
    }
}

fn parser_for(format: OutputFormat) -> Box<dyn Parser> {
    match format {
        OutputFormat::Text => Box::new(text::TextParser::new()),
        OutputFormat::ClaudeJson | OutputFormat::ClaudeStreamJson => json_parser::<claude::ClaudeEvents>(),
        OutputFormat::CodexJson => json_parser::<codex::CodexEvents>(),
        OutputFormat::GeminiJson => json_parser::<gemini::GeminiEvents>(),
    }
}

fn json_parser<E: stream::Events + Default + 'static>() -> Box<dyn Parser> {
    Box::new(stream::JsonParser::new(E::default()))
}

/// Waits that an agent announces count from its end, which is the session's start plus its length.
fn later(start: Timestamp, length: Duration) -> Timestamp {
    SignedDuration::try_from(length).ok().and_then(|length| start.checked_add(length).ok()).unwrap_or(start)
}

fn not_started(error: &CommandError) -> SessionReport {
    let reason = error.to_string();
    SessionReport {
        response: json!({ "format": "none", "error": reason }),
        end: SessionEnd::Failed { reason },
        final_message: String::new(),
        // No process was started, so nothing was spent.
        usage: Usage::free(),
        duration: Duration::ZERO,
        exit_code: None,
        survivors: 0,
    }
}

/// Passes output on raw, feeds the parser, and ends the process when the engine or the parser says so.
struct Pump<'a> {
    parser: Box<dyn Parser>,
    sink: &'a mut dyn SessionSink,
    root: &'a Path,
    hopeless: bool,
}

impl ExecSink for Pump<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.sink.output(stream, bytes);
        let mut notes = Notes { sink: &mut *self.sink, root: self.root, hopeless: &mut self.hopeless };
        self.parser.feed(stream, bytes, &mut notes);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.sink.poll()?;
        if self.hopeless { ControlFlow::Break(StopCause::Hopeless) } else { ControlFlow::Continue(()) }
    }
}
