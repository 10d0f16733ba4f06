//! The port to whoever answers one question: a model by its profile, or an agent in one fresh session.

use super::agent::Agent;
use super::sandbox::{Sandbox, StopCause};
use jiff::Timestamp;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::{Usage, Usd};
use ralph_loop_task::config::{AgentConfig, Profile};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Asks one question and brings back one answer. Doctor and critic ask through it, and so does whoever needs a word of a
/// model without a session of its own.
///
/// An implementer guarantees: the question ends within its time; its bounds of tokens and money are kept as far as whoever
/// is asked can keep them, and a question that is known to cost more is not asked; nothing is remembered between two
/// questions; what it cost is told, also where it failed.
pub trait Asker: Send + Sync {
    /// One question, to its end.
    fn ask(&self, question: &Question<'_>, sink: &mut dyn AskSink) -> Result<AskAnswer, AskError>;
}

/// Hears an answer as it comes and may end it.
pub trait AskSink {
    /// A piece of the answer.
    fn text(&mut self, piece: &str) {
        let _ = piece;
    }
    /// The provider makes us wait before the next try.
    fn waiting(&mut self, wait: Duration, reason: &str) {
        let _ = (wait, reason);
    }
    /// Called often; `Break` ends the question.
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// An ask sink that ignores everything: for callers who only want the answer.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoAskSink;

impl AskSink for NoAskSink {}

/// One question.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// Who is asked: a model or an agent.
    pub whom: AskTarget<'a>,
    /// What they are to be and how they answer; the same for many questions, so that providers may cache it.
    pub system: &'a str,
    /// The question.
    pub prompt: &'a str,
    /// What was answered before and what we said to that, oldest first.
    pub earlier: &'a [EarlierAnswer],
    /// The schema of a JSON answer, where one is wanted.
    pub schema: Option<&'a serde_json::Value>,
    /// Most tokens of the answer.
    pub max_output_tokens: Option<u64>,
    /// Most money.
    pub max_cost: Option<Usd>,
    /// Longest wait for the answer.
    pub timeout: Duration,
    /// Whether the answer is wanted piece by piece.
    pub stream: bool,
    /// The current time, for reset times given as a clock time.
    pub now: Timestamp,
}

/// An answer that did not do, and what was said to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierAnswer {
    /// The answer.
    pub answer: String,
    /// What we said.
    pub then: String,
}

/// Who is asked.
#[derive(Clone, Copy)]
pub enum AskTarget<'a> {
    /// A model.
    Profile(&'a Profile),
    /// An agent, in one fresh session.
    Agent(AskedAgent<'a>),
}

/// An agent that is asked, and where.
#[derive(Clone, Copy)]
pub struct AskedAgent<'a> {
    /// Who.
    pub agent: &'a dyn Agent,
    /// Its configuration.
    pub config: &'a AgentConfig,
    /// With which model, where one was chosen.
    pub model: Option<&'a str>,
    /// A sandbox in which whatever the agent changes reaches nobody: over files that it can only read, or over a copy
    /// that is thrown away.
    pub sandbox: &'a dyn Sandbox,
    /// The run it is about.
    pub run: &'a RunId,
    /// The iteration it is about, from 1.
    pub iteration: u32,
    /// A place of the host where the question may stand as a file.
    pub prompt_file: &'a Path,
}

/// The answer of a model or an agent, with what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct AskAnswer {
    /// As text.
    pub text: String,
    /// Tokens, cost and how it is known, and the model.
    pub usage: Usage,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskErrorKind {
    /// There is nobody to ask.
    Nobody,
    /// It would cost more than it may.
    TooExpensive,
    /// It took too long.
    TimedOut,
    /// The sink said stop.
    Stopped,
    /// Whoever was asked could not answer.
    Failed,
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct AskError {
    /// What kind of failure.
    pub kind: AskErrorKind,
    /// Who was asked and what came of it, without secrets.
    pub message: String,
    /// What to do about it, where something can be done.
    pub hint: Option<String>,
    /// What it used all the same.
    pub usage: Box<Usage>,
}

impl AskError {
    /// A failure that cost nothing.
    pub fn free(kind: AskErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, usage: Box::new(Usage::free()) }
    }
}
