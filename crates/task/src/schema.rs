//! JSON Schemas of the files that people write, derived from the types that read them. Compiled only with the feature
//! `schema`; the program carries the files of `schemas/` that `scripts/generate` writes.
//!
//! What serde does not know of a file (other names of a key, which keys a kind of criterion needs) is added here, from the
//! same tables that the parsers use.

use crate::config::{ConfigFile, ModelsFile};
use crate::dialect::frontmatter::Frontmatter;
use crate::dialect::prd_tasks::TasksJson;
use crate::dialect::ralph_json::{KINDS, RalphJson};
use ralph_protocol::schema::{Published, file};
use schemars::Schema;
use serde_json::{Value, json};

/// Every schema of a file that people write and that has a type.
pub fn all() -> Vec<Published> {
    vec![
        file::<ConfigFile>(
            "config",
            ".ralph/config.json",
            "The configuration of a repo or a user. Every key is optional.",
        ),
        file::<ModelsFile>(
            "models",
            "models.yaml",
            "Model profiles of a user or a repo. Every key is optional.",
        ),
        file::<Frontmatter>(
            "frontmatter",
            "frontmatter of ralph_task.md",
            "The YAML between the two lines of dashes at the top of a ralph_task.md.",
        ),
        file::<RalphJson>("ralph", "ralph.json, version 2", "One task with typed acceptance criteria."),
        file::<TasksJson>(
            "tasks",
            "tasks.json of a plan",
            "The stories of a plan and the commands that check them.",
        ),
    ]
}

/// Another name of a key, which stands right behind it.
fn alias(schema: &mut Schema, key: &str, other: &str, older: bool) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let Some(mut same) = properties.get(key).cloned() else { return };
    let word = if older { "older" } else { "other" };
    same["description"] = json!(format!("The {word} name of `{key}`."));
    if older {
        same["deprecated"] = json!(true);
    }
    let mut all = serde_json::Map::new();
    for (name, value) in std::mem::take(properties) {
        let here = name == key;
        all.insert(name, value);
        if here {
            all.insert(other.to_owned(), same.clone());
        }
    }
    *properties = all;
}

pub(crate) fn config_aliases(schema: &mut Schema) {
    for name in ["agents", "agent_priority", "agent_selection"] {
        alias(schema, name, &name.replacen("agent", "modal", 1), true);
    }
}

pub(crate) fn agent_aliases(schema: &mut Schema) {
    alias(schema, "timeout_seconds", "timeout", false);
    alias(schema, "profile", "model_profile", false);
    alias(schema, "fallback_profile", "model_profile_fallback", false);
}

pub(crate) fn verifier_aliases(schema: &mut Schema) {
    alias(schema, "timeout_seconds", "timeout", false);
}

pub(crate) fn role_aliases(schema: &mut Schema) {
    alias(schema, "model", "profile", false);
    more_words(schema.pointer_mut("/properties/role"), &["doc", "documenter"]);
}

pub(crate) fn provider_aliases(schema: &mut Schema) {
    let words = ["docker-sandbox"];
    let branches = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    add_words(branches, &words);
}

/// Further words for a choice.
fn more_words(choice: Option<&mut Value>, words: &[&str]) {
    add_words(choice.and_then(|choice| choice.get_mut("oneOf")?.as_array_mut()), words);
}

fn add_words(branches: Option<&mut Vec<Value>>, words: &[&str]) {
    if let Some(branches) = branches {
        branches.extend(words.iter().map(|word| json!({ "type": "string", "const": word })));
    }
}

/// A map whose values are absolute paths.
pub(crate) fn absolute_values(schema: &mut Schema) {
    schema.insert("additionalProperties".to_owned(), json!({ "type": "string", "pattern": "^/" }));
}

/// What a story must say: serde fills in what is missing, the reader of plans refuses it with words of its own.
pub(crate) fn story_needs(schema: &mut Schema) {
    schema.insert("required".to_owned(), json!(["id", "title", "passes"]));
    if let Some(Value::Object(passes)) = schema.pointer_mut("/properties/passes") {
        passes.remove("default");
    }
}

/// What each kind of criterion needs.
pub(crate) fn criterion_kinds(schema: &mut Schema) {
    let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
    if let Some(kind) = schema.pointer_mut("/properties/type") {
        kind["enum"] = json!(kinds);
    }
    let branch = |(kind, needed): &(&str, &[&str])| {
        let required: Vec<&str> = std::iter::once("type").chain(needed.iter().copied()).collect();
        json!({ "properties": { "type": { "const": kind } }, "required": required })
    };
    schema.insert("oneOf".to_owned(), Value::Array(KINDS.iter().map(branch).collect()));
}
