//! Talking to a model: one call as plain data, whatever wire it goes over, and the port that makes it.
//!
//! A backend translates these to its provider's wire and back. It keeps no state between calls; the caller sends the
//! whole conversation each time. Retries with bounded waits are the backend's; what a failure means is the caller's.

use crate::ports::StopCause;
use jiff::{SignedDuration, Timestamp};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::{Tokens, Usd};
use ralph_loop_task::config::Profile;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Calls models.
///
/// An implementer guarantees: the key of a profile goes to that profile's server and nowhere else; a call ends within
/// its time-outs; the sink is polled at least every 250 ms while a call waits; text that came before a failed try is not
/// repeated to the sink by the next try.
pub trait ModelClient: Send + Sync {
    /// One call of one model, to its end.
    fn call(
        &self,
        profile: &Profile,
        request: &ModelRequest,
        sink: &mut dyn ModelSink,
    ) -> Result<ModelReply, ModelError>;
}

/// Hears a call while it goes on and may end it.
pub trait ModelSink {
    /// A piece of the answer's text, as it comes.
    fn text(&mut self, piece: &str);
    /// The provider makes us wait before the next try.
    fn waiting(&mut self, wait: Duration, reason: &str);
    /// Called often; `Break` ends the call.
    fn poll(&mut self) -> ControlFlow<StopCause>;
}

/// A sink for callers who only want the reply.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoSink;

impl ModelSink for NoSink {
    fn text(&mut self, _: &str) {}
    fn waiting(&mut self, _: Duration, _: &str) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// What tokens of a model cost, and what reading from a cache saved of it; `None` for a model without a known price.
pub type Pricing = Arc<dyn Fn(&str, &Tokens) -> Option<(Usd, Usd)> + Send + Sync>;

/// One call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// System prompt, in pieces; a piece with `cache` ends a part that stays the same between calls.
    pub system: Vec<TextPart>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// Asks for a JSON answer of this schema, where the provider can.
    pub json_schema: Option<Value>,
    /// Most tokens of the answer; the profile's, unless this is less.
    pub max_output_tokens: Option<u64>,
    /// Whether the answer is wanted piece by piece.
    pub stream: bool,
}

/// A piece of text and whether everything up to its end is worth caching.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Marks the end of a part that stays the same between calls.
    pub cache: bool,
}

impl TextPart {
    /// A piece that is not marked.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), cache: false }
    }
    /// A piece up to whose end the provider should cache.
    pub fn cached(text: impl Into<String>) -> Self {
        Self { text: text.into(), cache: true }
    }
}

/// One turn of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What we say.
    User {
        /// Text and pictures.
        parts: Vec<UserPart>,
    },
    /// What the model said, exactly as its reply had it.
    Assistant {
        /// Text, tool calls and what only its provider understands.
        parts: Vec<ReplyPart>,
    },
    /// Answers to the tool calls of the message before, in their order.
    ToolResults {
        /// One for each call.
        results: Vec<ToolResult>,
    },
}

/// Part of what we say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserPart {
    /// Text.
    Text(TextPart),
    /// A picture.
    Image(Image),
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// `image/png`, ….
    pub media_type: String,
    /// Its bytes, in base64.
    pub base64: String,
}

/// Part of what a model said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A tool call.
    ToolCall(ToolCall),
    /// Something that must go back to the same provider unchanged (thinking, signatures).
    Opaque {
        /// The wire it belongs to.
        wire: String,
        /// As it came.
        value: Value,
    },
}

/// A model wants a tool to be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id that the result names.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments; a string where the model's JSON could not be read.
    pub input: Value,
}

/// The answer to a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// As text.
    pub text: String,
    /// Pictures for the model to see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Whether it failed.
    pub is_error: bool,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// What it said, in order.
    pub parts: Vec<ReplyPart>,
    /// Why it stopped.
    pub stop: StopReason,
    /// Tokens of this call; `None` where the provider told none.
    pub tokens: Option<Tokens>,
    /// What the provider or its proxy says this call cost.
    pub cost: Option<Usd>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// Tries that this answer took, from 1.
    pub tries: u32,
}

impl ModelReply {
    /// All its text, joined.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                ReplyPart::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }
    /// Its tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            ReplyPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said what it wanted.
    EndTurn,
    /// It waits for its tools.
    ToolUse,
    /// The answer was cut at its longest.
    MaxTokens,
    /// It declined.
    Refusal,
    /// Something else that its provider names.
    Other,
}

/// Why a call failed, after the retries that made sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure.
    pub kind: ModelErrorKind,
    /// What was asked of whom and what came back, without secrets; one or two lines.
    pub message: String,
    /// What to do about it, where something can be done.
    pub hint: Option<String>,
}

/// Kinds of failure of a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// A limit; the wait that the provider named.
    RateLimited {
        /// How long, from when the error came.
        retry_after: Option<Duration>,
    },
    /// The provider is overloaded or broken for a while.
    Overloaded,
    /// Its host cannot be reached.
    Unreachable,
    /// No key, or it is refused.
    Auth,
    /// No credit.
    Billing,
    /// The request is longer than the model can take.
    ContextTooLong,
    /// The provider declined the request.
    Refused,
    /// The model or the server is not there.
    NotFound,
    /// The provider says the request is wrong.
    BadRequest,
    /// What came back cannot be understood.
    Garbled,
    /// A connect, first-byte, stall or whole-call time-out.
    TimedOut,
    /// The sink ended it.
    Stopped(StopCause),
}

impl ModelError {
    /// Whether another model may do better right now.
    pub fn another_model_may_help(&self) -> bool {
        !matches!(self.kind, ModelErrorKind::Stopped(_) | ModelErrorKind::ContextTooLong)
    }

    /// What such an end of its only or last call makes of a session.
    pub fn session_end(&self, now: Timestamp) -> SessionEnd {
        let reason = match &self.hint {
            Some(hint) => format!("{} ({hint})", self.message),
            None => self.message.clone(),
        };
        match self.kind {
            ModelErrorKind::RateLimited { retry_after } => {
                let reset_at = retry_after
                    .and_then(|wait| SignedDuration::try_from(wait).ok())
                    .and_then(|wait| now.checked_add(wait).ok());
                SessionEnd::RateLimited { reset_at, reason }
            }
            ModelErrorKind::Overloaded | ModelErrorKind::TimedOut => SessionEnd::Overloaded { reason },
            ModelErrorKind::Unreachable => SessionEnd::Unreachable { reason },
            ModelErrorKind::Auth => SessionEnd::Auth { reason },
            ModelErrorKind::Billing => SessionEnd::Billing { reason },
            ModelErrorKind::ContextTooLong => SessionEnd::ContextTooLong { reason },
            ModelErrorKind::Refused => SessionEnd::Refused { reason },
            ModelErrorKind::NotFound | ModelErrorKind::BadRequest | ModelErrorKind::Garbled => {
                SessionEnd::Failed { reason }
            }
            ModelErrorKind::Stopped(cause) => SessionEnd::Stopped { cause },
        }
    }
}
