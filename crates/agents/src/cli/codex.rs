//! `codex exec --json`: one event per line, ended by `turn.completed` or `turn.failed`.

use super::activity::{relative, unwrapped};
use super::parser::{
    Parsed, ParserSink, ProcessClose, RESULT_READ, ended_by_engine, ended_without_result,
    failed_after_success, final_message, result_text,
};
use super::stream::Events;
use super::words;
use crate::bounded::RESPONSE_MAX;
use crate::scan::{Cursor, fold};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::{Tokens, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// After so many refusals in a row retries are pointless; codex would wait an hour for a `Retry-After`.
const HOPELESS_ATTEMPT: u32 = 3;
/// After so many tries in a row without a network (about half a minute) codex would continue forever.
const HOPELESS_OFFLINE: u32 = 3;

#[derive(Default)]
pub(crate) struct CodexEvents {
    started: bool,
    thread: Option<String>,
    message: String,
    /// Items that did something.
    done: u64,
    /// The last announced item, so that its completion isn't reported twice.
    announced: String,
    /// The last error, until something follows.
    trouble: Option<String>,
    offline: u32,
    turn: Option<Turn>,
    /// Tokens over all turns; codex counts over the whole thread.
    usage: Option<CodexUsage>,
}

enum Turn {
    Completed,
    Failed(String),
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    thread_id: Option<String>,
    item: Option<Item>,
    usage: Option<CodexUsage>,
    error: Option<ErrorMessage>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct ErrorMessage {
    #[serde(default)]
    message: String,
}

/// An item; command output can be huge, so only used fields are kept.
#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    id: String,
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    command: Option<String>,
    #[serde(default)]
    changes: Vec<Change>,
    server: Option<String>,
    tool: Option<String>,
    query: Option<String>,
    aggregated_output: Option<Box<RawValue>>,
    exit_code: Option<i64>,
}

#[derive(Deserialize)]
struct Change {
    #[serde(default)]
    path: String,
    #[serde(default)]
    kind: Value,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(default)]
struct CodexUsage {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
}

impl CodexUsage {
    /// `input_tokens` includes cache reads and writes.
    fn tokens(self) -> Tokens {
        Tokens {
            input: self
                .input_tokens
                .saturating_sub(self.cached_input_tokens)
                .saturating_sub(self.cache_write_input_tokens),
            output: self.output_tokens,
            cached: self.cached_input_tokens,
            cache_write: self.cache_write_input_tokens,
        }
    }
}

impl CodexEvents {
    /// Each retry is an error event; the turn continues unless `turn.failed` follows.
    fn error(&mut self, words: String, notes: &mut ParserSink<'_>) {
        self.started = true;
        let folded = fold(&words);
        if let Some(rest) = folded.strip_prefix("reconnecting... ") {
            notes.activity(&words);
            self.offline = if rest.starts_with("waiting for network") { self.offline + 1 } else { 0 };
            let mut cursor = Cursor::new(rest);
            let attempt = cursor.whole().unwrap_or(0);
            let last = cursor.eat("/") && cursor.whole().is_some_and(|of| attempt >= of);
            let refused = (attempt >= HOPELESS_ATTEMPT || last) && crate::limits::looks_limited(&words);
            // Retrying doesn't help a refused login.
            if refused || self.offline >= HOPELESS_OFFLINE || words::is_auth_error(&words) {
                *notes.hopeless = true;
            }
        }
        self.trouble = Some(words);
    }

    fn item(&mut self, event: &str, item: Item, notes: &mut ParserSink<'_>) {
        self.started = true;
        if item.kind == "error" {
            // A warning, such as an unknown model; the turn continues.
            return;
        }
        self.trouble = None;
        self.offline = 0;
        *notes.hopeless = false;
        if item.kind == "agent_message" {
            if event == "item.completed" {
                self.message = final_message(item.text.unwrap_or_default());
                notes.agent_text(&self.message, true);
                notes.text_entry(text::head(&self.message, RESULT_READ));
            }
            return;
        }
        let ended = event == "item.completed" && item.kind == "command_execution";
        let output = item.aggregated_output.as_deref().filter(|_| ended);
        let output = output.map_or_else(String::new, |raw| result_text(raw).into_owned());
        let (id, failed) = (item.id.clone(), item.exit_code.is_some_and(|code| code != 0));
        let told = !item.id.is_empty() && self.announced == item.id;
        if !told && event != "item.updated" {
            self.announced.clone_from(&item.id);
            self.tell(item, notes);
        }
        if ended {
            notes.result(&id, failed, &output);
        }
    }

    fn tell(&mut self, item: Item, notes: &mut ParserSink<'_>) {
        match item.kind.as_str() {
            "command_execution" => {
                self.done += 1;
                let command = item.command.unwrap_or_default();
                notes.activity(&format!("running `{}`", unwrapped(&command)));
                notes.action(&item.kind, "command_execution", json!({ "command": command }), &item.id);
            }
            "file_change" => {
                self.done += 1;
                let paths: Vec<&str> = item.changes.iter().map(|c| relative(&c.path, notes.root)).collect();
                let line = format!("editing {}", paths.join(", "));
                notes.activity(&line);
                let changes: Vec<Value> =
                    item.changes.iter().map(|c| json!({ "path": c.path, "kind": c.kind })).collect();
                notes.action(&item.kind, "file_change", json!({ "changes": changes }), &item.id);
            }
            "mcp_tool_call" => {
                self.done += 1;
                let name = format!("{}.{}", item.server.unwrap_or_default(), item.tool.unwrap_or_default());
                notes.tool(&item.kind, &name, Value::Null, &item.id);
            }
            "web_search" => {
                let query = item.query.unwrap_or_default();
                notes.tool(&item.kind, "web_search", json!({ "query": query }), &item.id);
            }
            "todo_list" => notes.activity("planning"),
            _ => {}
        }
    }
}

impl Events for CodexEvents {
    fn waiting(&self) -> bool {
        self.trouble.is_some() && self.turn.is_none()
    }

    fn event(&mut self, bytes: &[u8], notes: &mut ParserSink<'_>) {
        let Ok(event) = serde_json::from_slice::<Event>(bytes) else { return };
        match event.kind.as_str() {
            "thread.started" => {
                self.started = true;
                self.thread = event.thread_id;
            }
            "turn.started" => {
                self.started = true;
                self.turn = None;
            }
            "turn.completed" => {
                self.trouble = None;
                *notes.hopeless = false;
                self.usage = event.usage.or(self.usage);
                if let Some(usage) = self.usage {
                    notes.used(usage.tokens());
                }
                self.turn = Some(Turn::Completed);
            }
            "turn.failed" => {
                *notes.hopeless = false;
                self.usage = event.usage.or(self.usage);
                let words = event.error.map(|error| error.message).unwrap_or_default();
                self.turn = Some(Turn::Failed(words));
            }
            "error" => self.error(event.message.unwrap_or_default(), notes),
            "item.started" | "item.updated" | "item.completed" => {
                if let Some(item) = event.item {
                    self.item(&event.kind, item, notes);
                }
            }
            _ => {}
        }
    }

    fn finish(self, stderr: &str, close: &ProcessClose<'_>) -> Parsed {
        // Other errors than limits, outages and refused logins don't explain an end without a result.
        let trouble = self
            .trouble
            .as_deref()
            .map(|words| words::classify(words, None, close))
            .filter(words::is_provider_error);
        let did_nothing = self.message.trim().is_empty() && self.done == 0;
        let end = ended_by_engine(close.exec, trouble.clone()).unwrap_or_else(|| match &self.turn {
            Some(Turn::Failed(words)) => words::classify(words, None, close),
            Some(Turn::Completed) => failed_after_success(close.exec).unwrap_or(if did_nothing {
                SessionEnd::Empty
            } else {
                SessionEnd::Completed
            }),
            None => ended_without_result(close, self.started, stderr, trouble),
        });
        let usage = Usage { tokens: self.usage.map(CodexUsage::tokens), ..Usage::unknown() };
        let error = match &self.turn {
            Some(Turn::Failed(words)) => Some(words.as_str()),
            _ => self.trouble.as_deref(),
        };
        let response = json!({
            "format": "codex-json",
            "thread_id": self.thread,
            "final_message": text::tail(&self.message, RESPONSE_MAX / 2),
            "usage": usage.tokens,
            "error": error,
            "exit_code": close.exec.code(),
            "stderr_tail": stderr,
        });
        Parsed { end, final_message: self.message, usage, counted_over: self.thread, response }
    }
}
