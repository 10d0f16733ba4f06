//! Settings of tools that no list knows: by how a file is written and where it stands. Which of the many tools a check is made of
//! goes by it is seen by nobody who only reads names, so a change of it is told and checked without, and fails nothing.

use super::build_files::brackets;
use super::free::is_free;
use super::parts::is_keyed;
use serde_json::Value;

/// Ends of names in which settings are written, where tools look for them.
const ENDS: &[&str] = &[
    "cfg",
    "conf",
    "config",
    "edn",
    "hcl",
    "ini",
    "json",
    "json5",
    "jsonc",
    "neon",
    "properties",
    "toml",
    "xml",
    "yaml",
    "yml",
];

/// Ends of names of what tools build and run by, wherever it stands.
const BUILD: &[&str] = &[
    "bzl", "cmake", "gradle", "just", "mk", "nix", "props", "sbt", "sc", "sln", "slnf", "slnx", "star",
    "targets",
];

/// What stands before the end of a module that a tool is set up by: `webpack.config.js`, `truffle-config.js`.
const MODULES: &[&str] = &["config", "conf", "preset", "projects", "setup", "workspace"];

/// Ends of names of such modules.
const SCRIPTS: &[&str] = &["js", "cjs", "mjs", "ts", "cts", "mts"];

/// Names without an end by which a tool is told what to run, beside those that end in `file`.
const NAMES: &[&str] = &["magefile.go", "build.mill", "project.json"];

/// Ends of names in which no product keeps its data: in any folder below one of settings.
const ONLY_SETTINGS: &[&str] = &["cfg", "conf", "ini", "neon", "xml"];

/// Files in whose folder tools look for their settings.
const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "Gemfile",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "deno.json",
    "go.mod",
    "mix.exs",
    "package.json",
    "pom.xml",
    "project.json",
    "pubspec.yaml",
    "pyproject.toml",
    "setup.py",
];

/// Folders in which settings stand.
const FOLDERS: &[&str] = &["build", "cmake", "config", "gradle", "mk", "project", "tooling"];

/// Whether a tool may be set up by a file, by its name and place; `there` knows the files of the start.
pub fn is_plain_setting(path: &str, there: &dyn Fn(&str) -> bool) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    let module = SCRIPTS.contains(&end) && {
        let last = stem.rsplit(['.', '-']).next().unwrap_or(stem);
        last.len() < stem.len() && MODULES.contains(&last)
    };
    let made_by = NAMES.contains(&name)
        || (end.is_empty()
            && name.ends_with("file")
            && name.starts_with(char::is_uppercase)
            && !is_free(path));
    let definition = folder.rsplit('/').next() == Some("project") && matches!(end, "scala" | "sbt");
    if BUILD.contains(&end) || module || made_by || definition {
        return true;
    }
    let beside = |manifest: &str| there(&format!("{folder}/{manifest}"));
    let looked_in = folder.is_empty()
        || folder.rsplit('/').next().is_some_and(|last| FOLDERS.contains(&last))
        || (ONLY_SETTINGS.contains(&end) && folder.split('/').any(|part| FOLDERS.contains(&part)))
        || MANIFESTS.iter().any(|manifest| *manifest != name && beside(manifest));
    ENDS.contains(&end) && !stem.is_empty() && looked_in && !is_free(path) && !is_keyed(path)
}

/// Whether a change of such a file says something else than dependencies, versions and remarks; a new one does if it says anything.
pub fn changes_setting(path: &str, old: Option<&str>, new: Option<&str>) -> bool {
    let json = |text: Option<&str>| match text {
        Some(text) => serde_json::from_str::<Value>(text).ok().map(without_needs),
        None => Some(Value::Null),
    };
    if path.ends_with(".json")
        && let (Some(old), Some(new)) = (json(old), json(new))
    {
        return old != new;
    }
    lines_without_needs(old.unwrap_or_default()) != lines_without_needs(new.unwrap_or_default())
}

/// Whether a key, or the heading of a section, is about what something needs, or which version it is.
fn is_need(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["depend", "require", "version", "librar", "package", "description", "license", "author"]
        .iter()
        .any(|word| key.contains(word))
        && !["test", "script", "hook", "check", "override", "manager"].iter().any(|word| key.contains(word))
}

fn without_needs(value: Value) -> Value {
    match value {
        Value::Object(all) => {
            let kept = all.into_iter().filter(|(key, value)| !is_need(key) || names_file(value));
            Value::Object(kept.map(|(key, value)| (key, without_needs(value))).collect())
        }
        value => value,
    }
}

/// Whether something is taken from the repo, or from this machine, and not fetched: `"require": "./easy.js"`.
fn names_file(value: &Value) -> bool {
    match value {
        Value::String(text) => is_path(text),
        Value::Array(all) => all.iter().any(names_file),
        Value::Object(all) => all.values().any(names_file),
        _ => false,
    }
}

fn is_path(text: &str) -> bool {
    // What follows the colon of an address is none.
    ["./", "../", "/", "file:"].iter().any(|begin| text.starts_with(begin)) && !text.starts_with("//")
}

/// The lines that are no remark and about no dependency: with what stands further in, in brackets that are still open, in the
/// section of TOML, or in the list of YAML below.
fn lines_without_needs(text: &str) -> Vec<&str> {
    let (mut kept, mut section, mut list, mut above, mut open) = (Vec::new(), false, false, None, 0);
    for line in text.lines() {
        let plain = line.trim();
        if plain.is_empty() || ["#", "//", ";", "<!--"].iter().any(|mark| plain.starts_with(mark)) {
            continue;
        }
        if plain.starts_with('[') && plain.ends_with(']') && !plain.contains(['"', ',']) {
            section = is_need(plain);
        }
        let depth = line.len() - line.trim_start().len();
        let inside =
            open > 0 || above.is_some_and(|above| depth > above) || (list && plain.starts_with("- "));
        // Something of the repo in the place of what would be fetched.
        let local = ["path:", "path =", "path="].iter().filter_map(|word| plain.split_once(word)).any(
            |(_, value)| {
                let value = value.trim_start_matches([' ', '"', '\'']);
                value.starts_with(|c: char| c.is_alphabetic() || matches!(c, '.' | '/'))
            },
        );
        let said = plain.split([':', '=']).nth(1).unwrap_or(plain);
        let local = local || is_path(said.trim_start_matches([' ', '-', '"', '\'', '[']));
        if local {
            kept.push(plain);
        }
        if !inside {
            let key = plain.split([':', '=']).next().unwrap_or(plain);
            let need = key.len() < plain.len() && is_need(key);
            (above, list) = (need.then_some(depth), need && plain.ends_with(':'));
            if !need {
                if !section && !local {
                    kept.push(plain);
                }
                continue;
            }
        }
        open = (open + brackets(line)).max(0);
    }
    kept
}

/// Words that a source says of a setting which it reads itself: its name, quoted or in a path.
pub fn reads_setting(text: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        before.is_some_and(|c| "\"'`/<".contains(c)) && after.is_some_and(|c| "\"'`>?#)".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_known_by_how_they_are_written_and_where_they_stand() {
        let there = |path: &str| matches!(path, "apps/a/package.json" | "crates/a/Cargo.toml");
        for path in [
            "angular.json",
            "workspace.json",
            "apps/a/cypress.json",
            "import_map.json",
            "flake.nix",
            "nix/shell.nix",
            "behave.ini",
            "psalm.xml",
            "config/checkstyle/checkstyle.xml",
            "apps/b/project.json",
            "cmake/tests.cmake",
            "mk/rules.mk",
            "webpack.config.js",
            "truffle-config.js",
            "vitest.projects.ts",
            "jest.preset.js",
            "project/Common.scala",
            "build.sc",
            "a.sln",
            "Directory.Packages.props",
            "Procfile",
            "magefile.go",
            "crates/a/deny.toml",
        ] {
            assert!(is_plain_setting(path, &there), "{path}");
        }
        for path in [
            "src/app.js",
            "src/config.js",
            "data/words.json",
            "src/locales/en.json",
            "config/locales/en.yml",
            "deploy/k8s.yaml",
            "package.json",
            "package-lock.json",
            "Cargo.toml",
            "Cargo.lock",
            "requirements.txt",
            "README.md",
            "part.txt",
            "Makefile",
            "src/project.rs",
            "profile",
            "tsconfig.json",
        ] {
            assert!(!is_plain_setting(path, &there), "{path}");
        }
    }

    #[test]
    fn dependencies_of_any_manifest_are_told_from_settings() {
        for (path, old, new) in [
            (
                "pubspec.yaml",
                "name: a\ndependencies:\n  http: ^1.0\n",
                "name: a\ndependencies:\n  http: ^1.0\n  path: ^2.0\n",
            ),
            (
                "environment.yml",
                "name: a\ndependencies:\n- numpy\n",
                "name: a\ndependencies:\n- numpy\n- scipy\n",
            ),
            (
                "gleam.toml",
                "name = \"a\"\n[dependencies]\na = \"1\"\n",
                "name = \"a\"\n[dependencies]\na = \"1\"\nb = \"2\"\n",
            ),
            (
                "vcpkg.json",
                "{\n  \"dependencies\": [\n    \"a\"\n  ]\n}\n",
                "{\n  \"dependencies\": [\n    \"a\",\n    \"b\"\n  ]\n}\n",
            ),
            ("elm.json", "{\n  \"version\": \"1\"\n}\n", "{\n  \"version\": \"2\"\n}\n"),
            ("mkdocs.yml", "a: 1\n", "# why\na: 1\n"),
        ] {
            assert!(!changes_setting(path, Some(old), Some(new)), "{path}");
            assert!(changes_setting(path, Some(old), Some(&format!("easy: true\n{new}"))), "{path}");
        }
        assert!(
            changes_setting("x.json", None, Some("{\"a\": 1}\n"))
                && changes_setting("x.json", Some("{}"), None)
        );
    }

    #[test]
    fn what_is_needed_from_the_repo_is_a_setting() {
        for (path, old, new) in [
            ("runner.json", "{}", "{\"require\": \"./easy.js\"}"),
            ("runner.json", "{}", "{\"require\": [\"tap\", \"../easy.js\"]}"),
            ("runner.json", "{}", "{\"dependencies\": {\"tap\": \"file:easy\"}}"),
            ("runner.yml", "a: 1\n", "a: 1\nrequire: ./easy.js\n"),
            ("runner.yml", "a: 1\n", "a: 1\nrequire:\n  - './easy.js'\n"),
            ("runner.toml", "a = 1\n", "a = 1\nrequire = [\"./easy.js\"]\n"),
        ] {
            assert!(changes_setting(path, Some(old), Some(new)), "{path}: {new}");
        }
        assert!(!changes_setting("runner.yml", Some("a: 1\n"), Some("a: 1\nrequire:\n  - tap\n")));
        assert!(!changes_setting("runner.json", Some("{}"), Some("{\"require\": [\"tap\"]}")));
        let fetched = "a: 1\nrequire:\n  - https://a.example/tap.tgz\n";
        assert!(!changes_setting("runner.yml", Some("a: 1\n"), Some(fetched)));
    }

    #[test]
    fn sources_that_read_a_setting_themselves_are_told() {
        assert!(reads_setting("json.load(open('config.json'))", "config.json"));
        assert!(reads_setting("import data from './config.json';", "config.json"));
        assert!(reads_setting("include_str!(\"../app.toml\")", "app.toml"));
        assert!(
            !reads_setting("# see config.json", "config.json")
                && !reads_setting("'myconfig.json'", "config.json")
        );
    }
}
