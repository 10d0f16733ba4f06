//! Turns a request into a response.

use super::ask::{Ask, CallTag, Wire};
use super::errors::error;
use super::fault::FaultKind;
use super::http::Request;
use super::route::{Endpoint, Route, Streams, route};
use super::scenarios::SCENARIOS;
use super::script::{Action, Stop, Turn, Usage};
use super::state::{Plan, SeenRequest, State};
use super::tools::{fitting, parts};
use super::wire::{self, Event, Reply};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct ServerResponse {
    pub status: u16,
    pub content_type: &'static str,
    pub headers: Vec<(String, String)>,
    pub body: Body,
    pub ending: Ending,
    /// Silence before the first byte.
    pub wait: Duration,
    /// No byte before this file exists.
    pub held_until: Option<std::path::PathBuf>,
    /// Time from the first to the last event.
    pub spread: Duration,
}

#[derive(Debug)]
pub(super) enum Body {
    Whole(Vec<u8>),
    Events(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    Cut,
    Stall(Duration),
    /// Cut before the first byte.
    Hangup,
}

impl ServerResponse {
    fn json(status: u16, body: &Value) -> Self {
        Self::whole(status, "application/json", body.to_string().into_bytes())
    }
    fn whole(status: u16, content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type,
            headers: Vec::new(),
            body: Body::Whole(body),
            ending: Ending::Whole,
            wait: Duration::ZERO,
            held_until: None,
            spread: Duration::ZERO,
        }
    }
    fn events(events: &[Event]) -> Self {
        let lines = events.iter().map(Event::lines).collect();
        Self { body: Body::Events(lines), ..Self::whole(200, "text/event-stream; charset=utf-8", Vec::new()) }
    }
    pub(super) fn unreadable(status: u16, why: &str) -> Self {
        Self::json(status, &json!({"error": {"type": "invalid_request_error", "message": why}}))
    }
}

/// A pause between the start of a stream and its error, so that a client reads them separately.
const APART: Duration = Duration::from_millis(30);

#[derive(Debug)]
pub(super) struct Brain {
    pub state: Mutex<State>,
    pub started: Instant,
}

impl Brain {
    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answer(&self, request: &Request) -> ServerResponse {
        let mut answer = match route(&request.target) {
            Route::Health => ServerResponse::json(200, &json!({"ok": true})),
            Route::State => ServerResponse::json(200, &self.lock().shown()),
            Route::Reset => {
                self.lock().reset();
                ServerResponse::json(200, &json!({"ok": true}))
            }
            Route::Scenario { scenario, run, endpoint } => self.scenario(request, (scenario, run), &endpoint),
            Route::Unknown => ServerResponse::unreadable(
                404,
                "no such path: base URLs are /s/<scenario>/<run-id>, see also /__health",
            ),
        };
        let number = self.lock().next_number();
        for name in ["request-id", "x-request-id"] {
            answer.headers.push((name.into(), format!("req_scripted_{number:06}")));
        }
        answer
    }

    fn scenario(&self, request: &Request, names: (&str, &str), endpoint: &Endpoint<'_>) -> ServerResponse {
        let Some(script) = self.lock().find(names.0) else {
            let known: Vec<_> = SCENARIOS.iter().map(|(name, _)| *name).collect();
            let why =
                format!("no scenario {}: there are {}, and the scripts given", names.0, known.join(", "));
            return ServerResponse::unreadable(404, &why);
        };
        if request.header("content-encoding").is_some_and(|e| e != "identity") {
            return ServerResponse::unreadable(415, "this server takes bodies without content encoding only");
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let seen = SeenRequest {
            method: request.method.clone(),
            path: request.target.clone(),
            headers: request.headers.clone(),
            body: body.clone(),
            at: self.started.elapsed(),
            turn: None,
            side: false,
            fault: None,
        };
        let Endpoint::Answer { wire, model, streams } = *endpoint else {
            self.lock().note(names.0, names.1, seen);
            return aside(endpoint, request);
        };
        if request.method != "POST" || !body.is_object() {
            self.lock().note(names.0, names.1, seen);
            return ServerResponse::unreadable(400, "expected a POST with a JSON object");
        }
        let streamed = streams == Streams::Events || streams == Streams::Array;
        let agent = request.header("user-agent").unwrap_or_default();
        let ask = Ask::read(wire, &body, model, streamed, agent);
        let plan = self.lock().plan(names, &script, &ask, seen);
        let (turn, tag, fault) = match plan {
            Plan::Side => (side_turn(&ask), CallTag { session: 0, turn: 0 }, None),
            Plan::Turn { turn, session, fault } => (*turn, CallTag { session, turn: ask.turn }, fault),
        };
        let reply = reply(&turn, &ask, &body, tag);
        let mut answer = spoilt(&reply, &ask, streams, fault.as_ref());
        answer.wait += Duration::from_millis(turn.wait_ms);
        answer.spread += Duration::from_millis(turn.spread_ms);
        answer
    }
}

fn reply(turn: &Turn, ask: &Ask, body: &Value, tag: CallTag) -> Reply {
    let prefix = match ask.wire {
        Wire::Anthropic => "msg",
        Wire::Responses => "resp",
        Wire::Chat => "chatcmpl",
        Wire::Gemini => "gem",
    };
    Reply {
        id: tag.id(prefix, 0),
        model: ask.model.clone(),
        parts: parts(&turn.actions, &ask.tools, body, tag),
        stop: turn.stop,
        usage: turn.usage.unwrap_or_default(),
    }
}

/// A title, or a value that fits a router's schema.
fn side_turn(ask: &Ask) -> Turn {
    let text = match &ask.schema {
        Some(schema) => fitting(schema, 0).to_string(),
        None => "Scripted work".to_owned(),
    };
    Turn::from(Action::text(text)).with_usage(Usage::SIDE).with_stop(Stop::Natural)
}

fn said(reply: &Reply, ask: &Ask, streams: Streams) -> ServerResponse {
    if streams == Streams::Array {
        let events = wire::events(reply, ask);
        let list: Vec<String> = events.into_iter().map(|event| event.data).collect();
        return ServerResponse::whole(
            200,
            "application/json",
            format!("[{}]", list.join(",\n")).into_bytes(),
        );
    }
    if ask.stream {
        return ServerResponse::events(&wire::events(reply, ask));
    }
    ServerResponse::json(200, &wire::plain(reply, ask.wire))
}

fn spoilt(reply: &Reply, ask: &Ask, streams: Streams, fault: Option<&FaultKind>) -> ServerResponse {
    let Some(kind) = fault else { return said(reply, ask, streams) };
    match kind {
        FaultKind::Http { status, headers, body } => {
            let mut answer = ServerResponse::whole(*status, "application/json", body.clone().into_bytes());
            answer.headers.clone_from(headers);
            answer
        }
        FaultKind::StreamError | FaultKind::StreamRateLimit if ask.stream && streams != Streams::Array => {
            let told = error(ask.wire, kind, &ask.model).map(|e| e.body).unwrap_or_default();
            ServerResponse {
                spread: APART,
                ..ServerResponse::events(&wire::failing_events(reply, ask, &told))
            }
        }
        FaultKind::Cut => ServerResponse { ending: Ending::Cut, ..said(reply, ask, streams) },
        FaultKind::Stall { ms } => {
            ServerResponse { ending: Ending::Stall(Duration::from_millis(*ms)), ..said(reply, ask, streams) }
        }
        FaultKind::SlowFirst { ms } => {
            ServerResponse { wait: Duration::from_millis(*ms), ..said(reply, ask, streams) }
        }
        FaultKind::Held { until } => {
            ServerResponse { held_until: Some(until.clone()), ..said(reply, ask, streams) }
        }
        FaultKind::Hangup => ServerResponse { ending: Ending::Hangup, ..said(reply, ask, streams) },
        FaultKind::Garbled => garbled(reply, ask, streams),
        kind => match error(ask.wire, kind, &ask.model) {
            Some(error) => {
                ServerResponse { headers: error.headers, ..ServerResponse::json(error.status, &error.body) }
            }
            None => said(reply, ask, streams),
        },
    }
}

/// Half an event, bytes that aren't UTF-8, and an end that looks regular.
fn garbled(reply: &Reply, ask: &Ask, streams: Streams) -> ServerResponse {
    let mut answer = said(reply, ask, streams);
    match &mut answer.body {
        Body::Whole(body) => *body = b"<html><body>502 Bad Gateway</body></html>".to_vec(),
        Body::Events(lines) => {
            lines.truncate(2);
            lines.push("data: {\"type\": \"content_block_de\n\n".into());
            lines.push("<html>\u{0}\u{fffd} this isn't an event</html>\n\n".into());
        }
    }
    answer
}

/// Every response except the model's answers.
fn aside(endpoint: &Endpoint<'_>, request: &Request) -> ServerResponse {
    // Four bytes per token: deterministic, and accurate enough for clients that plan with it.
    let tokens = request.body.len() / 4;
    match endpoint {
        Endpoint::CountTokens { wire: Wire::Gemini } => {
            ServerResponse::json(200, &json!({"totalTokens": tokens}))
        }
        Endpoint::CountTokens { .. } => ServerResponse::json(200, &json!({"input_tokens": tokens})),
        Endpoint::Models { wire: Wire::Gemini } => ServerResponse::json(
            200,
            &json!({"models": [{"name": "models/scripted", "displayName": "Scripted", "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536, "supportedGenerationMethods": ["generateContent", "countTokens"]}]}),
        ),
        Endpoint::Models { .. } => {
            let is_anthropic = request.header("anthropic-version").is_some();
            let list = if is_anthropic {
                json!({"data": [{"type": "model", "id": "scripted", "display_name": "Scripted",
                    "created_at": "2026-01-01T00:00:00Z"}], "has_more": false, "first_id": "scripted", "last_id": "scripted"})
            } else {
                json!({"object": "list", "data": [{"id": "scripted", "object": "model", "created": 1_767_225_600,
                    "owned_by": "ralph"}]})
            };
            ServerResponse::json(200, &list)
        }
        _ => ServerResponse::unreadable(404, "no such endpoint below this base URL"),
    }
}
