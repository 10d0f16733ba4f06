//! Packages that lists and locks take from the repo itself: what is installed then is whatever the run wrote there.

use serde_json::Value;
use std::collections::BTreeMap;

/// Packages that tests of JavaScript stand on.
const LIBRARIES: &[&str] = &[
    "assert",
    "ava",
    "c8",
    "chai",
    "cypress",
    "enzyme",
    "expect",
    "jasmine",
    "jest",
    "karma",
    "lab",
    "mocha",
    "nock",
    "node:test",
    "nyc",
    "playwright",
    "power-assert",
    "proxyquire",
    "qunit",
    "should",
    "sinon",
    "supertest",
    "tap",
    "tape",
    "test",
    "testdouble",
    "ts-jest",
    "ts-node",
    "tsx",
    "unexpected",
    "uvu",
    "vitest",
    "zora",
];

/// Whether tests are written with a package of this name, or run by it.
pub(super) fn is_test_library(name: &str) -> bool {
    LIBRARIES.contains(&name)
        || ["@jest/", "@vitest/", "@testing-library/", "@playwright/", "@sinonjs/", "@types/jest"]
            .iter()
            .any(|scope| name.starts_with(scope))
}

/// Whether a file is laid over a library of tests once that is installed: `patches/jest+29.5.0.patch`.
pub(super) fn is_tool_patch(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Some(stem) = name.strip_suffix(".patch").filter(|_| folder.rsplit('/').next() == Some("patches"))
    else {
        return false;
    };
    let scoped = stem.strip_prefix('@').and_then(|rest| rest.split_once(['+', '_']));
    let package = match scoped {
        Some((scope, rest)) => format!("@{scope}/{}", rest.split(['+', '@']).next().unwrap_or_default()),
        None => stem.split(['+', '@']).next().unwrap_or_default().to_owned(),
    };
    is_test_library(&package)
}

/// Whether a file lists requirements of Python.
pub(super) fn is_requirements(name: &str) -> bool {
    (name.contains("requirements") || name.starts_with("constraints"))
        && (name.ends_with(".txt") || name.ends_with(".in"))
}

/// Lines of a list of requirements that name a place of the repo, or set something for all.
pub(super) fn local_requirements(text: Option<&str>) -> BTreeMap<String, String> {
    let lines = text.unwrap_or_default().lines().map(str::trim);
    let local =
        lines.filter(|l| l.starts_with(['-', '.', '/']) || l.contains("file:") || l.ends_with(".whl"));
    joined("local requirements", local)
}

/// Words in a lock, by its name, that lead to a place of the repo.
fn words(name: &str) -> Option<&'static [&'static str]> {
    match name {
        "yarn.lock" | "pnpm-lock.yaml" | "bun.lock" => Some(&["file:", "link:", "portal:", "patch:"]),
        "poetry.lock" | "pdm.lock" => Some(&["type = \"file\"", "type = \"directory\"", "path = "]),
        "uv.lock" => Some(&["{ path =", "{ directory =", "{ editable ="]),
        "composer.lock" => Some(&["\"type\": \"path\"", "\"type\": \"artifact\""]),
        "Gemfile.lock" => Some(&["remote: .", "remote: /", "remote: vendor"]),
        "Pipfile.lock" => Some(&["\"path\":", "\"file\":"]),
        _ => None,
    }
}

/// Whether a file is a lock that may lead to a place of the repo.
pub(super) fn is_lock(name: &str) -> bool {
    is_npm_lock(name) || words(name).is_some()
}

pub(super) fn is_npm_lock(name: &str) -> bool {
    matches!(name, "package-lock.json" | "npm-shrinkwrap.json")
}

/// What a lock takes from the repo, by key; `start` is the lock of the start.
pub(super) fn local_packages(
    name: &str,
    text: Option<&str>,
    start: Option<&str>,
) -> BTreeMap<String, String> {
    let Some(words) = words(name) else { return of_npm(text, start) };
    let lines = text.unwrap_or_default().lines().map(str::trim);
    joined("local packages", lines.filter(|line| words.iter().any(|word| line.contains(word))))
}

fn of_npm(text: Option<&str>, start: Option<&str>) -> BTreeMap<String, String> {
    let read = |text: Option<&str>| -> Value {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let (lock, start) = (read(text), read(start));
    let mut found = BTreeMap::new();
    for (key, entry) in lock["packages"].as_object().into_iter().flatten() {
        let resolved = entry["resolved"].as_str().unwrap_or_default();
        let file = resolved.starts_with("file:");
        // A package of a workspace is a link, too; one that took the place of an installed one is not only that.
        let link = entry["link"] == true;
        let before = &start["packages"][key];
        let takes_place = before.is_object() && before["link"] != true;
        let library = is_test_library(key.rsplit("node_modules/").next().unwrap_or(key));
        let was_file = before["resolved"].as_str().is_some_and(|was| was.starts_with("file:"));
        if file || was_file || (link && (takes_place || library)) {
            found.insert(format!("packages/{key}"), entry.to_string());
        }
    }
    found
}

fn joined<'a>(key: &str, lines: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let all = lines.collect::<Vec<_>>().join("\n");
    Some(all).filter(|all| !all.is_empty()).map(|all| (key.to_owned(), all)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_repo_are_told_from_installed_ones() {
        let old = r#"{"packages":{"node_modules/uvu":{"resolved":"https://r/uvu.tgz"}}}"#;
        let more = r#"{"packages":{"node_modules/uvu":{"resolved":"https://r/uvu.tgz"},"node_modules/a":{"resolved":"https://r/a.tgz"},"node_modules/w":{"resolved":"packages/w","link":true}}}"#;
        let keys = |text: &str| -> Vec<String> {
            local_packages("package-lock.json", Some(text), Some(old)).into_keys().collect()
        };
        assert_eq!(keys(more), [""; 0]);
        assert_eq!(
            keys(&old.replace("https://r/uvu.tgz", "file:assets/data.tgz")),
            ["packages/node_modules/uvu"]
        );
        let link = r#"{"packages":{"node_modules/uvu":{"resolved":"packages/uvu","link":true}}}"#;
        assert_eq!(keys(link), ["packages/node_modules/uvu"]);
        let yarn = local_packages(
            "yarn.lock",
            Some("  resolved \"file:./x.tgz\"\n  resolved \"https://r\"\n"),
            None,
        );
        assert_eq!(yarn.values().collect::<Vec<_>>(), ["resolved \"file:./x.tgz\""]);
        assert!(is_requirements("dev-requirements.txt") && is_requirements("requirements-dev.in"));
        assert!(!local_requirements(Some("./vendor/pytest-9-py3-none-any.whl\n")).is_empty());
        assert!(local_requirements(Some("pytest==9\n# a\n")).is_empty());
    }
}
