//! Separates dependency tables, which belong to the product, from the other settings in a manifest.
//!
//! With the original harness, a manifest is the original one plus new dependencies. An existing dependency
//! keeps its source; a new one counts only if it is a registry version.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use toml::{Table, Value};

/// Whether an edit of a manifest only changes dependencies, and none of their sources.
pub fn is_dependency_edit(path: &str, old: &str, new: &str) -> bool {
    match with_dependencies(path, old, new) {
        Some(merged) => is_same(path, &merged, new),
        None => false,
    }
}

/// The original manifest `old` with the dependency tables of `new`; `None` if it isn't a manifest or can't be read.
pub fn with_dependencies(path: &str, old: &str, new: &str) -> Option<String> {
    match path.rsplit('/').next().unwrap_or(path) {
        "package.json" => json(old, new, NPM_TABLES, is_npm_version),
        "composer.json" => json(old, new, &["require", "require-dev"], |_| true),
        "Cargo.toml" => toml_tables(old, new, cargo_tables),
        "pyproject.toml" => toml_tables(old, new, python_tables),
        "go.mod" => Some(go(old, new)),
        _ => None,
    }
}

fn is_same(path: &str, one: &str, other: &str) -> bool {
    if path.ends_with(".json") {
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        return value(one).is_some() && value(one) == value(other);
    }
    if path.ends_with(".toml") {
        let value = |text: &str| text.parse::<Table>().ok();
        return value(one).is_some() && value(one) == value(other);
    }
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let mut lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        lines.sort();
        lines
    };
    lines(one) == lines(other)
}

const NPM_TABLES: &[&str] = &["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"];

/// A version range or tag; not a path, URL, alias or repository.
fn is_npm_version(version: &str) -> bool {
    !version.contains([':', '/'])
}

/// Keeps the order of keys.
struct Ordered<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Ordered<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Ordered<'de>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry::<String, &'de RawValue>()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

type JsonMap = serde_json::Map<String, serde_json::Value>;

fn json(old: &str, new: &str, tables: &[&str], is_version: fn(&str) -> bool) -> Option<String> {
    let before: JsonMap = serde_json::from_str(old).ok()?;
    let after: JsonMap = serde_json::from_str(new).ok()?;
    let order: Ordered<'_> = serde_json::from_str(old).ok()?;
    let table = |of: &JsonMap, name: &str| of.get(name).and_then(|value| value.as_object()).cloned();
    let merged = |name: &str| -> Option<String> {
        let (was, now) = (table(&before, name).unwrap_or_default(), table(&after, name)?);
        let registry = |value: &serde_json::Value| value.as_str().is_some_and(is_version);
        let kept: JsonMap = now
            .into_iter()
            .filter_map(|(key, value)| match was.get(&key) {
                Some(first) if registry(first) != registry(&value) || !registry(first) => {
                    Some((key, first.clone()))
                }
                None if !registry(&value) => None,
                _ => Some((key, value)),
            })
            .collect();
        serde_json::to_string(&kept).ok()
    };
    let mut entries: Vec<String> = Vec::new();
    for (key, value) in &order.0 {
        if tables.contains(&key.as_str()) {
            entries.extend(merged(key).map(|text| format!("{}:{text}", quoted(key))));
        } else {
            entries.push(format!("{}:{}", quoted(key), value.get()));
        }
    }
    for name in tables.iter().filter(|name| !before.contains_key(**name)) {
        entries.extend(merged(name).map(|text| format!("{}:{text}", quoted(name))));
    }
    Some(format!("{{{}}}\n", entries.join(",")))
}

fn quoted(key: &str) -> String {
    serde_json::Value::from(key).to_string()
}

/// Paths of the dependency tables in a manifest.
type Tables = fn(&Table) -> Vec<Vec<String>>;

fn toml_tables(old: &str, new: &str, tables: Tables) -> Option<String> {
    let mut merged: Table = old.parse().ok()?;
    let new: Table = new.parse().ok()?;
    let mut paths = tables(&merged);
    paths.extend(tables(&new));
    paths.sort();
    paths.dedup();
    for path in &paths {
        let value = dependencies(get(&merged, path), get(&new, path));
        set(&mut merged, path, value);
    }
    toml::to_string(&merged).ok()
}

fn get<'a>(table: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (last, above) = path.split_last()?;
    let mut at = table;
    for key in above {
        at = at.get(key)?.as_table()?;
    }
    at.get(last)
}

fn set(table: &mut Table, path: &[String], value: Option<Value>) {
    let Some((last, above)) = path.split_last() else { return };
    let mut at = table;
    for key in above {
        let Value::Table(next) = at.entry(key.clone()).or_insert_with(|| Value::Table(Table::new())) else {
            return;
        };
        at = next;
    }
    match value {
        Some(value) => drop(at.insert(last.clone(), value)),
        None => drop(at.remove(last)),
    }
}

/// The new dependencies, each from its original source.
fn dependencies(old: Option<&Value>, new: Option<&Value>) -> Option<Value> {
    match new? {
        Value::Table(now) => {
            let was = old.and_then(Value::as_table).cloned().unwrap_or_default();
            let kept = now.iter().filter_map(|(name, value)| match was.get(name) {
                Some(first) if source(first) != source(value) => Some((name.clone(), first.clone())),
                None if !source(value).is_empty() => None,
                _ => Some((name.clone(), value.clone())),
            });
            Some(Value::Table(kept.collect()))
        }
        Value::Array(now) => {
            let was = old.and_then(Value::as_array).cloned().unwrap_or_default();
            let from_registry = |value: &Value| value.as_str().is_none_or(|text| !text.contains(['@', '/']));
            let kept: Vec<Value> =
                now.iter().filter(|value| from_registry(value) || was.contains(value)).cloned().collect();
            Some(Value::Array(kept))
        }
        other => Some(other.clone()),
    }
}

/// Where a dependency comes from, if not from the registry under its own name.
fn source(value: &Value) -> Vec<(String, String)> {
    const SOURCES: &[&str] = &[
        "path",
        "git",
        "url",
        "file",
        "registry",
        "registry-index",
        "package",
        "source",
        "branch",
        "rev",
        "tag",
    ];
    let Some(table) = value.as_table() else { return Vec::new() };
    let named = table.iter().filter(|(key, _)| SOURCES.contains(&key.as_str()));
    named.map(|(key, value)| (key.clone(), value.to_string())).collect()
}

fn path(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

fn cargo_tables(manifest: &Table) -> Vec<Vec<String>> {
    const KINDS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];
    let mut found: Vec<Vec<String>> = KINDS.iter().map(|kind| path(&[kind])).collect();
    found.push(path(&["workspace", "dependencies"]));
    let targets = manifest.get("target").and_then(Value::as_table);
    for target in targets.into_iter().flat_map(|targets| targets.keys()) {
        found.extend(KINDS.iter().map(|kind| path(&["target", target, kind])));
    }
    found.retain(|path| get(manifest, path).is_some());
    found
}

fn python_tables(manifest: &Table) -> Vec<Vec<String>> {
    let mut found = vec![
        path(&["project", "dependencies"]),
        path(&["tool", "poetry", "dependencies"]),
        path(&["tool", "poetry", "dev-dependencies"]),
        path(&["tool", "uv", "dev-dependencies"]),
    ];
    for table in [path(&["project", "optional-dependencies"]), path(&["dependency-groups"])] {
        let groups = get(manifest, &table).and_then(Value::as_table);
        found.extend(groups.into_iter().flat_map(|groups| groups.keys()).map(|group| {
            let mut own = table.clone();
            own.push(group.clone());
            own
        }));
    }
    let groups = get(manifest, &path(&["tool", "poetry", "group"])).and_then(Value::as_table);
    for group in groups.into_iter().flat_map(|groups| groups.keys()) {
        found.push(path(&["tool", "poetry", "group", group, "dependencies"]));
    }
    found.retain(|path| get(manifest, path).is_some());
    found
}

/// Only `require` lines are free; `replace` decides where a module comes from.
fn go(old: &str, new: &str) -> String {
    let (_, rest) = split_requires(old);
    let (requires, _) = split_requires(new);
    let mut out = rest.join("\n");
    for line in requires {
        out.push_str(&format!("\nrequire {line}"));
    }
    out.push('\n');
    out
}

fn split_requires(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut requires, mut rest, mut inside) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        let plain = line.trim();
        if inside {
            match plain {
                ")" => inside = false,
                "" => {}
                _ => requires.push(plain.to_owned()),
            }
        } else if plain == "require (" {
            inside = true;
        } else if let Some(one) = plain.strip_prefix("require ") {
            requires.push(one.to_owned());
        } else if !plain.is_empty() {
            rest.push(line.to_owned());
        }
    }
    (requires, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_of_dependencies_only_are_free() {
        for (path, old, new, free) in [
            (
                "package.json",
                r#"{"a":1,"dependencies":{"x":"^1"}}"#,
                r#"{"a":1,"dependencies":{"x":"^2","y":"1"}}"#,
                true,
            ),
            ("package.json", r#"{"a":1}"#, r#"{"a":1,"devDependencies":{"y":"1"}}"#, true),
            ("package.json", r#"{"a":1}"#, r#"{"a":1,"devDependencies":{"jest":"file:./jest"}}"#, false),
            ("package.json", r#"{"dependencies":{"x":"1"}}"#, r#"{"dependencies":{"x":"npm:y@1"}}"#, false),
            ("package.json", r#"{"scripts":{"test":"jest"}}"#, r#"{"scripts":{"test":"true"}}"#, false),
            (
                "Cargo.toml",
                "[package]\nname='a'\n[dependencies]\nx='1'",
                "[package]\nname='a'\n[dependencies]\nx='2'\ny={version='1',features=['z']}",
                true,
            ),
            (
                "Cargo.toml",
                "[package]\nname='a'",
                "[package]\nname='a'\n[dev-dependencies]\ninsta={path='insta'}",
                false,
            ),
            ("Cargo.toml", "[dependencies]\nx='1'", "[dependencies]\nx={version='1',git='u'}", false),
            ("Cargo.toml", "[package]\nname='a'", "[package]\nname='a'\n[lib]\ntest=false", false),
            (
                "pyproject.toml",
                "[project]\nname='a'\ndependencies=['x']",
                "[project]\nname='a'\ndependencies=['x>=2','y']",
                true,
            ),
            (
                "pyproject.toml",
                "[project]\nname='a'",
                "[project]\nname='a'\n[dependency-groups]\ndev=['pytest']",
                true,
            ),
            (
                "pyproject.toml",
                "[project]\ndependencies=['x']",
                "[project]\ndependencies=['x @ file:///x']",
                false,
            ),
            (
                "pyproject.toml",
                "[project]\nname='a'",
                "[project]\nname='a'\n[tool.pytest.ini_options]\naddopts='-k x'",
                false,
            ),
            ("go.mod", "module a\n\ngo 1.22\n", "module a\n\ngo 1.22\n\nrequire x v1\n", true),
            ("go.mod", "module a\n", "module a\nreplace x => ./x\n", false),
            ("Makefile", "a:", "b:", false),
        ] {
            assert_eq!(is_dependency_edit(path, old, new), free, "{path}: {new}");
        }
    }

    #[test]
    fn the_original_manifest_takes_new_dependencies_and_keeps_sources() {
        let old = r#"{"name":"a","scripts":{"test":"jest"},"exports":{"z":"1","b":"2"},"dependencies":{"jest":"29"}}"#;
        let new = r#"{"name":"a","scripts":{"test":"true"},"dependencies":{"jest":"file:x","left-pad":"1","evil":"github:a/b"}}"#;
        assert_eq!(
            with_dependencies("web/package.json", old, new).unwrap(),
            "{\"name\":\"a\",\"scripts\":{\"test\":\"jest\"},\"exports\":{\"z\":\"1\",\"b\":\"2\"},\"dependencies\":{\"jest\":\"29\",\"left-pad\":\"1\"}}\n"
        );
        assert_eq!(with_dependencies("package.json", "no json", new), None);
    }
}
