//! `claude -p --output-format json` (one object, or an array with `--verbose`) and `stream-json` (an object per
//! line). All three are the same events; the last one is the result.

pub(super) mod claude_result;

use super::activity::only_looks;
use super::parser::{
    Parsed, ParserSink, ProcessClose, REASON_MAX, append_bounded, ended_by_engine, ended_without_result,
    final_message, no_result, result_text,
};
use super::stream::Events;
use crate::cli::claude::claude_result::{StreamFacts, judge, tokens_of, usage};
use crate::limits;
use crate::objects::leading_type;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::Tokens;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A longer wait for the provider isn't worth it: another agent can work.
const HOPELESS_DELAY_MS: u64 = 60_000;
/// After so many refusals in a row the CLI's remaining tries are pointless.
const HOPELESS_ATTEMPT: u64 = 3;
/// Most tool uses whose results are awaited at the same time.
const AWAITED_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct ClaudeEvents {
    seen: StreamFacts,
    /// The last result event.
    result: Option<Value>,
    /// The last retry notice, until something follows.
    retry: Option<Retry>,
    last_message: String,
    awaited: Vec<String>,
}

/// `system/api_retry`: the CLI waits for the provider.
#[derive(Deserialize)]
struct Retry {
    #[serde(default)]
    attempt: u64,
    #[serde(default)]
    max_retries: u64,
    #[serde(default)]
    retry_delay_ms: f64,
    error_status: Option<u16>,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Turn {
    message: Message,
    parent_tool_use_id: Option<String>,
    #[serde(default)]
    is_api_error_message: bool,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: String,
    model: Option<String>,
    #[serde(default)]
    content: Vec<Block>,
    usage: Option<Value>,
}

/// A content block; tool results can be huge, so only used fields are kept.
#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
    tool_use_id: Option<String>,
    content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: Option<bool>,
}

impl ClaudeEvents {
    pub(super) fn last_output(&self) -> u64 {
        self.seen.last_output
    }

    fn retrying(&mut self, retry: Retry, notes: &mut ParserSink<'_>) {
        self.seen.started = true;
        if *notes.hopeless {
            // The process is already being ended for an earlier notice.
            return;
        }
        if !retry.is_auth() {
            let delay = text::duration(std::time::Duration::from_millis(retry.delay_ms()));
            notes.activity(&format!("waiting {delay} for the provider ({})", retry.reason()));
        }
        if retry.is_hopeless() {
            *notes.hopeless = true;
        }
        self.retry = Some(retry);
    }

    /// Something came after all: the wait is over.
    fn going_on(&mut self, notes: &mut ParserSink<'_>) {
        self.retry = None;
        *notes.hopeless = false;
    }

    fn assistant(&mut self, turn: Turn, notes: &mut ParserSink<'_>) {
        self.seen.started = true;
        if turn.is_api_error_message {
            return;
        }
        self.going_on(notes);
        let message = turn.message;
        // One message comes as several events, each with the same usage.
        let fresh = message.id.is_empty() || message.id != self.last_message;
        if fresh {
            self.last_message = message.id;
            if let Some(usage) = &message.usage {
                let tokens = tokens_of(usage);
                self.seen.last_output = tokens.output;
                self.seen.tokens += tokens;
                notes.used(self.seen.tokens);
            }
        }
        if let Some(model) = message.model {
            self.seen.model = Some(model);
        }
        let mut said = String::new();
        let mut used = false;
        for block in message.content {
            match (block.kind.as_str(), block.name) {
                ("text", _) => {
                    let words = block.text.unwrap_or_default();
                    notes.agent_text(&words, true);
                    append_bounded(&mut said, &words);
                }
                ("tool_use", Some(name)) => {
                    self.seen.tools += 1;
                    let id = block.id.unwrap_or_default();
                    notes.tool("tool_use", &name, block.input.unwrap_or_default(), &id);
                    used = true;
                    if !only_looks(&name) && self.awaited.len() < AWAITED_MAX {
                        self.awaited.push(id);
                    }
                }
                _ => {}
            }
        }
        if !used {
            notes.text_entry(&said);
        }
        // A subagent's message isn't the session's.
        if turn.parent_tool_use_id.is_none() && !said.trim().is_empty() {
            if fresh {
                self.seen.said = said;
            } else {
                append_bounded(&mut self.seen.said, &said);
            }
        }
    }

    fn tool_results(&mut self, turn: &Turn, notes: &mut ParserSink<'_>) {
        for block in turn.message.content.iter().filter(|block| block.kind == "tool_result") {
            let Some(id) = &block.tool_use_id else { continue };
            let text = block.content.as_deref().map_or(Cow::Borrowed(""), result_text);
            notes.result(id, block.is_error == Some(true), &text);
            let Some(at) = self.awaited.iter().position(|awaited| awaited == id) else { continue };
            self.awaited.swap_remove(at);
            if block.is_error != Some(true) {
                self.seen.acted += 1;
            }
        }
    }

    /// A limit or an outage that was the last event.
    fn trouble(&self, close: &ProcessClose<'_>) -> Option<SessionEnd> {
        let reset = self.seen.reset_at(close.now);
        match &self.retry {
            Some(retry) if retry.error_status == Some(429) => Some(SessionEnd::RateLimited {
                reset_at: reset.or_else(|| retry.reset_at(close)),
                reason: retry.reason(),
            }),
            Some(retry) if retry.is_auth() => Some(SessionEnd::Auth { reason: retry.reason() }),
            Some(retry) if retry.error_status.is_none() => {
                Some(SessionEnd::Unreachable { reason: retry.reason() })
            }
            Some(retry) => Some(SessionEnd::Overloaded { reason: retry.reason() }),
            None if self.seen.rejected && self.result.is_none() => Some(SessionEnd::RateLimited {
                reset_at: reset,
                reason: "the provider rejects requests until the limit resets".into(),
            }),
            None => None,
        }
    }
}

impl Retry {
    fn delay_ms(&self) -> u64 {
        self.retry_delay_ms.clamp(0.0, 1e12) as u64
    }
    fn is_hopeless(&self) -> bool {
        let limited = self.error_status == Some(429)
            && (self.delay_ms() > HOPELESS_DELAY_MS || self.attempt >= HOPELESS_ATTEMPT);
        limited || self.is_auth()
    }
    /// Retrying doesn't help a refused login.
    fn is_auth(&self) -> bool {
        matches!(self.error_status, Some(401 | 403))
    }
    fn words(&self) -> String {
        let error = if self.error.is_empty() { "no answer" } else { &self.error };
        match self.error_status {
            Some(status) => format!("{} {status}", error.replace('_', " ")),
            None => error.replace('_', " "),
        }
    }
    fn reason(&self) -> String {
        if self.is_auth() {
            return format!("the provider refuses the login ({})", self.words());
        }
        text::one_line(&format!("{}, try {} of {}", self.words(), self.attempt, self.max_retries), REASON_MAX)
    }
    /// A long wait shows when the limit ends, and so does one of whole seconds: a `Retry-After`. The CLI's own backoff
    /// is shorter and has a random part.
    fn reset_at(&self, close: &ProcessClose<'_>) -> Option<jiff::Timestamp> {
        let whole = self.delay_ms() > 0 && self.retry_delay_ms % 1000.0 == 0.0;
        let seconds = (whole || self.delay_ms() > HOPELESS_DELAY_MS).then(|| self.delay_ms() / 1000)?;
        limits::reset_time(&format!("retry in {seconds}s"), close.now)
    }
}

impl Events for ClaudeEvents {
    fn retrying(&self) -> bool {
        self.retry.is_some()
    }

    fn event(&mut self, bytes: &[u8], notes: &mut ParserSink<'_>) {
        // Its kind comes first, so that the others needn't be parsed.
        let head = match leading_type(bytes) {
            Some("system") | None => match serde_json::from_slice::<Head<'_>>(bytes) {
                Ok(head) => head,
                Err(_) => return,
            },
            Some(kind) => Head { kind: kind.into(), subtype: "".into() },
        };
        match (&*head.kind, &*head.subtype) {
            ("system", "init") => {
                self.seen.started = true;
                if let Ok(init) = serde_json::from_slice::<Value>(bytes) {
                    self.seen.model = init.get("model").and_then(Value::as_str).map(str::to_owned);
                }
            }
            ("system", "api_retry") => {
                if let Ok(retry) = serde_json::from_slice(bytes) {
                    self.retrying(retry, notes);
                }
            }
            ("rate_limit_event", _) => {
                if let Ok(event) = serde_json::from_slice::<Value>(bytes) {
                    self.seen.limit(&event["rate_limit_info"]);
                }
            }
            ("assistant", _) => {
                if let Ok(turn) = serde_json::from_slice(bytes) {
                    self.assistant(turn, notes);
                }
            }
            ("user", _) => {
                if let Ok(turn) = serde_json::from_slice(bytes) {
                    self.tool_results(&turn, notes);
                }
            }
            ("result", _) => {
                if let Ok(result) = serde_json::from_slice(bytes) {
                    self.seen.started = true;
                    self.going_on(notes);
                    self.result = Some(result);
                }
            }
            _ => {}
        }
    }

    fn finish(mut self, stderr: &str, close: &ProcessClose<'_>) -> Parsed {
        let trouble = self.trouble(close);
        let result = self.result.take();
        let usage = usage(result.as_ref(), &self.seen);
        // The result of an error is the provider's message, not the agent's.
        let answer = result.as_ref().filter(|r| r["is_error"] != true).and_then(|r| r["result"].as_str());
        let message = match answer {
            Some(text) if !text.trim().is_empty() => text.to_owned(),
            _ => std::mem::take(&mut self.seen.said),
        };
        let end = match (ended_by_engine(close.exec, trouble.clone()), &result) {
            (Some(end), _) => end,
            (None, Some(result)) => judge(result, &message, &self.seen, close),
            (None, None) => ended_without_result(close, self.seen.started, stderr, trouble),
        };
        let final_message = final_message(message);
        let counted_over = result.as_ref().and_then(|r| r["session_id"].as_str()).map(str::to_owned);
        let response = result.unwrap_or_else(|| no_result("claude", None, stderr, close));
        Parsed { end, final_message, usage, counted_over, response }
    }
}

impl StreamFacts {
    fn limit(&mut self, info: &Value) {
        self.started = true;
        // A later request may be accepted again.
        self.rejected = info["status"] == "rejected";
        if self.rejected {
            self.resets_at = info["resetsAt"].as_i64().or(self.resets_at);
        }
    }
    pub(super) fn reset_at(&self, now: jiff::Timestamp) -> Option<jiff::Timestamp> {
        self.resets_at.and_then(|epoch| limits::reset_epoch(epoch, now))
    }
    pub(super) fn partial_tokens(&self) -> Option<Tokens> {
        (self.tokens != Tokens::default()).then_some(self.tokens)
    }
}
