//! The part of JSON Schema that this repository's schemas use. An unknown keyword fails the test.
//!
//! It doesn't use `jsonschema`: that crate and its 41 dependencies take minutes of a cold test build (95 s of processor time for the
//! last one alone), for two tests, and would ignore a misspelled keyword.

use serde_json::Value;

const NOTES: &[&str] =
    &["$schema", "$id", "$defs", "title", "description", "default", "deprecated", "format"];

/// Returns every violation in `value` with its path.
pub fn problems(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, rule) in schema.as_object().unwrap() {
        if NOTES.contains(&keyword.as_str()) {
            continue;
        }
        let below = |schema: &Value, value: &Value, at: &str| problems(root, schema, value, at);
        match keyword.as_str() {
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                let target = root["$defs"].get(name).unwrap_or_else(|| panic!("no definition of {name}"));
                found.extend(below(target, value, at));
            }
            "properties" => {
                for (key, schema) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        found.extend(below(schema, value, &format!("{at}/{key}")));
                    }
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties");
                for (key, value) in value.as_object().into_iter().flatten() {
                    if known.and_then(|k| k.get(key)).is_some() {
                        continue;
                    }
                    match rule {
                        Value::Bool(false) => found.push(format!("{at}: unknown key {key}")),
                        schema => found.extend(below(schema, value, &format!("{at}/{key}"))),
                    }
                }
            }
            "items" => {
                for (n, value) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(below(rule, value, &format!("{at}/{n}")));
                }
            }
            "anyOf" | "oneOf" => {
                let all: Vec<Vec<String>> =
                    rule.as_array().unwrap().iter().map(|schema| below(schema, value, at)).collect();
                let fitting = all.iter().filter(|found| found.is_empty()).count();
                if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                    // The errors of the best-matching branch are the most useful ones.
                    let best = all.into_iter().min_by_key(Vec::len).unwrap_or_default();
                    found.push(format!("{at}: {fitting} branches of {keyword} fit; nearest: {best:?}"));
                }
            }
            _ if !holds(keyword, rule, value) => found.push(format!("{at}: not {keyword} {rule}: {value}")),
            _ => {}
        }
    }
    found
}

fn holds(keyword: &str, rule: &Value, value: &Value) -> bool {
    let length = value.as_str().map(|text| text.chars().count() as u64);
    match keyword {
        "type" => match rule {
            Value::Array(types) => types.iter().any(|one| is_type(one.as_str().unwrap(), value)),
            one => is_type(one.as_str().unwrap(), value),
        },
        "enum" => rule.as_array().unwrap().contains(value),
        "const" => rule == value,
        "required" => {
            let map = value.as_object();
            map.is_none_or(|map| {
                rule.as_array().unwrap().iter().all(|key| map.contains_key(key.as_str().unwrap()))
            })
        }
        "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap()),
        "maxItems" => value.as_array().is_none_or(|list| list.len() as u64 <= rule.as_u64().unwrap()),
        "exclusiveMinimum" => value.as_f64().is_none_or(|n| n > rule.as_f64().unwrap()),
        "minLength" => length.is_none_or(|n| n >= rule.as_u64().unwrap()),
        "maxLength" => length.is_none_or(|n| n <= rule.as_u64().unwrap()),
        "minItems" => value.as_array().is_none_or(|list| list.len() as u64 >= rule.as_u64().unwrap()),
        "minProperties" => value.as_object().is_none_or(|map| map.len() as u64 >= rule.as_u64().unwrap()),
        "maxProperties" => value.as_object().is_none_or(|map| map.len() as u64 <= rule.as_u64().unwrap()),
        "pattern" => {
            let pattern = regex_lite::Regex::new(rule.as_str().unwrap()).unwrap();
            value.as_str().is_none_or(|text| pattern.is_match(text))
        }
        unknown => panic!("the checker does not know `{unknown}`"),
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("`{other}` isn't a known type"),
    }
}
