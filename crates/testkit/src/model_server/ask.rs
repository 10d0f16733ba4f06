//! Parses a request of any wire format.

use super::script::Toolless;
use super::tools::{Offered, ToolShape};
use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Anthropic,
    Responses,
    Chat,
    /// Gemini `generateContent`.
    Gemini,
}

impl Wire {
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Gemini => "gemini",
        }
    }
}

#[derive(Debug)]
pub(super) struct Ask {
    pub wire: Wire,
    pub model: String,
    pub stream: bool,
    /// Whether to send usage in a stream; chat completions send it only on request.
    pub stream_usage: bool,
    pub tools: Vec<Offered>,
    pub turn: usize,
    pub session: Option<usize>,
    pub schema: Option<Value>,
    known_cli: bool,
}

/// User agents of agent CLIs, whose calls without tools are titles and routers.
const KNOWN_CLIS: &[&str] = &["claude-cli", "claude-code", "codex", "geminicli", "opencode", "qwencode"];

/// Older Gemini CLIs start each conversation with a fixed exchange that involves no model.
const NO_ANSWER: &str = "Got it. Thanks for the context!";

impl Ask {
    pub(super) fn read(
        wire: Wire,
        body: &Value,
        model: Option<&str>,
        stream: bool,
        user_agent: &str,
    ) -> Self {
        let agent = user_agent.to_ascii_lowercase();
        let mut answers = Answers::default();
        for item in items(wire, body) {
            answers.take(wire, item);
        }
        let before = body["previous_response_id"].as_str().and_then(CallTag::read);
        Self {
            wire,
            model: model.or(body["model"].as_str()).unwrap_or("scripted").to_owned(),
            stream: stream || body["stream"] == true,
            stream_usage: body["stream_options"]["include_usage"] == true,
            tools: tools(wire, body),
            turn: answers.count + before.map_or(0, |tag| tag.turn + 1),
            session: answers.session.or(before.map(|tag| tag.session)),
            schema: schema(wire, body),
            known_cli: KNOWN_CLIS.iter().any(|cli| agent.contains(cli)),
        }
    }

    /// Whether this is a side request rather than a turn, such as one for a title or a router.
    pub(super) fn is_side(&self, toolless: Toolless) -> bool {
        self.tools.is_empty()
            && match toolless {
                Toolless::Auto => self.known_cli,
                Toolless::Script => false,
                Toolless::Side => true,
            }
    }
}

/// Session and turn, encoded in every id that this server issues, so that a later request shows where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallTag {
    pub session: usize,
    pub turn: usize,
}

impl CallTag {
    /// `prefix_s0t1n2`.
    pub(super) fn id(self, prefix: &str, number: usize) -> String {
        format!("{prefix}_s{}t{}n{number}", self.session, self.turn)
    }
    pub(super) fn read(id: &str) -> Option<Self> {
        let (session, rest) = id.rsplit_once("_s")?.1.split_once('t')?;
        let turn = rest.split_once('n')?.0;
        Some(Self { session: session.parse().ok()?, turn: turn.parse().ok()? })
    }
}

/// Counts answers. Items that follow each other without anything of the user's between are one answer, and so are calls
/// with one tag: some clients put each result right behind its call.
#[derive(Default)]
struct Answers {
    count: usize,
    inside: bool,
    tags: BTreeSet<CallTag>,
    session: Option<usize>,
}

impl Answers {
    fn take(&mut self, wire: Wire, item: &Value) {
        if !is_answer(wire, item) {
            self.inside = false;
            return;
        }
        let tag = call_ids(wire, item).into_iter().find_map(CallTag::read);
        let is_known = tag.is_some_and(|tag| !self.tags.insert(tag));
        self.session = tag.map(|tag| tag.session).or(self.session);
        if !self.inside && !is_known {
            self.count += 1;
        }
        self.inside = true;
    }
}

fn items(wire: Wire, body: &Value) -> &[Value] {
    let list = match wire {
        Wire::Anthropic | Wire::Chat => &body["messages"],
        Wire::Responses => &body["input"],
        Wire::Gemini => &body["contents"],
    };
    list.as_array().map_or(&[], Vec::as_slice)
}

fn is_answer(wire: Wire, item: &Value) -> bool {
    let role = item["role"].as_str().unwrap_or_default();
    let is_answer = match wire {
        Wire::Anthropic | Wire::Chat => role == "assistant",
        Wire::Gemini => role == "model",
        Wire::Responses => {
            let kind = item["type"].as_str().unwrap_or("message");
            role == "assistant" || kind == "reasoning" || (kind.ends_with("_call"))
        }
    };
    is_answer && !is_opening(item)
}

fn is_opening(item: &Value) -> bool {
    let text = [&item["content"], &item["content"][0]["text"], &item["parts"][0]["text"]];
    text.iter().any(|text| text.as_str() == Some(NO_ANSWER))
}

fn call_ids(wire: Wire, item: &Value) -> Vec<&str> {
    let of = |list: &'static str, id: &'static str| {
        item[list].as_array().into_iter().flatten().filter_map(move |part| part[id].as_str()).collect()
    };
    match wire {
        Wire::Anthropic => of("content", "id"),
        Wire::Chat => of("tool_calls", "id"),
        Wire::Responses => item["call_id"].as_str().into_iter().collect(),
        Wire::Gemini => item["parts"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|part| part["functionCall"]["id"].as_str())
            .collect(),
    }
}

fn tools(wire: Wire, body: &Value) -> Vec<Offered> {
    let list = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    match wire {
        Wire::Anthropic => list.iter().filter_map(|t| offered(t, &t["input_schema"])).collect(),
        Wire::Chat => {
            list.iter().filter_map(|t| offered(&t["function"], &t["function"]["parameters"])).collect()
        }
        Wire::Responses => list.iter().filter_map(|t| offered(t, &t["parameters"])).collect(),
        Wire::Gemini => list
            .iter()
            .flat_map(|group| group["functionDeclarations"].as_array().into_iter().flatten())
            .filter_map(|t| {
                let schema = if t["parametersJsonSchema"].is_object() {
                    &t["parametersJsonSchema"]
                } else {
                    &t["parameters"]
                };
                offered(t, schema)
            })
            .collect(),
    }
}

fn offered(tool: &Value, schema: &Value) -> Option<Offered> {
    let kind = tool["type"].as_str().unwrap_or_default();
    // Anthropic calls every tool of a client "custom", and those have a schema.
    let is_custom = kind == "custom" && !tool["input_schema"].is_object();
    let shape = if is_custom { ToolShape::Custom } else { ToolShape::Json };
    let name = tool["name"].as_str()?;
    Some(Offered { name: name.to_owned(), shape, schema: schema.clone() })
}

fn schema(wire: Wire, body: &Value) -> Option<Value> {
    let found = match wire {
        Wire::Anthropic => &body["output_config"]["format"]["schema"],
        Wire::Responses => &body["text"]["format"]["schema"],
        Wire::Chat => &body["response_format"]["json_schema"]["schema"],
        Wire::Gemini => {
            let config = &body["generationConfig"];
            match &config["responseJsonSchema"] {
                Value::Null => &config["responseSchema"],
                schema => schema,
            }
        }
    };
    found.is_object().then(|| found.clone())
}
