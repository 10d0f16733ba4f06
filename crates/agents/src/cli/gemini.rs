//! `gemini --output-format json` (one object) and `stream-json` (an event per line, ended by `result`). With `json`,
//! an error leaves stdout empty and is at the end of stderr; its exit code is the HTTP status mod 256.

use super::parser::{
    Parsed, ParserSink, ProcessClose, REASON_MAX, append_bounded, ended_by_engine, ended_without_result,
    failed_after_success, final_message, last_lines, no_result,
};
use super::stream::Events;
use super::words;
use crate::bounded::RESPONSE_MAX;
use crate::limits;
use crate::scan::{Cursor, fold, match_ends};
use ralph_loop_domain::ports::ExecEnd;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::{Tokens, Usage};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// HTTP statuses that come back as exit codes.
const STATUSES: [u16; 12] = [400, 401, 403, 404, 408, 429, 500, 502, 503, 504, 529, 499];
const WARNINGS_MAX: usize = 16;
/// After so many refusals in a row the CLI's remaining tries are pointless.
const HOPELESS_ATTEMPT: u32 = 3;
/// A longer wait for the provider isn't worth it: another agent can work.
const HOPELESS_DELAY_MS: f64 = 60_000.0;

#[derive(Default)]
pub(crate) struct GeminiEvents {
    started: bool,
    model: Option<String>,
    /// The current message: joins deltas; a tool use ends it.
    message: String,
    message_open: bool,
    tools: u64,
    warnings: Vec<String>,
    /// The last failed try on stderr, until something follows.
    trouble: Option<String>,
    /// The `result` event, or the object of `json`.
    result: Option<Value>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    content: Option<String>,
    #[serde(default)]
    delta: bool,
    model: Option<String>,
    tool_name: Option<String>,
    parameters: Option<Value>,
    message: Option<String>,
    #[serde(default)]
    tool_id: String,
    #[serde(default)]
    status: String,
    output: Option<String>,
}

impl GeminiEvents {
    /// Something came after all: the wait is over.
    fn going_on(&mut self, notes: &mut ParserSink<'_>) {
        self.trouble = None;
        *notes.hopeless = false;
    }

    /// A limit or an outage that was the last event.
    fn waited_for(&self, close: &ProcessClose<'_>) -> Option<SessionEnd> {
        let end = words::classify(self.trouble.as_deref()?, None, close);
        words::is_provider_error(&end).then_some(end)
    }

    fn take_result(&mut self, result: Value) {
        self.started = true;
        if let Some(response) = result["response"].as_str() {
            self.message = response.to_owned();
        }
        let calls = [&result["stats"]["tools"]["totalCalls"], &result["stats"]["tool_calls"]];
        self.tools = self.tools.max(calls.iter().filter_map(|v| v.as_u64()).max().unwrap_or(0));
        for warning in result["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.warnings.push(text::one_line(warning, REASON_MAX));
        }
        self.result = Some(result);
    }

    fn judge(&self, error: Option<&Value>, stderr: &str, close: &ProcessClose<'_>) -> SessionEnd {
        if let Some(error) = error {
            return failed(error, stderr, close);
        }
        let Some(result) = &self.result else {
            return match own_code(close.exec, stderr) {
                Some(end) => end,
                None => match status_of(close.exec) {
                    Some(status) => words::classify(&last_lines(stderr), Some(status), close),
                    None => ended_without_result(close, self.started, stderr, self.waited_for(close)),
                },
            };
        };
        let said = !self.message.trim().is_empty();
        if result["status"] == "error" {
            let reason = "the agent reported an error without words".to_owned();
            return own_code(close.exec, stderr).unwrap_or(SessionEnd::Failed { reason });
        }
        if let Some(end) = own_code(close.exec, stderr).or_else(|| failed_after_success(close.exec)) {
            return end;
        }
        match self.warnings.iter().find(|warning| warning.to_ascii_lowercase().contains("loop detected")) {
            // The CLI cut the session off: earlier text isn't the agent's own end.
            Some(warning) if !said => SessionEnd::Failed { reason: warning.clone() },
            _ if !said && self.tools == 0 => SessionEnd::Empty,
            _ => SessionEnd::Completed,
        }
    }
}

/// What an `error` object means, with the exit code.
fn failed(error: &Value, stderr: &str, close: &ProcessClose<'_>) -> SessionEnd {
    if let Some(end) = own_code(close.exec, stderr) {
        return end;
    }
    let message = error["message"].as_str().unwrap_or_default();
    let named = error["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
    match words::classify(message, named.or_else(|| status_of(close.exec)), close) {
        // A cut-off stream says only this.
        SessionEnd::Failed { reason } if reason.trim_matches(['[', ']']).ends_with("terminated") => {
            SessionEnd::Overloaded { reason }
        }
        end => end,
    }
}

/// gemini's own exit codes.
fn own_code(exec: ExecEnd, stderr: &str) -> Option<SessionEnd> {
    let ExecEnd::Exited(code) = exec else { return None };
    let what = match code {
        41 => "not logged in",
        42 => "the prompt or an argument was refused",
        52 => "the settings of gemini are wrong",
        53 => "the session's turn limit was reached",
        55 => "the folder is not trusted: pass `--skip-trust` or set GEMINI_CLI_TRUST_WORKSPACE=true",
        130 => "the session was cancelled",
        _ => return None,
    };
    let last = match stderr_error(stderr) {
        Some(error) => error["message"].as_str().unwrap_or_default().to_owned(),
        None => last_lines(stderr),
    };
    let reason = if last.is_empty() { what.to_owned() } else { format!("{what}: {last}") };
    let reason = text::one_line(&reason, REASON_MAX);
    Some(if code == 41 { SessionEnd::Auth { reason } } else { SessionEnd::Failed { reason } })
}

fn status_of(exec: ExecEnd) -> Option<u16> {
    let ExecEnd::Exited(code) = exec else { return None };
    STATUSES.into_iter().find(|status| i32::from(*status) % 256 == code)
}

/// The error object at the end of stderr, after the stack traces.
fn stderr_error(stderr: &str) -> Option<Value> {
    let starts =
        stderr.rmatch_indices('{').filter(|(at, _)| *at == 0 || stderr[..*at].ends_with('\n')).take(8);
    starts
        .filter_map(|(at, _)| {
            serde_json::Deserializer::from_str(&stderr[at..]).into_iter::<Value>().next()?.ok()
        })
        .find_map(|body| body.get("error").filter(|error| error.is_object()).cloned())
}

/// Tokens over all models. `prompt` includes `cached`; what is neither prompt nor answer is thinking, which is
/// output.
fn tokens(stats: &Value) -> Option<(Tokens, Option<String>)> {
    let models = stats["models"].as_object()?;
    let mut sum = Tokens::default();
    let mut main: Option<(&String, u64)> = None;
    for (name, model) in models {
        let counts = model.get("tokens").unwrap_or(model);
        let count = |keys: [&str; 2]| keys.iter().find_map(|key| counts[*key].as_u64()).unwrap_or(0);
        let prompt = count(["prompt", "input_tokens"]);
        let cached = count(["cached", "cached"]);
        let total = count(["total", "total_tokens"]);
        let output = count(["candidates", "output_tokens"]).max(total.saturating_sub(prompt));
        sum += Tokens { input: prompt.saturating_sub(cached), output, cached, cache_write: 0 };
        if main.is_none_or(|(_, most)| output > most) {
            main = Some((name, output));
        }
    }
    Some((sum, main.map(|(name, _)| name.clone())))
}

impl Events for GeminiEvents {
    fn event(&mut self, bytes: &[u8], notes: &mut ParserSink<'_>) {
        let Ok(event) = serde_json::from_slice::<Event<'_>>(bytes) else { return };
        match &*event.kind {
            "init" => {
                self.started = true;
                self.model = event.model;
            }
            "message" if event.role == "assistant" => {
                self.going_on(notes);
                if !(event.delta && self.message_open) {
                    self.message.clear();
                }
                let words = event.content.as_deref().unwrap_or_default();
                notes.agent_text(words, !event.delta);
                append_bounded(&mut self.message, words);
                self.message_open = true;
            }
            "tool_use" => {
                self.going_on(notes);
                self.tools += 1;
                self.message_open = false;
                let name = event.tool_name.unwrap_or_default();
                notes.tool("tool_use", &name, event.parameters.unwrap_or_default(), &event.tool_id);
            }
            "tool_result" => {
                let output = event.output.as_deref().unwrap_or_default();
                notes.result(&event.tool_id, event.status == "error", output);
            }
            "error" => {
                let words = event.message.unwrap_or_default();
                notes.activity(&words);
                if self.warnings.len() < WARNINGS_MAX {
                    self.warnings.push(text::one_line(&words, REASON_MAX));
                }
            }
            // The object of `json` has no type.
            "result" | "" => {
                if let Ok(result) = serde_json::from_slice::<Value>(bytes) {
                    let is_document =
                        ["response", "stats", "error"].iter().any(|key| result.get(key).is_some());
                    if event.kind == "result" || is_document {
                        self.going_on(notes);
                        self.take_result(result);
                    }
                }
            }
            _ => {}
        }
    }

    /// `Attempt 2 failed: … Retrying after 5258ms...`, possibly over several lines.
    fn complaint(&mut self, line: &str, notes: &mut ParserSink<'_>) {
        let folded = fold(line);
        let mut cursor = Cursor::new(&folded);
        let attempt = cursor.eat("attempt ").then(|| cursor.whole()).flatten();
        if let Some(attempt) = attempt.filter(|_| cursor.eat(" failed")) {
            notes.activity(line);
            self.trouble = Some(line.to_owned());
            *notes.hopeless |=
                (attempt >= HOPELESS_ATTEMPT && limits::looks_limited(line)) || words::is_auth_error(line);
        }
        let delay = match_ends(&folded, "retrying after ").find_map(|end| {
            let mut cursor = Cursor::new(&folded[end..]);
            cursor.decimal().filter(|_| cursor.eat("ms"))
        });
        if let (Some(trouble), Some(delay)) = (&mut self.trouble, delay)
            && delay > HOPELESS_DELAY_MS
        {
            trouble.push_str(&format!(" Retrying in {:.0}s.", delay / 1000.0));
            *notes.hopeless = true;
        }
    }

    fn waiting(&self) -> bool {
        self.trouble.is_some()
    }

    fn finish(mut self, stderr: &str, close: &ProcessClose<'_>) -> Parsed {
        let mut error = self.result.as_ref().and_then(|r| r.get("error")).filter(|e| e.is_object()).cloned();
        if error.is_none() && self.result.is_none() && !close.exec.success() {
            error = stderr_error(stderr);
        }
        let end = ended_by_engine(close.exec, self.waited_for(close))
            .unwrap_or_else(|| self.judge(error.as_ref(), stderr, close));
        let counted = self.result.as_ref().and_then(|result| tokens(&result["stats"]));
        let (tokens, model) = counted.map_or((None, None), |(tokens, model)| (Some(tokens), model));
        let usage = Usage { tokens, model: model.or_else(|| self.model.take()), ..Usage::unknown() };
        let final_message = final_message(std::mem::take(&mut self.message));
        let response = match self.result.take() {
            Some(mut result) => {
                if let Some(map) = result.as_object_mut() {
                    map.entry("response")
                        .or_insert_with(|| text::tail(&final_message, RESPONSE_MAX / 2).into());
                }
                result
            }
            None => no_result("gemini", error.as_ref(), stderr, close),
        };
        Parsed { end, final_message, usage, counted_over: None, response }
    }
}
