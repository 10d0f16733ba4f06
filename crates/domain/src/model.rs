//! Model calls as plain data, independent of the API, and the port that makes them.
//!
//! A backend translates these to its provider's API and back. It keeps no state between calls; the caller sends the
//! whole conversation each time. The backend retries with bounded waits; the caller decides what a failure means.

pub mod price;
pub mod select;

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
/// Implementations guarantee: a profile's key goes only to that profile's server; a call ends within its timeouts;
/// the sink is polled at least every 250 ms while a call waits; a retry doesn't repeat text to the sink.
pub trait ModelClient: Send + Sync {
    fn call(
        &self,
        profile: &Profile,
        request: &ModelRequest,
        sink: &mut dyn ModelSink,
    ) -> Result<ModelReply, ModelError>;
}

/// Receives a call's progress and may end it.
pub trait ModelSink {
    fn text(&mut self, piece: &str);
    /// The provider requires a wait before the next try.
    fn waiting(&mut self, wait: Duration, reason: &str);
    /// Called often; `Break` ends the call.
    fn poll(&mut self) -> ControlFlow<StopCause>;
}

/// A sink for callers that only want the reply.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoSink;

impl ModelSink for NoSink {
    fn text(&mut self, _: &str) {}
    fn waiting(&mut self, _: Duration, _: &str) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// The cost of a model's tokens, and the savings by cache reads; `None` without a known price.
pub type Pricing = Arc<dyn Fn(&str, &Tokens) -> Option<(Usd, Usd)> + Send + Sync>;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// System prompt, in pieces; a piece with `cache` ends a part that stays the same between calls.
    pub system: Vec<TextPart>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    /// Requests a JSON answer of this schema, if the provider supports it.
    pub json_schema: Option<Value>,
    /// Most tokens of the answer; the profile's, unless this is less.
    pub max_output_tokens: Option<u64>,
    pub stream: bool,
}

/// A piece of text and whether everything up to its end is worth caching.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPart {
    pub text: String,
    /// Marks the end of a part that stays the same between calls.
    pub cache: bool,
}

impl TextPart {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), cache: false }
    }
    /// A piece up to whose end the provider should cache.
    pub fn cached(text: impl Into<String>) -> Self {
        Self { text: text.into(), cache: true }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User {
        parts: Vec<UserPart>,
    },
    /// The model's turn, exactly as in its reply.
    Assistant {
        /// Text, tool calls and provider-specific data.
        parts: Vec<ReplyPart>,
    },
    /// Results for the previous message's tool calls, in order.
    ToolResults {
        results: Vec<ToolResult>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserPart {
    Text(TextPart),
    Image(Image),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// `image/png`, ….
    pub media_type: String,
    /// Its bytes, in base64.
    pub base64: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyPart {
    Text {
        text: String,
    },
    ToolCall(ToolCall),
    /// Something that must return to the same provider unchanged (thinking, signatures).
    Opaque {
        wire: String,
        value: Value,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, which the result refers to.
    pub id: String,
    pub name: String,
    /// Its arguments; a string if the model's JSON is invalid.
    pub input: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub id: String,
    pub name: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    pub is_error: bool,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// Its parts, in order.
    pub parts: Vec<ReplyPart>,
    pub stop: StopReason,
    /// Tokens of this call; `None` if the provider reported none.
    pub tokens: Option<Tokens>,
    /// The cost reported by the provider or its proxy.
    pub cost: Option<Usd>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// Tries that this answer took, from 1.
    pub tries: u32,
}

impl ModelReply {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    Other,
}

/// Why a call failed, after all retries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// What was requested and what came back, without secrets; one or two lines.
    pub message: String,
    /// What to do next, if known.
    pub hint: Option<String>,
}

/// Kinds of failure of a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelErrorKind {
    RateLimited {
        /// The wait that the provider requires, from the time of the error.
        retry_after: Option<Duration>,
    },
    /// The provider is temporarily overloaded or broken.
    Overloaded,
    Unreachable,
    Auth,
    Billing,
    /// The request is longer than the model can take.
    ContextTooLong,
    Refused,
    NotFound,
    BadRequest,
    Garbled,
    /// A connect, first-byte, stall or total timeout.
    TimedOut,
    Stopped(StopCause),
}

impl ModelError {
    /// Whether another model may work right now.
    pub fn another_model_may_help(&self) -> bool {
        !matches!(self.kind, ModelErrorKind::Stopped(_) | ModelErrorKind::ContextTooLong)
    }

    /// The session end that follows from this error in its only or last call.
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
