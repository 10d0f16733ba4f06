//! The start of every prompt of this kind: role and answer format. It never changes within a run.

use super::contract::SCHEMA;

const PROSE: &str = include_str!("templates/prose.md");
const CONTRACT: &str = include_str!("templates/contract.md");

/// Texts of the schema that a model doesn't need.
const LEFT_OUT: [&str; 4] = ["$schema", "$id", "title", "description"];

/// The preamble; `system_prompt` replaces the prose, but not the contract.
pub(super) fn preamble(system_prompt: Option<&str>) -> String {
    let prose = system_prompt.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(PROSE.trim());
    let contract = CONTRACT.replace("{{schema}}", &compact(SCHEMA));
    format!("{prose}\n\n{}\n", contract.trim())
}

/// The schema without spaces and without what the contract's text says. Keeps its order, so that the bytes are
/// stable.
fn compact(schema: &str) -> String {
    let mut out = String::with_capacity(schema.len() / 2);
    for line in schema.lines().map(str::trim) {
        if LEFT_OUT.iter().any(|key| line.starts_with(&format!("\"{key}\": \""))) {
            continue;
        }
        // The file has one key per line, so the text after the first `": "` is its value.
        match line.split_once("\": ") {
            Some((key, value)) => {
                out.push_str(key);
                out.push_str("\":");
                out.push_str(value);
            }
            None => out.push_str(line),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_compact_schema_is_the_schema() {
        fn strip(value: &mut Value) {
            match value {
                Value::Object(map) => {
                    map.retain(|key, value| !(LEFT_OUT.contains(&key.as_str()) && value.is_string()));
                    map.values_mut().for_each(strip);
                }
                Value::Array(list) => list.iter_mut().for_each(strip),
                _ => {}
            }
        }
        let mut whole: Value = serde_json::from_str(SCHEMA).unwrap();
        strip(&mut whole);
        assert_eq!(serde_json::from_str::<Value>(&compact(SCHEMA)).unwrap(), whole);
    }

    #[test]
    fn custom_prompt_replaces_only_the_prose() {
        let own = preamble(Some("You write haiku.\n"));
        assert!(own.starts_with("You write haiku.\n\n## How you answer"), "{own}");
        assert!(!own.contains(PROSE.trim()) && own.contains(&compact(SCHEMA)), "{own}");
        assert_eq!(preamble(Some("  ")), preamble(None));
    }
}
