//! Files that settings of tests name: what `jest`, `vitest` and `mocha` load before the tests, plug-ins of `pytest`.

use super::shell::join;
use serde_json::Value;
use std::collections::BTreeSet;

/// Names of files that may name others, each looked for in the folders of tests and at the top.
pub const SETTINGS: &[&str] = &[
    "package.json",
    "jest.config.js",
    "jest.config.cjs",
    "jest.config.mjs",
    "jest.config.ts",
    "jest.config.json",
    "vitest.config.js",
    "vitest.config.mjs",
    "vitest.config.ts",
    "vitest.config.mts",
    "vite.config.js",
    "vite.config.mjs",
    "vite.config.ts",
    ".mocharc.json",
    ".mocharc.js",
    ".mocharc.cjs",
    ".mocharc.yml",
    ".mocharc.yaml",
    "playwright.config.js",
    "playwright.config.ts",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "conftest.py",
];

/// Keys of settings in JavaScript and its kin whose values are loaded by a runner of tests.
const KEYS: &[&str] = &[
    "setupFiles",
    "setupFilesAfterEnv",
    "globalSetup",
    "globalTeardown",
    "testEnvironment",
    "testRunner",
    "testSequencer",
    "snapshotSerializers",
    "snapshotResolver",
    "reporters",
    "reporter",
    "resolver",
    "preset",
    "runner",
    "require",
    "file",
];

/// Ends that a name without one is tried with.
const ENDS: &[&str] = &["", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".json", "/index.js", "/index.ts"];

/// The files of the repo that the settings file `path` with this text names; `there` knows which exist.
pub fn setup_files(path: &str, text: &str, there: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut found = BTreeSet::new();
    if is_python(name) {
        let plugins = if name == "conftest.py" { strings_of(text, "pytest_plugins") } else { options(text) };
        for module in plugins {
            let file = module.replace('.', "/");
            let places = ["", folder, "src"].map(|base| join(base, &file));
            for place in places.into_iter().flatten() {
                let files = [format!("{place}.py"), format!("{place}/__init__.py")];
                found.extend(files.into_iter().filter(|file| there(file)));
            }
        }
        return found;
    }
    // Of a package only what is said about tests: `require` elsewhere is what others load of it.
    let of_tests = |text: &str| {
        let all: Value = serde_json::from_str(text).unwrap_or_default();
        let said =
            ["jest", "mocha", "vitest", "ava", "tap", "nyc", "c8"].into_iter().filter_map(|key| all.get(key));
        said.map(Value::to_string).collect::<Vec<_>>().join("\n")
    };
    let text = if name == "package.json" { of_tests(text) } else { text.to_owned() };
    for value in KEYS.iter().flat_map(|key| strings_of(&text, key)) {
        let value = value.trim_start_matches("<rootDir>/").trim_start_matches("<rootDir>");
        let Some(base) = join(folder, value.trim_start_matches('/')) else { continue };
        found.extend(ENDS.iter().map(|end| format!("{base}{end}")).find(|file| there(file)));
    }
    found
}

fn is_python(name: &str) -> bool {
    name.ends_with(".ini") || matches!(name, "setup.cfg" | "pyproject.toml" | "conftest.py")
}

/// Plug-ins in options of `pytest`: `-p support.plug`.
fn options(text: &str) -> Vec<String> {
    let mut words =
        text.split(|c: char| c.is_whitespace() || "\"',=[]".contains(c)).filter(|w| !w.is_empty());
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        match word.strip_prefix("-p") {
            Some("") => found.extend(words.next().map(str::to_owned)),
            Some(module) if !module.starts_with('-') => found.push(module.to_owned()),
            _ => {}
        }
    }
    found.retain(|module| !module.starts_with("no:"));
    found
}

/// The texts that a key is given: one, or a list of them, in JSON, JavaScript, Python or YAML.
fn strings_of(text: &str, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(key) {
        let before = text[..at].chars().next_back();
        let rest = text[at + key.len()..].trim_start_matches(['"', '\'']).trim_start();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.') {
            continue;
        }
        let Some(value) = rest.strip_prefix([':', '=']) else { continue };
        let value = value.strip_prefix('=').unwrap_or(value);
        let start = value.trim_start();
        if start.starts_with(['[', '(']) {
            let end = start.find([']', ')']).unwrap_or(start.len());
            found.extend(quoted(&start[..end]));
        } else if start.starts_with(['"', '\'', '`']) {
            found.extend(quoted(start.lines().next().unwrap_or_default()).into_iter().take(1));
        } else {
            found.extend(yaml(value));
        }
    }
    found
}

fn quoted(text: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['"', '\'', '`']) {
        let quote = rest[at..].chars().next().unwrap_or('"');
        let Some(end) = rest[at + 1..].find(quote) else { break };
        found.push(rest[at + 1..at + 1 + end].to_owned());
        rest = &rest[at + end + 2..];
    }
    found
}

/// A plain value on the line, or the list below it.
fn yaml(value: &str) -> Vec<String> {
    let mut lines = value.lines();
    let first = lines.next().unwrap_or_default().trim();
    if !first.is_empty() {
        return first.contains(['/', '.']).then(|| first.to_owned()).into_iter().collect();
    }
    let items = lines.map_while(|line| line.trim().strip_prefix("- "));
    items.map(|item| item.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_what_is_loaded_before_tests() {
        let files = ["support/env.js", "support/hooks.js", "support/plug.py", "src/app.js"];
        let there = |path: &str| files.contains(&path);
        let told = |path: &str, text: &str| setup_files(path, text, &there).into_iter().collect::<Vec<_>>();
        let jest =
            "{\"main\":\"src/app.js\",\"jest\":{\"setupFilesAfterEnv\":[\"<rootDir>/support/env.js\"]}}";
        assert_eq!(told("package.json", jest), ["support/env.js"]);
        assert_eq!(told("package.json", "{\"exports\":{\"require\":\"./src/app.js\"}}"), [""; 0]);
        let vitest =
            "export default { test: { setupFiles: ['./support/env'], alias: { a: './src/app.js' } } };";
        assert_eq!(told("vitest.config.js", vitest), ["support/env.js"]);
        assert_eq!(told(".mocharc.json", "{\"require\":[\"./support/hooks.js\"]}"), ["support/hooks.js"]);
        assert_eq!(told(".mocharc.yml", "require:\n  - ./support/hooks.js\nspec: x\n"), ["support/hooks.js"]);
        assert_eq!(told("conftest.py", "pytest_plugins = [\"support.plug\"]\n"), ["support/plug.py"]);
        assert_eq!(told("pytest.ini", "[pytest]\naddopts = -q -p support.plug\n"), ["support/plug.py"]);
        assert_eq!(told("pyproject.toml", "addopts = [\"-p\", \"support.plug\"]\n"), ["support/plug.py"]);
        assert_eq!(told("pytest.ini", "[pytest]\naddopts = -p no:cacheprovider\n"), [""; 0]);
    }
}
