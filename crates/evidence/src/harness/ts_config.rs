//! What a `tsconfig.json` says of how strictly code is checked; how it is built is product.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Options that say what is made of the code, not whether it is right.
const PRODUCT: &[&str] = &[
    "jsx",
    "jsxImportSource",
    "jsxFactory",
    "jsxFragmentFactory",
    "target",
    "lib",
    "module",
    "moduleResolution",
    "esModuleInterop",
    "allowSyntheticDefaultImports",
    "resolveJsonModule",
    "outDir",
    "outFile",
    "declaration",
    "declarationDir",
    "declarationMap",
    "emitDeclarationOnly",
    "sourceMap",
    "sourceRoot",
    "mapRoot",
    "inlineSources",
    "inlineSourceMap",
    "experimentalDecorators",
    "emitDecoratorMetadata",
    "useDefineForClassFields",
    "verbatimModuleSyntax",
    "incremental",
    "composite",
    "tsBuildInfoFile",
    "removeComments",
    "importHelpers",
    "downlevelIteration",
    "newLine",
    "$schema",
    "display",
];

const OPTIONS: &str = "compilerOptions";

/// What decides, by key; `None` where it cannot be read.
pub(super) fn deciding(text: Option<&str>) -> Option<BTreeMap<String, String>> {
    let Some(text) = text else { return Some(BTreeMap::new()) };
    let all = read(text)?;
    let mut found = BTreeMap::new();
    for (key, value) in all.iter().filter(|(key, _)| !PRODUCT.contains(&key.as_str())) {
        match value.as_object().filter(|_| key == OPTIONS) {
            Some(options) => {
                let options = options.iter().filter(|(key, _)| !PRODUCT.contains(&key.as_str()));
                found.extend(options.map(|(key, value)| (format!("{OPTIONS}/{key}"), value.to_string())));
            }
            None => drop(found.insert(key.clone(), value.to_string())),
        }
    }
    Some(found)
}

/// The object that the text is, with comments and commas too many.
pub(super) fn read(text: &str) -> Option<Map<String, Value>> {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let skip = match first {
            '"' => {
                let mut escaped = false;
                let end = rest[1..].find(|c: char| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                let end = end.map_or(rest.len(), |n| n + 2);
                plain.push_str(&rest[..end]);
                end
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |n| n + 2),
            ']' | '}' => {
                let kept = plain.trim_end().trim_end_matches(',').len();
                plain.truncate(kept);
                plain.push(first);
                1
            }
            first => {
                plain.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[skip..];
    }
    serde_json::from_str(&plain).ok()
}

/// `new` with what decides as in `old`.
pub(super) fn put_back(old: &str, new: &str) -> Option<String> {
    let (old, mut new) = (read(old)?, read(new)?);
    let back = |old: &Map<String, Value>, new: &mut Map<String, Value>| {
        new.retain(|key, _| PRODUCT.contains(&key.as_str()) || key == OPTIONS);
        let kept = old.iter().filter(|(key, _)| !PRODUCT.contains(&key.as_str()) && *key != OPTIONS);
        new.extend(kept.map(|(key, value)| (key.clone(), value.clone())));
    };
    back(&old, &mut new);
    let none = Map::new();
    let before = old.get(OPTIONS).and_then(Value::as_object).unwrap_or(&none);
    if let Some(options) = new.entry(OPTIONS).or_insert_with(|| Value::Object(Map::new())).as_object_mut() {
        back(before, options);
    }
    serde_json::to_string_pretty(&new).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_code_is_built_is_free_and_how_strictly_it_is_checked_is_not() {
        let old = "{ // it\n \"compilerOptions\": {\"strict\": true, \"target\": \"es5\",}, \"include\": [\"src\",],\n}";
        let jsx = old.replace("\"es5\"", "\"es2022\", \"jsx\": \"react\"");
        assert_eq!(deciding(Some(old)), deciding(Some(&jsx)));
        assert!(deciding(Some(old)).unwrap().contains_key("compilerOptions/strict"));
        let cheat = jsx.replace("true", "false").replace("\"src\"", "\"none\"");
        assert_ne!(deciding(Some(old)), deciding(Some(&cheat)));
        let back = put_back(old, &cheat).unwrap();
        assert_eq!(deciding(Some(&back)), deciding(Some(old)));
        assert!(back.contains("es2022"));
        assert_eq!(deciding(Some("{,,")), None);
    }
}
