//! Agents that are installed commands: one process per session, in the sandbox, its output parsed by one parser per
//! format.

mod activity;
mod claude;
mod codex;
mod command;
mod gemini;
mod ledger;
mod opencode;
mod parser;
mod qwen;
mod readable;
pub mod start;
mod stream;
mod text;
mod words;

use self::ledger::Ledger;
use self::parser::{Parser, ParserSink, ProcessClose};
pub use self::readable::{ReadableOutput, TranscriptEntry, TranscriptReader};
use self::start::UserSide;
use crate::presets;
use crate::session_hooks::SessionHooks;
use jiff::{SignedDuration, Timestamp};
use ralph_loop_domain::ports::{
    Agent, AgentRequests, ExecOutcome, ExecRequest, ExecSink, ReleaseWhen, Sandbox, SandboxError,
    SessionReport, SessionRequest, SessionSink, Stdin, StopCause, Stream,
};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::Usage;
use ralph_loop_task::config::{AgentConfig, OutputFormat, PromptMode};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a CLI may wait silently for a provider that refused it: codex would wait an hour for a `Retry-After`.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// Looks up an agent's program at each start.
#[derive(Clone)]
pub struct ProgramSource(Arc<dyn Fn() -> Result<ProgramPlace, String> + Send + Sync>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramPlace {
    /// Its absolute path.
    pub program: String,
    /// The `PATH` it is started with.
    pub path: String,
}

impl ProgramSource {
    /// Calls `look` at each start; its error says why the agent isn't started.
    pub fn new(look: impl Fn() -> Result<ProgramPlace, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }
}

impl std::fmt::Debug for ProgramSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgramSource")
    }
}

#[derive(Debug, Clone)]
pub struct CliAgent {
    config: AgentConfig,
    program: Option<ProgramSource>,
    hooks: SessionHooks,
    user: UserSide,
    as_root: bool,
    silence_limit: Duration,
    ledger: Arc<Ledger>,
}

impl CliAgent {
    /// An agent of kind `cli`. By default assumes that it runs as root if this process does.
    pub fn new(config: AgentConfig) -> Self {
        let as_root = nix::unistd::Uid::effective().is_root();
        Self {
            config,
            program: None,
            hooks: SessionHooks::default(),
            user: UserSide::default(),
            as_root,
            silence_limit: SILENCE_LIMIT,
            ledger: Arc::default(),
        }
    }
    /// Whether the command will run as root inside its sandbox (claude then needs `IS_SANDBOX=1`).
    pub fn running_as_root(mut self, as_root: bool) -> Self {
        self.as_root = as_root;
        self
    }

    /// Starts the program that this source finds, instead of looking up its name in the sandbox: an agent with keys
    /// is started by path.
    pub fn with_program(mut self, program: ProgramSource) -> Self {
        self.program = Some(program);
        self
    }

    pub fn with_hooks(mut self, hooks: SessionHooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Starts sessions with the user's own settings.
    pub fn with_user(mut self, user: UserSide) -> Self {
        self.user = user;
        self
    }

    /// How long the command may wait silently for a provider that refused it, before the session is given up.
    pub fn with_silence_limit(mut self, silence_limit: Duration) -> Self {
        self.silence_limit = silence_limit;
        self
    }

    /// Runs a session with the prompt as stdin bytes instead of a host file.
    pub(crate) fn session_with_prompt_bytes(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        self.run(request, sandbox, sink, |exec| {
            if matches!(exec.stdin, Stdin::File(_)) {
                exec.stdin = Stdin::Bytes(request.prompt.as_bytes().to_vec());
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
            Err(error) => return Ok(not_started(&error.to_string())),
        };
        let known = presets::preset_of(&exec.argv);
        if let Some(source) = &self.program {
            let place = match (source.0)() {
                Ok(place) => place,
                Err(reason) => return Ok(not_started(&reason)),
            };
            exec.argv[0] = place.program;
            if !exec.env.iter().any(|(name, _)| name == "PATH") {
                exec.env.push(("PATH".to_owned(), place.path));
            }
        }
        // After the program and before its arguments: a prompt may be the last one.
        exec.argv.splice(1..1, self.hooks.argv.iter().cloned());
        exec.env.extend(self.hooks.env.iter().cloned());
        if let Some(cli) = known {
            exec.argv.splice(1..1, start::arguments(cli, sandbox.root(), request.cwd, &self.user));
            exec.env.extend(start::variables(cli, &self.user));
        }
        adapt(&mut exec);
        let mut pump = OutputReader::new(request.config.output_format, sandbox.root(), sink);
        pump.silence_limit = self.silence_limit;
        pump.idle_limit = request.config.idle_timeout();
        let (agent, program) = (self.config.name.as_str(), exec.argv.first());
        tracing::debug!(agent, ?program, "agent started");
        let ended = sandbox.exec(&exec, &mut pump);
        match &ended {
            Ok(done) => {
                tracing::debug!(agent, ?program, end = ?done.end, took = ?done.duration, "agent ended")
            }
            Err(error) => tracing::debug!(agent, ?program, %error, "agent not started"),
        }
        let outcome = ended?;
        let mut report = pump.report(&request.config.rate_limit_detection.patterns, &outcome, request.now);
        if let Some(session) = report.counted_over {
            report.session.usage = self.ledger.since(&session, report.session.usage);
        }
        let mut report = report.session;
        if let (SessionEnd::Auth { reason }, Some(fix)) =
            (&mut report.end, known.and_then(presets::login_hint))
        {
            reason.push_str(&format!("; {fix}"));
        }
        if report.usage.model.is_none() {
            let asked = command::model(request).map(str::to_owned);
            report.usage.model = asked.or_else(|| self.user.model.clone());
        }
        Ok(report)
    }
}

/// Parses recorded output like a session does, in pieces of any size. Totals over a resumed session stay totals.
pub fn replay<'a>(
    format: OutputFormat,
    pieces: impl IntoIterator<Item = (Stream, &'a [u8])>,
    outcome: &ExecOutcome,
    started: Timestamp,
    sink: &mut dyn SessionSink,
) -> SessionReport {
    let mut pump = OutputReader::new(format, Path::new("/"), sink);
    pieces.into_iter().for_each(|(stream, bytes)| pump.output(stream, bytes));
    pump.report(&[], outcome, started).session
}

impl Agent for CliAgent {
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
        self.run(request, sandbox, sink, |_| {})
    }

    fn continue_session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<Option<SessionReport>, SandboxError> {
        let stdin = request.config.prompt_mode == PromptMode::Stdin;
        let cli = presets::preset_of(&request.config.command_argv).filter(|_| stdin);
        let Some((cli, id)) = cli.zip(self.ledger.last()) else { return Ok(None) };
        if !start::can_continue(cli) {
            return Ok(None);
        }
        let report = self.run(request, sandbox, sink, |exec| {
            start::continue_with(cli, &mut exec.argv, &id);
            exec.stdin = Stdin::Bytes(request.prompt.as_bytes().to_vec());
        });
        report.map(Some)
    }

    /// Keeps nothing alive between sessions.
    fn release_resources(&self, _: ReleaseWhen) {}
}

fn parser_for(format: OutputFormat) -> Box<dyn Parser> {
    match format {
        OutputFormat::Text => Box::new(text::TextParser::new()),
        OutputFormat::ClaudeJson | OutputFormat::ClaudeStreamJson => json_parser::<claude::ClaudeEvents>(),
        OutputFormat::CodexJson => json_parser::<codex::CodexEvents>(),
        OutputFormat::GeminiJson => json_parser::<gemini::GeminiEvents>(),
        OutputFormat::OpencodeJson => json_parser::<opencode::OpencodeEvents>(),
        OutputFormat::QwenJson => json_parser::<qwen::QwenEvents>(),
    }
}

fn json_parser<E: stream::Events + Default + 'static>() -> Box<dyn Parser> {
    Box::new(stream::JsonParser::new(E::default()))
}

/// Announced waits count from their announcement at the session's end: its start plus its length.
fn later(start: Timestamp, length: Duration) -> Timestamp {
    SignedDuration::try_from(length).ok().and_then(|length| start.checked_add(length).ok()).unwrap_or(start)
}

fn not_started(reason: &str) -> SessionReport {
    let reason = reason.to_owned();
    SessionReport {
        response: json!({ "format": "none", "error": reason }),
        end: SessionEnd::Failed { reason },
        final_message: String::new(),
        // No process was started, so nothing was spent.
        usage: Usage::free(),
        duration: Duration::ZERO,
        exit_code: None,
        survivors: 0,
        wishes: AgentRequests::default(),
    }
}

/// Passes output on, feeds the parser, and ends the process when the engine or the parser says so.
struct OutputReader<'a> {
    parser: Box<dyn Parser>,
    /// Set if stdout is the agent's text; holds an incomplete character.
    text: Option<Vec<u8>>,
    sink: &'a mut dyn SessionSink,
    root: &'a Path,
    hopeless: bool,
    /// When the process last printed something.
    last_output: Instant,
    silence_limit: Duration,
    /// When the agent last did something: retry notices don't count.
    last_life: Instant,
    idle_limit: Option<Duration>,
}

/// A report, and the session over which its usage accumulates.
struct Counted {
    session: SessionReport,
    counted_over: Option<String>,
}

impl<'a> OutputReader<'a> {
    fn new(format: OutputFormat, root: &'a Path, sink: &'a mut dyn SessionSink) -> Self {
        let parser = parser_for(format);
        let text = (format == OutputFormat::Text).then(Vec::new);
        Self {
            parser,
            text,
            sink,
            root,
            hopeless: false,
            last_output: Instant::now(),
            silence_limit: SILENCE_LIMIT,
            last_life: Instant::now(),
            idle_limit: None,
        }
    }

    fn pass_on(&mut self, stream: Stream, bytes: &[u8]) {
        let Some(text) = self.text.as_mut().filter(|_| stream == Stream::Stdout) else {
            return self.sink.output(stream, bytes);
        };
        text.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(text) {
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            _ => text.len(),
        };
        self.sink.text_output(&text[..whole]);
        text.drain(..whole);
    }

    fn report(mut self, patterns: &[String], outcome: &ExecOutcome, started: Timestamp) -> Counted {
        if let Some(cut_off) = self.text.take().filter(|text| !text.is_empty()) {
            self.sink.text_output(&cut_off);
        }
        let close = ProcessClose { exec: outcome.end, now: later(started, outcome.duration), patterns };
        let parsed = self.parser.finish(&close);
        let session = SessionReport {
            end: parsed.end,
            final_message: parsed.final_message,
            usage: parsed.usage,
            response: parsed.response,
            duration: outcome.duration,
            exit_code: outcome.end.code(),
            survivors: outcome.survivors,
            wishes: AgentRequests::default(),
        };
        Counted { session, counted_over: parsed.counted_over }
    }
}

impl ExecSink for OutputReader<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.pass_on(stream, bytes);
        let mut notes = ParserSink { sink: &mut *self.sink, root: self.root, hopeless: &mut self.hopeless };
        self.parser.feed(stream, bytes, &mut notes);
        self.last_output = Instant::now();
        if !self.parser.retrying() {
            self.last_life = self.last_output;
        }
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.sink.poll()?;
        let in_vain = self.parser.waiting() && self.last_output.elapsed() > self.silence_limit
            || self.parser.retrying() && self.idle_limit.is_some_and(|idle| self.last_life.elapsed() > idle);
        let hopeless = self.hopeless || in_vain;
        if hopeless { ControlFlow::Break(StopCause::Hopeless) } else { ControlFlow::Continue(()) }
    }
}
