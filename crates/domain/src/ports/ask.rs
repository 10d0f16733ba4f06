//! The port for single questions: to a model by its profile, or to an agent in one fresh session.

use super::agent::Agent;
use super::sandbox::{Sandbox, StopCause};
use jiff::Timestamp;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::{Usage, Usd};
use ralph_loop_task::config::{AgentConfig, Profile};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Asks one question and returns one answer. Used by doctor, critic, and other code that needs an answer without a
/// session.
///
/// Implementations guarantee: the question ends within its time; its limits of tokens and money hold as far as
/// possible, and a question that is known to cost more isn't asked; nothing is remembered between questions; the cost
/// is reported, even on failure.
pub trait Asker: Send + Sync {
    fn ask(&self, question: &Question<'_>, sink: &mut dyn AskSink) -> Result<AskAnswer, AskError>;
}

/// Receives an answer's pieces and may end it.
pub trait AskSink {
    fn text(&mut self, piece: &str) {
        let _ = piece;
    }
    /// The provider requires a wait before the next try.
    fn waiting(&mut self, wait: Duration, reason: &str) {
        let _ = (wait, reason);
    }
    /// Called often; `Break` ends the question.
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// A sink that ignores everything, for callers that only want the answer.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoAskSink;

impl AskSink for NoAskSink {}

#[derive(Clone, Copy)]
pub struct Question<'a> {
    pub whom: AskTarget<'a>,
    /// Role and answer format; the same for many questions, so that providers can cache it.
    pub system: &'a str,
    pub prompt: &'a str,
    /// Earlier answers and our replies, oldest first.
    pub earlier: &'a [EarlierAnswer],
    /// The schema of a JSON answer, if required.
    pub schema: Option<&'a serde_json::Value>,
    /// Most tokens of the answer.
    pub max_output_tokens: Option<u64>,
    /// Most money.
    pub max_cost: Option<Usd>,
    /// Longest wait for the answer.
    pub timeout: Duration,
    pub stream: bool,
    /// The current time, for reset times given as a clock time.
    pub now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierAnswer {
    pub answer: String,
    pub then: String,
}

#[derive(Clone, Copy)]
pub enum AskTarget<'a> {
    Profile(&'a Profile),
    Agent(AskedAgent<'a>),
}

/// The agent to ask, and its context.
#[derive(Clone, Copy)]
pub struct AskedAgent<'a> {
    pub agent: &'a dyn Agent,
    pub config: &'a AgentConfig,
    /// The model, if chosen.
    pub model: Option<&'a str>,
    /// A sandbox whose changes have no effect: over read-only files, or over a discarded copy.
    pub sandbox: &'a dyn Sandbox,
    pub run: &'a RunId,
    /// The iteration in question, from 1.
    pub iteration: u32,
    /// A host path where the question may be written.
    pub prompt_file: &'a Path,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AskAnswer {
    pub text: String,
    /// Tokens, cost with its basis, and the model.
    pub usage: Usage,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskErrorKind {
    NotAvailable,
    TooExpensive,
    TimedOut,
    Stopped,
    Failed,
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct AskError {
    pub kind: AskErrorKind,
    /// Which model or agent was asked, and the result, without secrets.
    pub message: String,
    /// What to do next, if known.
    pub hint: Option<String>,
    pub usage: Box<Usage>,
}

impl AskError {
    /// A failure without cost.
    pub fn free(kind: AskErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, usage: Box::new(Usage::free()) }
    }
}
