//! Files that settings of tests name: what `jest`, `vitest` and `mocha` load before the tests, plug-ins of `pytest`.

use super::gradle;
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
    "vite.config.mts",
    "vitest.workspace.js",
    "vitest.workspace.ts",
    "babel.config.js",
    "babel.config.cjs",
    "babel.config.json",
    ".babelrc",
    "postcss.config.js",
    "postcss.config.cjs",
    "postcss.config.mjs",
    "cypress.config.js",
    "cypress.config.ts",
    "karma.conf.js",
    "ava.config.js",
    "ava.config.mjs",
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
    "build.gradle",
    "build.gradle.kts",
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

/// Keys whose values are loaded by a runner, too, and that may as well name what is tested.
const LOADING_KEYS: &[&str] =
    &["transform", "moduleNameMapper", "ui", "import", "loader", "testResultsProcessor", "plugins"];

/// Ends of names of modules that load others by their paths.
const SCRIPTS: &[&str] = &[".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".json", ".babelrc"];

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
    if name.starts_with("build.gradle") {
        let files = gradle::applied(text).into_iter();
        return files
            .flat_map(|file| [join(folder, &file), Some(file)])
            .flatten()
            .filter(|f| there(f))
            .collect();
    }
    let text = said_of_tests(name, text);
    let values = KEYS.iter().flat_map(|key| strings_of(&text, key));
    found.extend(values.filter_map(|value| file_of(&value, folder, there)));
    found
}

/// The files of the repo that the settings file or module `path` loads in turn: what it imports, what it extends, and what it
/// names to a runner that may be the product, too.
pub fn loaded_files(path: &str, text: &str, there: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
    const TAKES: &[&str] = &["require", "import", "from", "extends", "resolve"];
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if !SCRIPTS.iter().any(|end| name.ends_with(end)) && !name.starts_with(".mocharc") {
        return BTreeSet::new();
    }
    let text = said_of_tests(name, text);
    let takes =
        |line: &&str| !line.trim_start().starts_with("//") && TAKES.iter().any(|word| line.contains(word));
    let taken = text.lines().filter(takes).flat_map(quoted).filter(|value| value.starts_with('.'));
    let named = LOADING_KEYS.iter().flat_map(|key| strings_of(&text, key));
    let files = taken.chain(named).filter_map(|value| file_of(&value, folder, there));
    files.filter(|file| !file.ends_with("package.json") && *file != path).collect()
}

/// The folders in which settings tell `pytest` to look for modules: `pythonpath = app`.
pub fn python_folders(path: &str, text: &str) -> BTreeSet<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if !is_python(name) || name == "conftest.py" {
        return BTreeSet::new();
    }
    let mut lines = text.lines().map(str::trim).filter(|line| line.starts_with("pythonpath"));
    let value = lines.next().and_then(|line| line.split_once('=')).map_or("", |(_, value)| value);
    let words = value.split(|c: char| c.is_whitespace() || "\"',[]".contains(c)).filter(|w| !w.is_empty());
    words.filter_map(|word| join(folder, word)).collect()
}

/// Of a package only what is said about tests: `require` elsewhere is what others load of it.
fn said_of_tests(name: &str, text: &str) -> String {
    if name != "package.json" {
        return text.to_owned();
    }
    let all: Value = serde_json::from_str(text).unwrap_or_default();
    let said =
        ["jest", "mocha", "vitest", "ava", "tap", "nyc", "c8"].into_iter().filter_map(|key| all.get(key));
    said.map(Value::to_string).collect::<Vec<_>>().join("\n")
}

/// The file that a value of settings in `folder` stands for.
fn file_of(value: &str, folder: &str, there: &dyn Fn(&str) -> bool) -> Option<String> {
    let value = value.trim_start_matches("<rootDir>/").trim_start_matches("<rootDir>");
    let base = join(folder, value.trim_start_matches('/')).filter(|base| !base.is_empty())?;
    ENDS.iter().map(|end| format!("{base}{end}")).find(|file| there(file))
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
        } else if start.starts_with('{') {
            let end = start.find('}').unwrap_or(start.len());
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
    #[test]
    fn build_files_apply_scripts() {
        let there = |path: &str| path == "gradle/verify.gradle";
        for text in
            ["apply from: 'gradle/verify.gradle'\n", "apply(from = \"$rootDir/gradle/verify.gradle\")\n"]
        {
            assert_eq!(setup_files("build.gradle", text, &there).len(), 1, "{text}");
        }
        assert!(setup_files("build.gradle", "apply plugin: 'java'\n", &there).is_empty());
    }

    #[test]
    fn settings_and_what_they_import_load_others() {
        let files = [
            "config/base.js",
            "config/env.js",
            "build/transform.js",
            "tooling/base.mjs",
            "build/ui.js",
            "part.js",
        ];
        let there = |path: &str| files.contains(&path);
        let told = |path: &str, text: &str| loaded_files(path, text, &there).into_iter().collect::<Vec<_>>();
        assert_eq!(
            told("jest.config.js", "module.exports = require('./config/base');\n"),
            ["config/base.js"]
        );
        assert_eq!(told("config/base.js", "const env = require(\"./env\");\n"), ["config/env.js"]);
        assert_eq!(
            told(
                "jest.config.js",
                "module.exports = { transform: {'\\\\.js$': '<rootDir>/build/transform.js'} };\n"
            ),
            ["build/transform.js"]
        );
        assert_eq!(
            told(
                "package.json",
                "{\"main\":\"./part.js\",\"jest\":{\"transform\":{\"js\":\"<rootDir>/build/transform.js\"}}}"
            ),
            ["build/transform.js"]
        );
        assert_eq!(
            told("vitest.config.mjs", "import base from './tooling/base.mjs';\n"),
            ["tooling/base.mjs"]
        );
        assert_eq!(told(".mocharc.json", "{\"ui\":\"./build/ui.js\"}"), ["build/ui.js"]);
        assert_eq!(told(".mocharc.yml", "ui: ./build/ui.js\n"), ["build/ui.js"]);
        assert_eq!(told("jest.config.js", "// require('./part')\nmodule.exports = {};\n"), [""; 0]);
        assert_eq!(told("conftest.py", "from part import *\n"), [""; 0]);
        let folders = |text: &str| python_folders("pyproject.toml", text).into_iter().collect::<Vec<_>>();
        assert_eq!(
            folders("[tool.pytest.ini_options]\npythonpath = [\"app\", \"src/x\"]\n"),
            ["app", "src/x"]
        );
        assert_eq!(folders("[project]\nname = 'pythonpath'\n"), [""; 0]);
    }
}
