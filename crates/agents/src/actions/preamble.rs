//! The beginning of every prompt of this kind: who answers and how. It never changes within a run.

use super::contract::SCHEMA;

const PROSE: &str = include_str!("templates/prose.md");
const CONTRACT: &str = include_str!("templates/contract.md");

/// The preamble; `system_prompt` stands in for the prose, the contract always stays.
pub(super) fn preamble(system_prompt: Option<&str>) -> String {
    let prose = system_prompt.map(str::trim).filter(|text| !text.is_empty()).unwrap_or(PROSE.trim());
    let contract = CONTRACT.replace("{{schema}}", &compact(SCHEMA));
    format!("{prose}\n\n{}\n", contract.trim())
}

/// The schema without spaces and without what only files need. Its own order is kept: the bytes stay the same.
fn compact(schema: &str) -> String {
    let mut out = String::with_capacity(schema.len() / 2);
    for line in schema.lines().map(str::trim) {
        if line.starts_with("\"$schema\"") || line.starts_with("\"$id\"") {
            continue;
        }
        // The file has one key to a line, so what stands after the first `": "` is its value.
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
        let mut whole: Value = serde_json::from_str(SCHEMA).unwrap();
        let map = whole.as_object_mut().unwrap();
        map.remove("$schema");
        map.remove("$id");
        assert_eq!(serde_json::from_str::<Value>(&compact(SCHEMA)).unwrap(), whole);
    }

    #[test]
    fn a_prompt_of_ones_own_replaces_the_prose_only() {
        let own = preamble(Some("You write haiku.\n"));
        assert!(own.starts_with("You write haiku.\n\n## How you answer"), "{own}");
        assert!(!own.contains(PROSE.trim()) && own.contains(&compact(SCHEMA)), "{own}");
        assert_eq!(preamble(Some("  ")), preamble(None));
    }
}
