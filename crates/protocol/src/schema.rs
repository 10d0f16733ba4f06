//! JSON Schemas of the published formats, derived from the types. Compiled only with the feature `schema`; the
//! program embeds the files of `schemas/` that `scripts/generate` writes with it.
//!
//! A schema says what a reader may rely on: what is required for reading is required; `null` is allowed only if it is
//! written; unknown keys are refused only if the code refuses them.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

/// One published schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Its file name, without the extension.
    pub name: &'static str,
    /// The schema.
    pub schema: Value,
}

/// Every derived schema.
pub fn all() -> Vec<Published> {
    vec![
        of::<crate::event::Event>(
            "events",
            "one line of events.jsonl",
            "One event of a run. Kinds and fields are only ever added; readers skip what they do not know.",
            Parts::Named,
        ),
        of::<crate::proof::Proof>(
            "proof",
            "proof.json",
            "The evidence of a run's final check, written beside its journal. Readers must accept keys that they do not know.",
            Parts::Named,
        ),
        of::<crate::stuck::diagnosis::Report>(
            "diagnosis",
            "a doctor's report",
            "What the doctor answers after reading the record of a run.",
            Parts::Inline,
        ),
        of::<crate::money::receipt::Receipt>(
            "receipt",
            "receipt.json",
            "What one iteration used, did and was judged to be. Readers must accept keys that they do not know.",
            Parts::Named,
        ),
        of::<crate::outcome::RunResult>(
            "result",
            "the result of a run",
            "How a run ended: the last line of `ralph run --json`. Readers must accept keys that they do not know.",
            Parts::Named,
        ),
        of::<crate::control::Letter>(
            "control",
            "one line of inbox.jsonl",
            "One intervention of a person, with who sent it. A run takes each id once.",
            Parts::Named,
        ),
        of::<crate::display::view::RunView>(
            "view",
            "a run as it stands",
            "What is known of a run at one moment. Readers must accept keys that they do not know.",
            Parts::Named,
        ),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    Named,
    Inline,
}

fn derived<T: JsonSchema>(contract: Contract, parts: Parts) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.contract = contract;
    settings.inline_subschemas = parts == Parts::Inline;
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn of<T: JsonSchema>(name: &'static str, title: &str, description: &str, parts: Parts) -> Published {
    let written = derived::<T>(Contract::Serialize, parts);
    let mut schema = derived::<T>(Contract::Deserialize, parts);
    drop_nulls(&mut schema, &written);
    published(name, title, description, schema)
}

/// The schema of a file that users write: missing values are left out, never `null`.
pub fn file<T: JsonSchema>(name: &'static str, title: &str, description: &str) -> Published {
    let mut schema = derived::<T>(Contract::Deserialize, Parts::Named);
    for_files(&mut schema);
    published(name, title, description, schema)
}

/// Removes `null` from every key, and defaults that only repeat those of the keys below.
fn for_files(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                for (_, property) in properties {
                    without_null(property);
                    if let Some(map) = property.as_object_mut()
                        && map.get("default").is_some_and(Value::is_object)
                    {
                        map.remove("default");
                    }
                }
            }
            map.values_mut().for_each(for_files);
        }
        Value::Array(list) => list.iter_mut().for_each(for_files),
        _ => {}
    }
}

fn published(name: &'static str, title: &str, description: &str, mut schema: Value) -> Published {
    tidy(&mut schema);
    name_parts(&mut schema);
    let mut whole = Map::new();
    let id = format!("https://raw.githubusercontent.com/ralph-loop/ralph/main/schemas/{name}.schema.json");
    whole.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    whole.insert("$id".into(), json!(id));
    whole.insert("title".into(), json!(title));
    whole.insert("description".into(), json!(description));
    if let Value::Object(derived) = schema {
        whole.extend(
            derived
                .into_iter()
                .filter(|(key, _)| !["$schema", "title", "description"].contains(&key.as_str())),
        );
    }
    Published { name, schema: Value::Object(whole) }
}

/// Removes `null` from keys that are left out when empty: `written` doesn't require them.
fn drop_nulls(schema: &mut Value, written: &Value) {
    let always = |key: &str| {
        let required = written.get("required").and_then(Value::as_array);
        required.is_some_and(|keys| keys.iter().any(|k| k == key))
    };
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (_, property) in properties.iter_mut().filter(|(key, _)| !always(key)) {
            without_null(property);
        }
    }
    match (schema, written) {
        (Value::Object(schema), Value::Object(written)) => {
            for (key, value) in schema {
                if let Some(same) = written.get(key) {
                    drop_nulls(value, same);
                }
            }
        }
        (Value::Array(schema), Value::Array(written)) => {
            schema.iter_mut().zip(written).for_each(|(value, same)| drop_nulls(value, same));
        }
        _ => {}
    }
}

fn without_null(property: &mut Value) {
    let Some(map) = property.as_object_mut() else { return };
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            map.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(branches)) = map.get_mut("anyOf") {
        branches.retain(|branch| branch["type"] != "null");
        if let [Value::Object(one)] = branches.as_slice() {
            let one = one.clone();
            map.remove("anyOf");
            for (key, value) in one {
                map.entry(key).or_insert(value);
            }
        }
    }
}

/// Removes formats that repeat the type, and empty defaults.
fn tidy(value: &mut Value) {
    words(value);
    match value {
        Value::Object(map) => {
            let formats =
                ["uint", "uint8", "uint16", "uint32", "uint64", "int32", "int64", "double", "float"];
            if map.get("format").and_then(Value::as_str).is_some_and(|f| formats.contains(&f)) {
                map.remove("format");
            }
            let empty = |value: &Value| match value {
                Value::Null => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty(),
                Value::String(text) => text.is_empty(),
                _ => false,
            };
            if map.get("default").is_some_and(empty) {
                map.remove("default");
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(list) => list.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Turns a choice of words into an `enum`.
fn words(value: &mut Value) {
    let Some(map) = value.as_object_mut() else { return };
    let Some(branches) = map.get("oneOf").and_then(Value::as_array) else { return };
    let word = |branch: &Value| match branch.get("enum").and_then(Value::as_array) {
        Some(words) => Some(words.clone()),
        None => branch.get("const").filter(|c| c.is_string()).map(|c| vec![c.clone()]),
    };
    let Some(words) = branches.iter().map(word).collect::<Option<Vec<_>>>() else { return };
    map.remove("oneOf");
    map.insert("type".into(), json!("string"));
    map.insert("enum".into(), Value::Array(words.concat()));
}

/// Names parts like keys: `check_result`, not `CheckResult`.
fn name_parts(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(parts)) = map.get_mut("$defs") {
                *parts = std::mem::take(parts).into_iter().map(|(k, v)| (snake_case(&k), v)).collect();
            }
            if let Some(Value::String(to)) = map.get_mut("$ref")
                && let Some(name) = to.strip_prefix("#/$defs/")
            {
                *to = format!("#/$defs/{}", snake_case(name));
            }
            map.values_mut().for_each(name_parts);
        }
        Value::Array(list) => list.iter_mut().for_each(name_parts),
        _ => {}
    }
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
