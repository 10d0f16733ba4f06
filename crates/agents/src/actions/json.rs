//! Finds the only JSON object of an answer. A repeated key is an error, because one value would be lost.

use super::intake::IntakeError;
use crate::bounded::kind;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

const TEXT_MAX: usize = 8 * 1024 * 1024;
const TRIES_MAX: usize = 4096;

/// The object, bare, fenced or with text around it, if it is the only one.
pub(super) fn only_object(text: &str) -> Result<Map<String, Value>, IntakeError> {
    if text.len() > TEXT_MAX {
        return Err(IntakeError::TooLong(text.len()));
    }
    match serde_json::from_str::<Strict>(text) {
        Ok(Strict(Value::Object(map))) => return Ok(map),
        Ok(Strict(other)) => return Err(IntakeError::NotAnObject(kind(&other))),
        Err(_) => {}
    }
    let mut found: Vec<Map<String, Value>> = Vec::new();
    let mut broken: Option<IntakeError> = None;
    let mut at = 0;
    for _ in 0..TRIES_MAX {
        let Some(next) = text[at..].find('{') else { break };
        let start = at + next;
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Strict>();
        at = match stream.next() {
            Some(Ok(Strict(Value::Object(map)))) => {
                found.push(map);
                start + stream.byte_offset().max(1)
            }
            Some(Err(error)) => {
                if broken.is_none() && begins_like_json(&text[start..]) {
                    broken = Some(syntax(text, start, &error));
                }
                start + 1
            }
            _ => start + 1,
        };
    }
    // Empty `{ }` in code around it.
    if found.iter().any(|map| !map.is_empty()) {
        found.retain(|map| !map.is_empty());
    }
    let is_contract = |map: &Map<String, Value>| map.contains_key("actions") || map.contains_key("summary");
    match (found.len(), broken) {
        (1, None) => found.pop().ok_or(IntakeError::NoObject),
        (1, Some(broken)) => found.pop().filter(is_contract).ok_or(broken),
        (0, None) => Err(IntakeError::NoObject),
        // The found objects are then pieces of the broken one.
        (_, Some(broken)) if !found.iter().any(is_contract) => Err(broken),
        (many, _) => Err(IntakeError::Several(many)),
    }
}

/// `{` in prose and code isn't worth an error; `{"` is.
fn begins_like_json(text: &str) -> bool {
    text[1..].trim_start().starts_with('"')
}

fn syntax(text: &str, start: usize, error: &serde_json::Error) -> IntakeError {
    if error.is_eof() {
        return IntakeError::CutOff;
    }
    let line = text[..start].matches('\n').count() + error.line();
    // serde's position counts from the object, not from the answer.
    let words = error.to_string();
    let what = words.split(" at line ").next().unwrap_or_default().to_owned();
    let near = text[start..].lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let from = near.char_indices().map(|(at, _)| at).rfind(|at| at + 30 <= error.column()).unwrap_or(0);
    let near: String = near[from..].chars().take(60).collect();
    IntakeError::Syntax { line, what, near: near.trim().to_owned() }
}

/// A JSON value without repeated keys.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = seq.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let Strict(value) = access.next_value()?;
            if map.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("the key \"{key}\" appears twice")));
            }
        }
        Ok(Value::Object(map))
    }
}
