//! A changed file with what decides in it as it was at the start: only those keys and sections, where the rest of the file is
//! product or dependencies.

use super::inline::with_tests_of;
use super::parts::{changed_parts, is_whole_section};
use super::{cmake, gradle, maven, toml_files, ts_config};
use serde_json::Value;

/// The text of the file `path` with what decides in it put back; `None` where the file was not there at the start, and
/// nothing of it is anything else. `there` knows the files beside it, by their names from its folder.
pub fn as_at_start(
    path: &str,
    old: Option<&str>,
    new: Option<&str>,
    there: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut parts = changed_parts(path, old, new);
    parts.retain(|part| part.needs.as_deref().is_none_or(there));
    let keys: Vec<String> = parts.into_iter().filter_map(|part| part.key).collect();
    if name == "package.json" && old.is_none() {
        return new.and_then(|new| without_tests(&keys, new));
    }
    let whole = || old.map(str::to_owned);
    let Some(new) = new.filter(|_| !keys.is_empty()) else { return whole() };
    let before = old.unwrap_or_default();
    let is_toml = name.ends_with(".toml");
    let toml = if is_toml { toml_files::put_back(name, before, new, there) } else { None };
    match name {
        "CMakeLists.txt" => Some(cmake::put_back(before, new, there)),
        "build.gradle" | "build.gradle.kts" => Some(gradle::put_back(before, new)),
        "pom.xml" => maven::put_back(before, new, there).or_else(whole),
        name if name.starts_with("tsconfig") => {
            old.and_then(|old| ts_config::put_back(old, new)).or_else(whole)
        }
        "package.json" | "package-lock.json" | "npm-shrinkwrap.json" | "composer.json" => {
            package(&keys, old, new).or_else(whole)
        }
        "pyproject.toml" | "Cargo.toml" if toml.is_some() => toml,
        "pyproject.toml" | "setup.cfg" => Some(sections(&keys, old.unwrap_or_default(), new)),
        "Cargo.toml" if keys.iter().all(|key| is_whole_section(key)) => {
            Some(sections(&keys, old.unwrap_or_default(), new))
        }
        name if name.ends_with(".rs") => Some(with_tests_of(old, new)),
        _ => whole(),
    }
}

/// A new package of a workspace as it is without its own tests: nothing of the start is tested by it, and others may need it.
fn without_tests(keys: &[String], new: &str) -> Option<String> {
    let mut new: Value = serde_json::from_str(&package(keys, None, new)?).ok()?;
    for (name, script) in new.get_mut("scripts").and_then(Value::as_object_mut).into_iter().flatten() {
        if matches!(name.as_str(), "test" | "pretest" | "posttest") || name.starts_with("test:") {
            *script = "exit 0".into();
        }
    }
    serde_json::to_string_pretty(&new).ok()
}

fn package(keys: &[String], old: Option<&str>, new: &str) -> Option<String> {
    let old: Value = old.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut new: Value = serde_json::from_str(new).ok()?;
    for key in keys {
        let (outer, inner) = key.split_once('/').unwrap_or((key, ""));
        let (from, into) = match inner {
            "" => (old.get(outer).cloned(), new.as_object_mut()?),
            inner => {
                (old.get(outer).and_then(|v| v.get(inner)).cloned(), new.get_mut(outer)?.as_object_mut()?)
            }
        };
        let name = if inner.is_empty() { outer } else { inner };
        match from {
            Some(value) => drop(into.insert(name.to_owned(), value)),
            None => drop(into.remove(name)),
        }
    }
    serde_json::to_string_pretty(&new).ok()
}

/// `new` without the sections of these headings, and with those of `old` behind it.
fn sections(keys: &[String], old: &str, new: &str) -> String {
    let picked = |text: &str, want: bool| {
        let mut inside = false;
        let mut out = String::new();
        for line in text.lines() {
            let bare = line.trim();
            if bare.starts_with('[') {
                inside = keys.iter().any(|key| bare.trim_matches(['[', ']']) == key);
            }
            if inside == want {
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    };
    picked(new, false) + &picked(old, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_decides_is_put_back() {
        let old = r#"{"scripts":{"test":"jest"},"jest":{"a":1}}"#;
        let new =
            r#"{"scripts":{"test":"true","postinstall":"x","build":"y"},"jest":{},"dependencies":{"b":"1"}}"#;
        let text = as_at_start("package.json", Some(old), Some(new), &|_| true).unwrap();
        let back: Value = serde_json::from_str(&text).unwrap();
        let want: Value = serde_json::from_str(
            r#"{"scripts":{"test":"jest","build":"y"},"jest":{"a":1},"dependencies":{"b":"1"}}"#,
        )
        .unwrap();
        assert_eq!(back, want);
        let new = "[project]\nname = 'a'\n[tool.pytest.ini_options]\naddopts = '-k x'\n[tool.x]\na = 1\n";
        assert_eq!(
            as_at_start("pyproject.toml", Some("[project]\n"), Some(new), &|_| true).as_deref(),
            Some("[project]\nname = \"a\"\n\n[tool.x]\na = 1\n")
        );
        let new =
            r#"{"name":"q","scripts":{"test":"node q.test.js","build":"y","postinstall":"x"},"jest":{}}"#;
        let text = as_at_start("packages/q/package.json", None, Some(new), &|_| true).unwrap();
        let want: Value =
            serde_json::from_str(r#"{"name":"q","scripts":{"test":"exit 0","build":"y"}}"#).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), want);
        assert_eq!(as_at_start("tests/a.py", None, Some("x"), &|_| true), None);
        assert_eq!(as_at_start("tests/a.py", Some("y"), Some("x"), &|_| true).as_deref(), Some("y"));
    }
}
