//! Parses a model's answer against the contract: strictly, with messages that let the model fix it.

use super::contract::{
    ACTIONS_MAX, Action, COMMAND_SECONDS, COMMAND_SECONDS_MAX, Claims, Contract, OnError, WORDS_MAX,
};
use super::json::only_object;
use crate::bounded::kind;
use ralph_loop_protocol::display::text::nearest;
use serde_json::{Map, Value};
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Most problems reported at once; the first are the most useful.
const PROBLEMS_MAX: usize = 8;
const TYPES: &[&str] =
    &["run", "patch", "write", "commit", "rotate", "pause", "stop_success", "stop_failure"];

/// Why an answer doesn't match the contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntakeError {
    #[error("the answer contains no JSON object; answer with the object of the contract and nothing else")]
    NoObject,
    #[error("the answer holds {0} JSON objects; answer with exactly one")]
    Several(usize),
    /// It is JSON, but not an object.
    #[error("the answer is {0}; expected an object with `summary` and `actions`")]
    NotAnObject(&'static str),
    /// The JSON is truncated.
    #[error("the JSON object ends before it is complete; a bracket or a quote is missing")]
    CutOff,
    /// The provider cut the answer at its maximum length.
    #[error(
        "the answer was cut at the longest that the model may give, before its JSON was complete; \
         answer with less: fewer actions, `patch` instead of `write`, and the rest in a later session"
    )]
    MaxTokens,
    /// No real answer is this long.
    #[error("the answer has {0} bytes; at most 8 MiB are read")]
    TooLong(usize),
    #[error("the JSON cannot be read: {what}, in line {line}, near `{near}`")]
    Syntax {
        line: usize,
        what: String,
        /// The text around it.
        near: String,
    },
    #[error("{0}")]
    Contract(Problems),
}

/// All contract violations, with positions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    pub fn lines(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, line) in self.0.iter().take(PROBLEMS_MAX).enumerate() {
            if nth > 0 {
                f.write_char('\n')?;
            }
            f.write_str(line)?;
        }
        match self.0.len().saturating_sub(PROBLEMS_MAX) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// Parses an answer; also returns it as JSON.
pub fn read(text: &str) -> Result<(Contract, Value), IntakeError> {
    let map = only_object(text)?;
    let contract = validate(&map).map_err(IntakeError::Contract)?;
    Ok((contract, Value::Object(map)))
}

fn validate(map: &Map<String, Value>) -> Result<Contract, Problems> {
    let mut found = Problems::default();
    let top = Fields { map, at: String::new() };
    top.known(&["summary", "actions", "claims"], &mut found);
    let summary = top.words("summary", &mut found);
    let mut actions = Vec::new();
    for (at, value) in top.list("actions", Some(ACTIONS_MAX), true, &mut found) {
        match value {
            Value::Object(map) => actions.extend(action(&Fields { map, at }, &mut found)),
            other => found.add(&at, &format!("expected an object, found {}", kind(other))),
        }
    }
    let claims = match map.get("claims") {
        None => Claims::default(),
        Some(Value::Object(map)) => claims(&Fields { map, at: "claims".to_owned() }, &mut found),
        Some(other) => {
            found.add("claims", &format!("expected an object, found {}", kind(other)));
            Claims::default()
        }
    };
    match (summary, found.0.is_empty()) {
        (Some(summary), true) => Ok(Contract { summary, actions, claims }),
        _ => Err(found),
    }
}

fn claims(fields: &Fields<'_>, found: &mut Problems) -> Claims {
    fields.known(&["checkboxes_checked", "milestones_completed"], found);
    Claims {
        checkboxes_checked: fields.texts("checkboxes_checked", found),
        milestones_completed: fields.texts("milestones_completed", found),
    }
}

fn action(fields: &Fields<'_>, found: &mut Problems) -> Option<Action> {
    let Some(word) = fields.map.get("type") else {
        found.add(&fields.place("type"), &format!("missing; expected one of {}", TYPES.join(", ")));
        return None;
    };
    let Value::String(word) = word else {
        found.add(&fields.place("type"), &format!("expected a text, found {}", kind(word)));
        return None;
    };
    match word.as_str() {
        "run" => {
            fields.known(&["type", "command", "cwd", "timeout_s", "continue_on_error"], found);
            let timeout = fields.seconds("timeout_s", found);
            let cwd = fields.map.contains_key("cwd").then(|| fields.path("cwd", found)).flatten();
            let on_error = fields.on_error(found);
            Some(Action::Run { command: fields.text("command", found)?, cwd, timeout, on_error })
        }
        "patch" => {
            fields.known(&["type", "path", "patch", "continue_on_error"], found);
            let (path, patch) = (fields.path("path", found), fields.text("patch", found));
            let on_error = fields.on_error(found);
            Some(Action::Patch { path: path?, patch: patch?, on_error })
        }
        "write" => {
            fields.known(&["type", "path", "content", "append", "continue_on_error"], found);
            let (path, content) = (fields.path("path", found), fields.any_text("content", found));
            let append = fields.flag("append", found);
            let on_error = fields.on_error(found);
            Some(Action::Write { path: path?, content: content?, append, on_error })
        }
        "commit" => {
            fields.known(&["type", "message", "paths"], found);
            let mut paths = Vec::new();
            for (at, value) in fields.list("paths", None, false, found) {
                paths.extend(path_value(&at, value, found));
            }
            Some(Action::Commit { message: fields.words("message", found)?, paths })
        }
        "rotate" | "pause" | "stop_success" | "stop_failure" => {
            fields.known(&["type", "reason"], found);
            let reason = fields.words("reason", found)?;
            Some(match word.as_str() {
                "rotate" => Action::Rotate { reason },
                "pause" => Action::Pause { reason },
                "stop_success" => Action::StopSuccess { reason },
                _ => Action::StopFailure { reason },
            })
        }
        other => {
            let near = nearest(other, TYPES.iter().copied());
            let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            let other = ralph_loop_protocol::display::text::one_line(other, 40);
            let what = format!("\"{other}\" is not one of {}{hint}", TYPES.join(", "));
            found.add(&fields.place("type"), &what);
            None
        }
    }
}

fn path_value(at: &str, value: &Value, found: &mut Problems) -> Option<String> {
    match value {
        Value::String(path) if path.is_empty() => found.add(at, "expected a path, found an empty text"),
        Value::String(path) if path.starts_with('/') => {
            found.add(at, "expected a path relative to the workspace, found an absolute one");
        }
        Value::String(path) => return Some(path.clone()),
        other => found.add(at, &format!("expected a path, found {}", kind(other))),
    }
    None
}

impl Problems {
    fn add(&mut self, at: &str, what: &str) {
        self.0.push(format!("{}: {what}", if at.is_empty() { "the object" } else { at }));
    }
}

struct Fields<'a> {
    map: &'a Map<String, Value>,
    at: String,
}

impl<'a> Fields<'a> {
    fn place(&self, key: &str) -> String {
        if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) }
    }

    /// Reports unknown keys.
    fn known(&self, keys: &[&str], found: &mut Problems) {
        for key in self.map.keys().filter(|key| !keys.contains(&key.as_str())) {
            let free = keys.iter().copied().filter(|known| !self.map.contains_key(*known));
            let hint = match nearest(key, free) {
                Some(near) => format!("; did you mean \"{near}\"?"),
                None => format!("; known are {}", keys.join(", ")),
            };
            let key = ralph_loop_protocol::display::text::one_line(key, 40);
            found.add(&self.place(&key), &format!("unknown key{hint}"));
        }
    }

    fn any_text(&self, key: &str, found: &mut Problems) -> Option<String> {
        match self.map.get(key) {
            Some(Value::String(text)) => return Some(text.clone()),
            Some(other) => found.add(&self.place(key), &format!("expected a text, found {}", kind(other))),
            None => found.add(&self.place(key), "missing; expected a text"),
        }
        None
    }

    fn text(&self, key: &str, found: &mut Problems) -> Option<String> {
        let text = self.any_text(key, found)?;
        if text.is_empty() {
            found.add(&self.place(key), "expected a text, found an empty one");
            return None;
        }
        Some(text)
    }

    /// A text of bounded length.
    fn words(&self, key: &str, found: &mut Problems) -> Option<String> {
        let text = self.text(key, found)?;
        let length = text.chars().count();
        if length > WORDS_MAX {
            let what = format!("expected at most {WORDS_MAX} characters, found {length}");
            found.add(&self.place(key), &what);
            return None;
        }
        Some(text)
    }

    fn path(&self, key: &str, found: &mut Problems) -> Option<String> {
        let Some(value) = self.map.get(key) else {
            found.add(&self.place(key), "missing; expected a path");
            return None;
        };
        path_value(&self.place(key), value, found)
    }

    fn flag(&self, key: &str, found: &mut Problems) -> bool {
        match self.map.get(key) {
            None => false,
            Some(Value::Bool(value)) => *value,
            Some(other) => {
                found.add(&self.place(key), &format!("expected true or false, found {}", kind(other)));
                false
            }
        }
    }

    fn on_error(&self, found: &mut Problems) -> OnError {
        if self.flag("continue_on_error", found) { OnError::Continue } else { OnError::Stop }
    }

    fn seconds(&self, key: &str, found: &mut Problems) -> Duration {
        let Some(value) = self.map.get(key) else { return Duration::from_secs(COMMAND_SECONDS) };
        // `900.0` is a whole number as well: JSON has one number type.
        let whole = value.as_u64().or_else(|| {
            value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e9).contains(n)).map(|n| n as u64)
        });
        match whole {
            Some(n) if (1..=COMMAND_SECONDS_MAX).contains(&n) => Duration::from_secs(n),
            _ => {
                let shown = if value.is_number() { value.to_string() } else { kind(value).to_owned() };
                let what = format!("expected whole seconds from 1 to {COMMAND_SECONDS_MAX}, found {shown}");
                found.add(&self.place(key), &what);
                Duration::from_secs(COMMAND_SECONDS)
            }
        }
    }

    /// The items of a list, with positions.
    fn list(
        &self,
        key: &str,
        max: Option<usize>,
        required: bool,
        found: &mut Problems,
    ) -> Vec<(String, &'a Value)> {
        let at = self.place(key);
        let list = match self.map.get(key) {
            None => {
                if required {
                    found.add(&at, "missing; expected a list");
                }
                return Vec::new();
            }
            Some(Value::Array(list)) => list,
            Some(other) => {
                found.add(&at, &format!("expected a list, found {}", kind(other)));
                return Vec::new();
            }
        };
        if let Some(max) = max.filter(|max| list.len() > *max) {
            found.add(&at, &format!("expected at most {max} items, found {}", list.len()));
            return Vec::new();
        }
        list.iter().enumerate().map(|(n, value)| (format!("{at}[{n}]"), value)).collect()
    }

    fn texts(&self, key: &str, found: &mut Problems) -> Vec<String> {
        let mut texts = Vec::new();
        for (at, value) in self.list(key, None, false, found) {
            match value {
                Value::String(text) => texts.push(text.clone()),
                other => found.add(&at, &format!("expected a text, found {}", kind(other))),
            }
        }
        texts
    }
}
