//! Parts of schemas that serde doesn't know: aliases and required keys.

use schemars::Schema;
use serde_json::{Value, json};

/// Adds an alias right after its key.
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

fn more_words(choice: Option<&mut Value>, words: &[&str]) {
    add_words(choice.and_then(|choice| choice.get_mut("oneOf")?.as_array_mut()), words);
}

fn add_words(branches: Option<&mut Vec<Value>>, words: &[&str]) {
    if let Some(branches) = branches {
        branches.extend(words.iter().map(|word| json!({ "type": "string", "const": word })));
    }
}

/// Makes a map's values absolute paths.
pub(crate) fn absolute_values(schema: &mut Schema) {
    schema.insert("additionalProperties".to_owned(), json!({ "type": "string", "pattern": "^/" }));
}

/// What a story must contain: serde fills in defaults, the plan parser refuses missing values with its own messages.
pub(crate) fn story_needs(schema: &mut Schema) {
    schema.insert("required".to_owned(), json!(["id", "title", "passes"]));
    if let Some(Value::Object(passes)) = schema.pointer_mut("/properties/passes") {
        passes.remove("default");
    }
}
