//! `opencode run --format json`: one event per line. There is no closing event; a step that ends for another reason
//! than more tool calls is the last one.

use super::parser::{
    Parsed, ParserSink, ProcessClose, REASON_MAX, RESULT_READ, append_bounded, ended_by_engine,
    ended_without_result, failed_after_success, final_message,
};
use super::stream::Events;
use super::words;
use crate::bounded::RESPONSE_MAX;
use crate::limits;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::{CostBasis, Tokens, Usage, Usd};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Default)]
pub(crate) struct OpencodeEvents {
    started: bool,
    session: Option<String>,
    /// The current message and its id: joins its parts.
    message: String,
    message_id: String,
    tools: u64,
    /// Why the last step ended; empty while one runs.
    finish: String,
    /// Tokens and cost are reported per step.
    tokens: Option<Tokens>,
    cost: f64,
    error: Option<OpencodeError>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(default)]
    part: Part,
    error: Option<OpencodeError>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Part {
    #[serde(rename = "messageID")]
    message: String,
    #[serde(rename = "callID")]
    call_id: String,
    text: Option<String>,
    tool: String,
    state: State,
    reason: String,
    tokens: Option<StepTokens>,
    cost: f64,
}

/// A tool use; its output can be huge, so only its beginning is kept.
#[derive(Deserialize, Default)]
#[serde(default)]
struct State {
    input: Value,
    status: String,
    #[serde(deserialize_with = "beginning")]
    output: String,
}

/// The beginning of a tool's output; output that isn't text counts as empty.
fn beginning<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(text::head(value.as_str().unwrap_or_default(), RESULT_READ).to_owned())
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StepTokens {
    input: u64,
    output: u64,
    reasoning: u64,
    cache: Cache,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cache {
    read: u64,
    write: u64,
}

#[derive(Deserialize)]
struct OpencodeError {
    #[serde(default)]
    name: String,
    #[serde(default)]
    data: ErrorData,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorData {
    message: String,
    #[serde(rename = "statusCode")]
    status: Option<u16>,
    #[serde(rename = "responseHeaders")]
    headers: Value,
}

impl OpencodeError {
    fn end(&self, close: &ProcessClose<'_>) -> SessionEnd {
        let words = if self.data.message.is_empty() { &self.name } else { &self.data.message };
        let reason = || text::one_line(words, REASON_MAX);
        match self.name.as_str() {
            "ContextOverflowError" => SessionEnd::ContextTooLong { reason: reason() },
            "ProviderAuthError" => SessionEnd::Auth { reason: reason() },
            _ => match words::classify(words, self.data.status, close) {
                SessionEnd::RateLimited { reset_at: None, reason } => {
                    SessionEnd::RateLimited { reset_at: self.retry_after(close), reason }
                }
                end => end,
            },
        }
    }

    fn retry_after(&self, close: &ProcessClose<'_>) -> Option<jiff::Timestamp> {
        let seconds = self.data.headers.get("retry-after")?.as_str()?;
        limits::reset_time(&format!("retry-after: {seconds}"), close.now)
    }
}

impl OpencodeEvents {
    fn step_finished(&mut self, part: Part) {
        if let Some(step) = part.tokens {
            *self.tokens.get_or_insert_default() += Tokens {
                input: step.input,
                output: step.output.saturating_add(step.reasoning),
                cached: step.cache.read,
                cache_write: step.cache.write,
            };
        }
        self.cost += part.cost.max(0.0);
        self.finish = part.reason;
    }

    fn usage(&self) -> Usage {
        // A model without a price is counted as 0.
        let cost = (self.cost > 0.0).then(|| Usd::from_dollars(self.cost));
        Usage {
            saved: None,
            tokens: self.tokens,
            cost,
            basis: if cost.is_some() { CostBasis::Reported } else { CostBasis::Unknown },
            model: None,
        }
    }

    fn judge(&self, stderr: &str, close: &ProcessClose<'_>) -> SessionEnd {
        if let Some(error) = &self.error {
            return error.end(close);
        }
        match self.finish.as_str() {
            "" | "tool-calls" => ended_without_result(close, self.started, stderr, None),
            "content-filter" => SessionEnd::Refused { reason: text::one_line(&self.message, REASON_MAX) },
            _ => failed_after_success(close.exec).unwrap_or_else(|| {
                let did_nothing = self.message.trim().is_empty() && self.tools == 0;
                if did_nothing { SessionEnd::Empty } else { SessionEnd::Completed }
            }),
        }
    }
}

impl Events for OpencodeEvents {
    fn event(&mut self, bytes: &[u8], notes: &mut ParserSink<'_>) {
        let Ok(event) = serde_json::from_slice::<Event>(bytes) else { return };
        match event.kind.as_str() {
            "step_start" => {
                self.finish.clear();
                // It was retried, and continues.
                self.error = None;
            }
            "text" => {
                if self.message_id != event.part.message {
                    self.message.clear();
                    self.message_id = event.part.message;
                }
                let words = event.part.text.as_deref().unwrap_or_default();
                notes.agent_text(words, true);
                append_bounded(&mut self.message, words);
            }
            "tool_use" => {
                self.tools += 1;
                let Part { tool, call_id, state, .. } = event.part;
                notes.tool("tool_use", &tool, state.input, &call_id);
                notes.result(&call_id, state.status == "error", &state.output);
            }
            "step_finish" => {
                self.step_finished(event.part);
                if let Some(tokens) = self.tokens {
                    notes.used(tokens);
                }
            }
            "error" => {
                if let Some(error) = event.error {
                    notes.activity(&error.data.message);
                    self.error = Some(error);
                }
            }
            _ => return,
        }
        self.started = true;
        self.session = event.session.or(self.session.take());
    }

    fn finish(self, stderr: &str, close: &ProcessClose<'_>) -> Parsed {
        let end = ended_by_engine(close.exec, None).unwrap_or_else(|| self.judge(stderr, close));
        let usage = self.usage();
        let response = json!({
            "format": "opencode-json",
            "session_id": self.session,
            "finish": self.finish,
            "final_message": text::tail(&self.message, RESPONSE_MAX / 2),
            "usage": usage.tokens,
            "cost": usage.cost,
            "error": self.error.as_ref().map(|e| json!({
                "name": e.name, "message": e.data.message, "status": e.data.status,
            })),
            "exit_code": close.exec.code(),
            "stderr_tail": stderr,
        });
        Parsed { end, final_message: final_message(self.message), usage, counted_over: None, response }
    }
}
