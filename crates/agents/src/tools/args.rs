//! Checks a call's arguments against the tool's schema, with messages that help the model to fix its call.

use crate::bounded::kind;
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_protocol::display::text;
use serde_json::{Map, Value};

#[derive(Debug)]
pub(crate) struct Args<'a> {
    map: &'a Map<String, Value>,
}

impl<'a> Args<'a> {
    pub(crate) fn check(spec: &ToolSpec, input: &'a Value) -> Result<Self, String> {
        let name = &spec.name;
        let map = match input {
            Value::Object(map) => map,
            Value::String(text) => {
                let shown = text::one_line(text, 200);
                return Err(format!("the arguments of `{name}` are not valid JSON: {shown}"));
            }
            other => return Err(format!("the arguments of `{name}` must be an object, not {}", kind(other))),
        };
        fits(map, &spec.input_schema, "").map_err(|why| format!("`{name}` was not called: {why}"))?;
        Ok(Self { map })
    }

    /// Unchecked arguments, for tools without a schema of ours.
    #[cfg(test)]
    pub(crate) fn unchecked(map: &'a Map<String, Value>) -> Self {
        Self { map }
    }

    pub(crate) fn str(&self, key: &str) -> &'a str {
        self.maybe(key).unwrap_or_default()
    }
    pub(crate) fn maybe(&self, key: &str) -> Option<&'a str> {
        self.map.get(key).and_then(Value::as_str)
    }
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.map.get(key).and_then(|value| value.as_u64().or_else(|| value.as_f64().map(|n| n as u64)))
    }
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.map.get(key).and_then(Value::as_bool).unwrap_or(false)
    }
    pub(crate) fn pairs(&self, key: &str) -> Vec<(String, String)> {
        let object = self.map.get(key).and_then(Value::as_object);
        object
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect()
    }
    #[cfg(feature = "browser")]
    pub(crate) fn point(&self, key: &str) -> Option<(f64, f64)> {
        let point = self.map.get(key)?;
        Some((point.get("x")?.as_f64()?, point.get("y")?.as_f64()?))
    }
}

/// Whether an object matches an object schema. Only the part of JSON Schema that our tools use.
fn fits(map: &Map<String, Value>, schema: &Value, within: &str) -> Result<(), String> {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    for (key, value) in map {
        let place = format!("{within}{key}");
        match (properties.get(key), schema.get("additionalProperties")) {
            (Some(property), _) => value_fits(value, property, &place)?,
            (None, Some(Value::Bool(false))) => return Err(unknown(&place, key, properties)),
            (None, Some(other @ Value::Object(_))) => value_fits(value, other, &place)?,
            _ => {}
        }
    }
    for key in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !map.contains_key(key) {
            return Err(format!("`{within}{key}` is missing"));
        }
    }
    Ok(())
}

fn unknown(place: &str, key: &str, properties: &Map<String, Value>) -> String {
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    if let Some(near) = text::nearest(key, known.iter().copied()) {
        return format!("there is no argument `{place}`; did you mean `{near}`?");
    }
    match known.is_empty() {
        true => format!("there is no argument `{place}`; it takes none"),
        false => format!("there is no argument `{place}`; it takes {}", known.join(", ")),
    }
}

fn value_fits(value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    let wanted = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let right = match wanted {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "object" => value.is_object(),
        _ => true,
    };
    if !right {
        return Err(format!("`{place}` must be {}, not {}", article(wanted), kind(value)));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        return Err(format!("`{place}` must be one of {}", words.join(", ")));
    }
    if let Some(number) = value.as_f64() {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        if let Some(least) = bound("minimum").filter(|least| number < *least) {
            return Err(format!("`{place}` must be at least {least}"));
        }
        if let Some(most) = bound("maximum").filter(|most| number > *most) {
            return Err(format!("`{place}` must be at most {most}"));
        }
    }
    if let Some(text) = value.as_str()
        && schema.get("minLength").is_some()
        && text.trim().is_empty()
    {
        return Err(format!("`{place}` is empty"));
    }
    match value.as_object() {
        Some(map) => fits(map, schema, &format!("{place}.")),
        None => Ok(()),
    }
}

fn article(wanted: &str) -> String {
    match wanted {
        "integer" => "a whole number".to_owned(),
        "object" => "an object".to_owned(),
        "string" => "a text".to_owned(),
        "boolean" => "true or false".to_owned(),
        other => format!("a {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(input: Value) -> String {
        let spec = ToolSpec {
            name: "start".into(),
            description: String::new(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "minLength": 1 },
                    "timeout": { "type": "integer", "minimum": 1, "maximum": 3600 },
                    "how": { "type": "string", "enum": ["fast", "slow"] },
                    "env": { "type": "object", "additionalProperties": { "type": "string" } },
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
        };
        Args::check(&spec, &input).map(|_| ()).unwrap_err()
    }

    #[test]
    fn invalid_call_says_what_to_fix() {
        let said = [
            refused(json!({})),
            refused(json!({"command": "x", "timeot": 3})),
            refused(json!({"command": "x", "zzzzzzzz": 3})),
            refused(json!({"command": "x", "timeout": "3"})),
            refused(json!({"command": "x", "timeout": 0})),
            refused(json!({"command": "x", "timeout": 1.5})),
            refused(json!({"command": "  "})),
            refused(json!({"command": "x", "how": "so"})),
            refused(json!({"command": "x", "env": {"A": 1}})),
            refused(json!("{\"command\": \"x")),
            refused(json!([1])),
        ];
        let expected = [
            "`start` was not called: `command` is missing",
            "`start` was not called: there is no argument `timeot`; did you mean `timeout`?",
            "`start` was not called: there is no argument `zzzzzzzz`; it takes command, env, how, timeout",
            "`start` was not called: `timeout` must be a whole number, not a text",
            "`start` was not called: `timeout` must be at least 1",
            "`start` was not called: `timeout` must be a whole number, not a number",
            "`start` was not called: `command` is empty",
            "`start` was not called: `how` must be one of fast, slow",
            "`start` was not called: `env.A` must be a text, not a number",
            "the arguments of `start` are not valid JSON: {\"command\": \"x",
            "the arguments of `start` must be an object, not a list",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn matching_arguments_are_read() {
        let value =
            json!({"a": "x", "n": 3.0, "on": true, "p": {"x": 1, "y": 2.5}, "env": {"B": "2", "A": "1"}});
        let args = Args::unchecked(value.as_object().unwrap());
        assert_eq!((args.str("a"), args.maybe("b"), args.number("n")), ("x", None, Some(3)));
        assert!(args.flag("on") && !args.flag("off"));
        assert_eq!(args.point("p"), Some((1.0, 2.5)));
        assert_eq!(args.pairs("env").len(), 2);
    }
}
