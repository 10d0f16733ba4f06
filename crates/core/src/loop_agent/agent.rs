//! Applies the caller's system prompt and token limit to an agent.

use ralph_loop_domain::ports::{
    ActionEnd, ActionStart, Agent, AgentResources, ReleaseWhen, Sandbox, SandboxError, SessionReport,
    SessionRequest, SessionSink, StopCause, Stream,
};
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::Tokens;
use ralph_loop_task::config::AgentConfig;
use std::ops::ControlFlow;

pub(super) struct RuledAgent {
    pub(super) agent: Box<dyn Agent>,
    /// Replaces the agent's own text before every task.
    pub(super) system_prompt: Option<String>,
    /// Token limit of a session.
    pub(super) max_tokens: Option<u64>,
}

impl Agent for RuledAgent {
    fn name(&self) -> &AgentName {
        self.agent.name()
    }

    fn config(&self) -> Option<&AgentConfig> {
        self.agent.config()
    }

    fn preamble(&self) -> String {
        self.system_prompt.clone().unwrap_or_else(|| self.agent.preamble())
    }

    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        let mut bounded = TokenBound { sink, max: self.max_tokens, used: 0 };
        self.agent.session(request, sandbox, &mut bounded)
    }

    fn release_resources(&self, moment: ReleaseWhen) {
        self.agent.release_resources(moment);
    }

    fn resources(&self) -> AgentResources {
        self.agent.resources()
    }
}

/// Ends a session at its token limit.
struct TokenBound<'a> {
    sink: &'a mut dyn SessionSink,
    max: Option<u64>,
    used: u64,
}

impl SessionSink for TokenBound<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.sink.output(stream, bytes);
    }
    fn text_output(&mut self, bytes: &[u8]) {
        self.sink.text_output(bytes);
    }
    fn activity(&mut self, line: &str) {
        self.sink.activity(line);
    }
    fn action(&mut self, json_line: &str) {
        self.sink.action(json_line);
    }
    fn result(&mut self, ok: bool, text: &str) {
        self.sink.result(ok, text);
    }
    fn action_started(&mut self, action: &ActionStart) {
        self.sink.action_started(action);
    }
    fn action_finished(&mut self, action: &ActionEnd) {
        self.sink.action_finished(action);
    }
    fn token(&mut self, text: &str) {
        self.sink.token(text);
    }
    fn used(&mut self, tokens: &Tokens) {
        self.used = tokens.total();
        self.sink.used(tokens);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        match self.max {
            // Like a rotation by the user: work so far is kept and checked.
            Some(max) if self.used >= max => ControlFlow::Break(StopCause::Rotated),
            _ => self.sink.poll(),
        }
    }
}
