//! What a `package.json` says of tests: keys that configure them, scripts, packages from places of the repo, its workspaces.

use super::beside::is_helper;
use super::local_packages::is_test_library;
use super::parts::{Part, Role};
use super::tools::is_tool;
use crate::weakened::is_test_path;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Scripts of `package.json` that an installation runs.
const LIFECYCLE: &[&str] = &[
    "preinstall",
    "install",
    "postinstall",
    "preprepare",
    "prepare",
    "postprepare",
    "prepublish",
    "dependencies",
];

/// Keys of `package.json` that configure tests.
const PACKAGE_KEYS: &[&str] = &[
    "jest",
    "vitest",
    "mocha",
    "ava",
    "nyc",
    "c8",
    "tap",
    "babel",
    "eslintConfig",
    "prettier",
    "xo",
    "standard",
    "stylelint",
    "wireit",
    "config",
    "overrides",
    "resolutions",
    "pnpm",
    "packageManager",
];

/// What decides of a `package.json`: keys that configure tests, scripts that were there at the start with what runs around
/// them, scripts of an installation, and packages from places that the repo holds.
pub(super) fn package_keys(text: Option<&str>, start: Option<&str>) -> BTreeMap<String, String> {
    let parse = |text: Option<&str>| -> Value {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let (package, start) = (parse(text), parse(start));
    let value = |key: &&str| package.get(*key).map(|value| ((*key).to_owned(), value.to_string()));
    let mut found: BTreeMap<String, String> = PACKAGE_KEYS.iter().filter_map(value).collect();
    let known = |name: &str| {
        let around = name.strip_prefix("pre").or_else(|| name.strip_prefix("post"));
        let first = |name: &str| start["scripts"].get(name).is_some();
        first(name) || around.is_some_and(first) || LIFECYCLE.contains(&name)
    };
    for (name, script) in package["scripts"].as_object().into_iter().flatten() {
        if known(name) {
            found.insert(format!("scripts/{name}"), script.to_string());
        }
    }
    for section in ["dependencies", "devDependencies", "optionalDependencies"] {
        for (name, from) in package[section].as_object().into_iter().flatten() {
            let from = from.as_str().unwrap_or_default();
            if ["file:", "link:", "portal:", "patch:", "./", "../"]
                .iter()
                .any(|local| from.starts_with(local))
            {
                found.insert(format!("{section}/{name}"), from.to_owned());
            }
        }
    }
    // Programs that stand before those of the system once the package is installed: `"bin": {"grep": …}`.
    let one =
        package["bin"].as_str().and(package["name"].as_str()).map(|name| ("bin".to_owned(), name.to_owned()));
    let several =
        package["bin"].as_object().into_iter().flatten().map(|(n, _)| (format!("bin/{n}"), n.clone()));
    for (key, name) in one.into_iter().chain(several).filter(|(_, name)| is_tool(name)) {
        let said = if key == "bin" { &package["bin"] } else { &package["bin"][&name] };
        found.insert(key, said.to_string());
    }
    // A package that calls itself like a library of the tests is loaded in its place.
    let name = package["name"].as_str().unwrap_or_default();
    let installed =
        ["dependencies", "devDependencies"].iter().any(|section| start[*section].get(name).is_some());
    if package["name"] != start["name"] && (installed || is_test_library(name)) {
        found.insert("name".to_owned(), name.to_owned());
    }
    // Names inside the package that stood for something of the tests.
    for (name, target) in start["imports"].as_object().into_iter().flatten() {
        let of_tests =
            target.as_str().is_some_and(|to| is_test_path(to.trim_start_matches("./")) || is_helper(to));
        if let Some(now) = package["imports"].get(name).filter(|_| of_tests) {
            found.insert(format!("imports/{name}"), now.to_string());
        }
    }
    found
}

/// Names inside a package, `#eq`, that stand for something else now.
pub fn redirected_imports(old: &str, new: &str) -> Vec<String> {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (old, new) = (read(old), read(new));
    let names = old["imports"].as_object().into_iter().flatten();
    names
        .filter(|(name, target)| new["imports"].get(name) != Some(*target))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Packages of a workspace that are no longer in it.
pub(super) fn lost_workspaces(old: Option<&str>, new: Option<&str>) -> Vec<Part> {
    let listed = |text: Option<&str>| -> BTreeSet<String> {
        let all: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let list = all["workspaces"].as_array().or_else(|| all["workspaces"]["packages"].as_array());
        list.into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let lost = &listed(old) - &listed(new);
    let part = |item: String| Part {
        key: Some("workspaces".to_owned()),
        role: Role::Configuration,
        added: false,
        needs: (!item.contains('*')).then(|| format!("{}/package.json", item.trim_end_matches('/'))),
    };
    lost.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_stand_for_something_else_are_told() {
        let old = "{\"imports\":{\"#eq\":\"./support/eq.js\",\"#db\":\"./src/db.js\"}}";
        let new = "{\"imports\":{\"#eq\":\"./lib.js\",\"#db\":\"./src/db.js\",\"#new\":\"./n.js\"}}";
        assert_eq!(redirected_imports(old, new), ["#eq"]);
        assert_eq!(redirected_imports(old, "{}"), ["#db", "#eq"]);
        assert_eq!(redirected_imports(old, old), [""; 0]);
    }
}
