//! A question to an agent: one session in the given sandbox, whose final message is the answer.

use ralph_loop_domain::ports::{
    AskAnswer, AskError, AskErrorKind, AskSink, AskedAgent, Question, SessionRequest, SessionSink, StopCause,
    Stream,
};
use ralph_loop_protocol::event::SessionEnd;
use std::ops::ControlFlow;
use std::path::Path;

pub(super) fn ask(
    asked: &AskedAgent<'_>,
    question: &Question<'_>,
    sink: &mut dyn AskSink,
) -> Result<AskAnswer, AskError> {
    let failed = |message: String| AskError::free(AskErrorKind::Failed, message);
    let prompt = prompt(question);
    std::fs::write(asked.prompt_file, &prompt)
        .map_err(|e| failed(format!("cannot write `{}`: {e}", asked.prompt_file.display())))?;
    let request = SessionRequest {
        run: asked.run,
        iteration: asked.iteration.max(1),
        attempt: 1,
        prompt: &prompt,
        prompt_file: asked.prompt_file,
        cwd: Path::new(""),
        model: asked.model,
        timeout: question.timeout.min(asked.config.timeout()),
        budget_left: question.max_cost,
        config: asked.config,
        now: question.now,
        stable: &[],
        protected: &[],
        folder: Path::new(""),
    };
    let session = asked.agent.session(&request, asked.sandbox, &mut AgentAnswerSink { sink });
    let report = session.map_err(|error| failed(error.to_string()))?;
    let kind = match &report.end {
        SessionEnd::Completed => return Ok(AskAnswer { text: report.final_message, usage: report.usage }),
        SessionEnd::TimedOut | SessionEnd::IdleTimedOut => AskErrorKind::TimedOut,
        SessionEnd::Stopped { .. } => AskErrorKind::Stopped,
        _ => AskErrorKind::Failed,
    };
    let message = report.end.reason().unwrap_or(report.end.word()).to_owned();
    Err(AskError { kind, message, hint: None, usage: Box::new(report.usage) })
}

/// An agent has one prompt and no memory: it must contain everything.
fn prompt(question: &Question<'_>) -> String {
    let mut text = format!("{}\n{}", question.system, question.prompt);
    for earlier in question.earlier {
        text.push_str(&format!("\n# Your earlier answer\n\n{}\n\n{}\n", earlier.answer, earlier.then));
    }
    text
}

struct AgentAnswerSink<'a> {
    sink: &'a mut dyn AskSink,
}

impl SessionSink for AgentAnswerSink<'_> {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn activity(&mut self, _: &str) {}
    fn action(&mut self, _: &str) {}
    fn token(&mut self, text: &str) {
        self.sink.text(text);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.sink.poll()
    }
}
