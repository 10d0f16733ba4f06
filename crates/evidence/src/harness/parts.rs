//! Files that are tests or configure them, by their names and, where only a part of a file does, by its keys.

use super::doc_examples::doc_examples;
use super::inline::inline_tests;
use super::local_packages::{is_lock, is_requirements, is_tool_patch, local_packages, local_requirements};
use super::lock_sources::{is_source_lock, tool_sources};
use super::package_json::{lost_workspaces, package_keys};
use super::{build_files, cmake, composer, gemfile, go_files, gradle, maven, toml_files, ts_config};
use crate::weakened::{is_snapshot, is_test_data, is_test_path};
use std::collections::BTreeMap;

/// What a part of a file is to the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A test, or a recorded expectation.
    Test,
    /// It configures how tests are found, run or counted.
    Configuration,
    /// It puts something else in the place of what runs the checks, or forges what they say.
    Replacement,
}

/// A part of a file that decides, and that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The key or section; `None` for the whole file.
    pub key: Option<String>,
    /// What it is.
    pub role: Role,
    /// Whether it is new: there was nothing of the kind at the start.
    pub added: bool,
    /// A file beside this one without which it is nothing: what was left out of a list and is gone is not missed.
    pub needs: Option<String>,
}

/// Files that configure tests as a whole.
const WHOLE: &[&str] = &[
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "tox.toml",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    ".coveragerc",
    "karma.conf.js",
    "phpunit.xml",
    "phpunit.xml.dist",
    ".rspec",
    "testng.xml",
    "nextest.toml",
    "CTestTestfile.cmake",
    "CTestCustom.cmake",
    "build.ninja",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmrc",
    "pnpmfile.cjs",
    ".pnpmfile.cjs",
    "Taskfile.yml",
    "Taskfile.yaml",
    "taskfile.yml",
    "taskfile.yaml",
    "Taskfile.dist.yml",
    "Taskfile.dist.yaml",
    "taskfile.dist.yml",
    "taskfile.dist.yaml",
    "mise.toml",
    "phpunit.dist.xml",
    "bunfig.toml",
    "rustfmt.toml",
    "clippy.toml",
    "ruff.toml",
    "mypy.ini",
    "pylintrc",
    "biome.json",
    "biome.jsonc",
    "pyrightconfig.json",
    "tslint.json",
    "phpstan.neon",
    "turbo.json",
    "nx.json",
    "lerna.json",
    "pnpm-workspace.yaml",
    "pytest.toml",
    "jest-preset.js",
    "deno.json",
    "deno.jsonc",
    "gradle-wrapper.properties",
    "gradle-wrapper.jar",
];

/// Dot files and folders that no runner of checks goes by.
const HARMLESS: &[&str] = &[
    ".gitignore",
    ".gitkeep",
    ".keep",
    ".gitattributes",
    ".mailmap",
    ".npmignore",
    ".github",
    ".ralph",
    ".vscode",
    ".idea",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".",
    "..",
];

/// Beginnings of names of files that configure tests as a whole: `jest.config.js`, `.mocharc.json`.
const WHOLE_STEMS: &[&str] = &[
    "jest.config.",
    "vitest.config.",
    "vitest.workspace.",
    "vite.config.",
    "playwright.config.",
    "cypress.config.",
    "ava.config.",
    ".mocharc",
    ".nycrc",
    ".c8rc",
    "wdio.conf.",
    "jest.setup.",
    "jest-setup.",
    "setup-jest.",
    "vitest.setup.",
    "vitest-setup.",
    "setupTests.",
    "babel.config.",
    "eslint.config.",
    "prettier.config.",
    "stylelint.config.",
    "postcss.config.",
    "tailwind.config.",
];

/// Sections of files that configure tests, by the beginning of their headings.
const SECTIONS: &[(&str, &[&str])] = &[
    (
        "setup.cfg",
        &[
            "[tool:pytest",
            "[coverage",
            "[mypy",
            "[flake8",
            "[pylint",
            "[pycodestyle",
            "[options.entry_points",
        ],
    ),
    (
        "pyproject.toml",
        &[
            "[tool.pytest",
            "[tool.coverage",
            "[tool.tox",
            "[tool.hatch.envs",
            "[tool.poe]",
            "[tool.poe.",
            "[tool.ruff",
            "[tool.mypy",
            "[tool.black",
            "[tool.isort",
            "[tool.pyright",
            "[tool.pylint",
            "[tool.flake8",
            "[project.entry-points",
            "[build-system",
        ],
    ),
    (
        "Cargo.toml",
        &[
            "[[test",
            "[profile",
            "[lib",
            "[[bin",
            "[[bench",
            "[[example",
            "[lints",
            "[workspace.lints",
            "[patch",
            "[replace",
        ],
    ),
];

/// Whether a section of `Cargo.toml` is compared with all its lines.
pub(super) fn is_whole_section(key: &str) -> bool {
    ["[test", "test", "profile", "[bench", "bench", "lints", "workspace.lints", "patch", "replace", "example"]
        .iter()
        .any(|whole| key.starts_with(whole))
}

/// Words by which a file puts something else in the place of what runs checks, with the names of such files.
const REPLACES: &[(&[&str], &[&str])] = &[
    (
        &[".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmrc"],
        &["script-shell", "node-options", "ignore-scripts", "yarn-path", "yarnPath", "npx", "scriptShell"],
    ),
    (&["config.toml", "config"], &["runner", "rustc-wrapper", "rustc =", "rustc=", "[alias]", "linker"]),
    (
        &["conftest.py", "sitecustomize.py", "usercustomize.py"],
        &[
            "_exit(",
            "sys.exit(",
            "exitstatus",
            "force_result",
            "pytest_report_teststatus",
            "pytest_runtest_protocol",
            ".outcome =",
            ".outcome=",
            "outcome = ",
            "unittest.",
            "pytest_pyfunc_call",
        ],
    ),
];

/// The parts of the changed file `path` that decide and differ; `old` and `new` are its texts, where it has one.
pub fn changed_parts(path: &str, old: Option<&str>, new: Option<&str>) -> Vec<Part> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let added = old.is_none();
    let whole = |role: Role| vec![Part { key: None, role, added, needs: None }];
    let cargo_config = path.ends_with(".cargo/config.toml") || path.ends_with(".cargo/config");
    let configures = WHOLE.contains(&name)
        || WHOLE_STEMS.iter().any(|stem| name.starts_with(stem))
        || name.ends_with(".pth")
        || is_dot_setting(path)
        || is_build_file(path)
        || build_files::is_tool_setting(path)
        || is_tool_patch(path)
        || cargo_config;
    if configures {
        return whole(if replaces(path, old, new) { Role::Replacement } else { Role::Configuration });
    }
    if name.ends_with(".toml")
        && let Some(parts) =
            SECTIONS.iter().find(|(file, _)| *file == name).and_then(|_| toml_files::changed(name, old, new))
    {
        return parts;
    }
    if let Some((_, headings)) = SECTIONS.iter().find(|(file, _)| *file == name) {
        let cargo = name == "Cargo.toml";
        return keyed(&sections(old, headings, cargo), &sections(new, headings, cargo));
    }
    if name == "package.json" {
        let mut parts = keyed(&package_keys(old, old), &package_keys(new, old));
        parts.extend(lost_workspaces(old, new));
        return parts;
    }
    if is_requirements(name) {
        return keyed(&local_requirements(old), &local_requirements(new));
    }
    if is_lock(name) || is_source_lock(name) {
        let mut parts = keyed(&taken(name, old, (old, new)), &taken(name, new, (old, old)));
        if name == "go.mod" {
            parts.extend(keyed(&go_files::left_out(old), &go_files::left_out(new)));
        }
        return parts;
    }
    if name.starts_with("tsconfig") && name.ends_with(".json") {
        return match (ts_config::deciding(old), ts_config::deciding(new)) {
            (Some(old), Some(new)) => keyed(&old, &new),
            _ => whole(Role::Configuration),
        };
    }
    match name {
        "CMakeLists.txt" => return cmake::changed(old, new),
        "pom.xml" => {
            let said = |text: Option<&str>| maven::about_tests(text.unwrap_or_default());
            let mut parts = keyed(&said(old), &said(new));
            parts.extend(maven::lost_modules(old.unwrap_or_default(), new.unwrap_or_default()));
            return parts;
        }
        "build.gradle" | "build.gradle.kts" => {
            let said = |text: Option<&str>| gradle::about_tests(text.unwrap_or_default());
            return keyed(&said(old), &said(new));
        }
        "settings.gradle" | "settings.gradle.kts" => {
            return keyed(&gradle::settings(old, old), &gradle::settings(new, old));
        }
        "go.work" => return keyed(&go_files::used_modules(old), &go_files::used_modules(new)),
        "Gemfile" => return keyed(&gemfile::deciding(old, old), &gemfile::deciding(new, old)),
        "composer.json" => return keyed(&composer::deciding(old), &composer::deciding(new)),
        "Pipfile" => {
            return keyed(&sections(old, &["[scripts"], false), &sections(new, &["[scripts"], false));
        }
        _ if build_files::is_build_file(path) && !is_test_path(path) => {
            return keyed(&build_files::said(path, old, old), &build_files::said(path, new, old));
        }
        // Another version of the compiler is a dependency; a compiler at a path of the run's own choice is not.
        "rust-toolchain.toml" | "rust-toolchain" => {
            return match toml_files::toolchain_path(old) == toml_files::toolchain_path(new) {
                true => Vec::new(),
                false => whole(Role::Replacement),
            };
        }
        _ => {}
    }
    match is_test_path(path) || is_snapshot(path) || is_test_data(path) {
        true => whole(Role::Test),
        false if name.ends_with(".rs") => {
            let mut parts = keyed(&inline_tests(old), &inline_tests(new));
            parts.iter_mut().for_each(|part| part.role = Role::Test);
            parts
        }
        false => Vec::new(),
    }
}

/// What a lock takes from the repo, and where it takes the tools of tests from: beside the lock of the start, and beside the other
/// one of the two that are compared.
fn taken(
    name: &str,
    text: Option<&str>,
    (start, other): (Option<&str>, Option<&str>),
) -> BTreeMap<String, String> {
    let mut found = if is_source_lock(name) { tool_sources(name, text, other) } else { BTreeMap::new() };
    if is_lock(name) {
        found.extend(local_packages(name, text, start));
    }
    found
}

/// The examples in the documentation of a file that differ, where those are run as tests.
pub fn changed_examples(old: Option<&str>, new: Option<&str>) -> Vec<Part> {
    let mut parts = keyed(&doc_examples(old), &doc_examples(new));
    parts.iter_mut().for_each(|part| part.role = Role::Test);
    parts
}

/// Whether a path is a setting by its dot: `.proverc`, `.yarn/releases/x.cjs`.
fn is_dot_setting(path: &str) -> bool {
    let dotted = path.split('/').find(|part| part.starts_with('.'));
    dotted.is_some_and(|part| !HARMLESS.contains(&part))
}

/// Whether a whole file decides what a build tool runs: files of Rake, and what Gradle builds itself with.
fn is_build_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let below = |folder: &str| path.split('/').rev().skip(1).any(|part| part == folder);
    matches!(
        name,
        "Rakefile"
            | "rakefile"
            | "Rakefile.rb"
            | "rakefile.rb"
            | "gradle.properties"
            | "init.gradle"
            | "init.gradle.kts"
    ) || (name.ends_with(".rake") && below("rakelib"))
        || below("buildSrc")
}

fn replaces(path: &str, old: Option<&str>, new: Option<&str>) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let says = |word: &str, text: Option<&str>| {
        text.unwrap_or_default()
            .lines()
            .map(str::trim)
            .any(|l| !l.starts_with(['#', ';']) && l.contains(word))
    };
    let count = |word: &str, text: Option<&str>| text.unwrap_or_default().matches(word).count();
    REPLACES
        .iter()
        .filter(|(names, _)| names.contains(&name))
        .any(|(_, words)| words.iter().any(|word| says(word, new) && count(word, new) > count(word, old)))
}

pub(super) fn keyed(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<Part> {
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    keys.into_iter()
        .filter(|key| old.get(*key) != new.get(*key))
        .map(|key| Part {
            key: Some(key.clone()),
            role: Role::Configuration,
            added: !old.contains_key(key),
            needs: None,
        })
        .collect()
}

/// Sections of an INI or TOML file whose heading begins so, each with its lines.
fn sections(text: Option<&str>, headings: &[&str], cargo: bool) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut heading = String::new();
    for line in text.unwrap_or_default().lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            heading = line.to_owned();
        }
        let picked = headings.iter().any(|h| heading.starts_with(h));
        // Of a package only what decides which tests there are.
        let package = cargo && heading == "[package]" && line.starts_with("auto");
        // A library or a program is product, except for whether and how it is tested.
        let product = cargo && (heading.starts_with("[lib") || heading.starts_with("[[bin"));
        let tests = ["test", "harness", "doctest"].iter().any(|word| line.starts_with(word));
        // A crate that tests are written with may be one of the repo.
        let own_crate =
            cargo && heading.contains("dev-dependencies") && (line.contains("path") || line.contains("git"));
        if (picked && (!product || tests)) || package || own_crate {
            let key = heading.trim_matches(['[', ']']).to_owned();
            let text = found.entry(key).or_default();
            text.push_str(line);
            text.push('\n');
        }
    }
    found
}

/// Whether only some keys of a file decide, so that it is read.
pub fn is_keyed(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    SECTIONS.iter().any(|(file, _)| *file == name)
        || matches!(name, "package.json" | "CMakeLists.txt" | "pom.xml" | "build.gradle" | "build.gradle.kts")
        || matches!(name, "settings.gradle" | "settings.gradle.kts" | "go.work" | "composer.json" | "Pipfile")
        || name == "Gemfile"
        || build_files::is_build_file(path)
        || matches!(name, "rust-toolchain.toml" | "rust-toolchain")
        || (name.starts_with("tsconfig") && name.ends_with(".json"))
        || is_requirements(name)
        || is_lock(name)
        || is_source_lock(name)
        || name.ends_with(".rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str, old: Option<&str>, new: Option<&str>) -> Vec<String> {
        let line = |p: Part| {
            let added = if p.added { " added" } else { "" };
            format!("{} {:?}{added}", p.key.unwrap_or_default(), p.role).trim().to_owned()
        };
        changed_parts(path, old, new).into_iter().map(line).collect()
    }

    #[test]
    fn another_version_of_the_compiler_is_free_and_one_at_another_path_is_not() {
        let (one, two) = ("[toolchain]\nchannel = '1.80'\n", "[toolchain]\nchannel = 'stable'\n");
        let (own, evil) = ("[toolchain]\npath = '/opt/rust'\n", "[toolchain]\npath = '/repo/tc'\n");
        assert_eq!(told("rust-toolchain.toml", Some(one), Some(two)), [""; 0]);
        assert_eq!(told("rust-toolchain", Some("1.80"), Some("stable")), [""; 0]);
        assert_eq!(told("rust-toolchain.toml", Some(own), Some(&format!("# why\n{own}"))), [""; 0]);
        assert_eq!(told("rust-toolchain.toml", Some(one), Some(evil)), ["Replacement"]);
        assert_eq!(told("rust-toolchain.toml", Some(own), Some(evil)), ["Replacement"]);
        assert_eq!(told("sub/rust-toolchain", None, Some(evil)), ["Replacement added"]);
    }

    #[test]
    fn dependencies_and_product_are_free_and_what_configures_tests_is_not() {
        let cargo = "[package]\nname = 'a'\n[dependencies]\nserde = '1'\n";
        assert_eq!(told("Cargo.toml", Some(cargo), Some(&format!("{cargo}toml = '1'\n"))), [""; 0]);
        assert_eq!(
            told("Cargo.toml", Some(cargo), Some(&format!("{cargo}[lib]\ntest = false\n"))),
            ["lib Configuration added"]
        );
        assert_eq!(told("src/a.rs", Some("1"), Some("2")), [""; 0]);
        assert_eq!(
            told("package.json", Some("{\"dependencies\":{}}"), Some("{\"dependencies\":{\"a\":1}}")),
            [""; 0]
        );
        assert_eq!(told("package.json", Some("{}"), Some("{\"jest\":{}}")), ["jest Configuration added"]);
        assert_eq!(told("package.json", Some("{\"name\":\"a\"}"), Some("{\"name\":\"b\"}")), [""; 0]);
        assert_eq!(
            told(
                "package.json",
                Some("{\"name\":\"a\"}"),
                Some("{\"name\":\"chai\",\"exports\":\"./x.js\"}")
            ),
            ["name Configuration added"]
        );
        assert_eq!(
            told(
                "package.json",
                Some("{\"workspaces\":[\"packages/*\"]}"),
                Some("{\"workspaces\":[\"packages/q\"]}")
            ),
            ["workspaces Configuration"]
        );
        assert_eq!(told("tests/a.py", None, Some("x")), ["Test added"]);
        assert_eq!(told("tests/a.py", Some("y"), Some("x")), ["Test"]);
        assert_eq!(
            told(
                "pyproject.toml",
                Some("[project]\ndependencies = []\n"),
                Some("[project]\ndependencies = ['x']\n")
            ),
            [""; 0]
        );
        assert_eq!(
            told("pyproject.toml", None, Some("[tool.pytest.ini_options]\naddopts = '-k x'\n")),
            ["tool.pytest.ini_options Configuration added"]
        );
    }

    #[test]
    fn files_of_build_tools_decide() {
        for path in [
            "Rakefile",
            "rakefile",
            "rakelib/a.rake",
            "gradle.properties",
            "buildSrc/src/main/groovy/conv.groovy",
            "postcss.config.js",
        ] {
            assert_eq!(told(path, None, Some("x")), ["Configuration added"], "{path}");
        }
        assert_eq!(told("lib/tasks/a.rake", None, Some("x")), [""; 0]);
        let work = "go 1.22\n\nuse (\n\t./a\n\t./b\n)\n";
        assert_eq!(told("go.work", Some(work), Some("go 1.22\n\nuse ./a\n")), ["use Configuration"]);
        assert_eq!(told("go.work", Some(work), Some(&work.replace("1.22", "1.23"))), [""; 0]);
        let module = "module app\n\ngo 1.25\n";
        for ignored in ["ignore ./part\n", "ignore (\n\t./part\n)\n"] {
            let new = format!("{module}{ignored}");
            assert_eq!(told("go.mod", Some(module), Some(&new)), ["ignore Configuration added"], "{ignored}");
        }
        assert_eq!(told("go.mod", Some(module), Some(&module.replace("1.25", "1.26"))), [""; 0]);
        for (path, decides) in [
            ("patches/jest+29.5.0.patch", true),
            ("patches/@vitest+runner+1.0.0.patch", true),
            ("web/patches/mocha@10.patch", true),
            ("patches/lodash+4.17.21.patch", false),
            ("docs/jest.patch", false),
        ] {
            assert_eq!(!told(path, None, Some("x")).is_empty(), decides, "{path}");
        }
        let settings = "rootProject.name = 'a'\ninclude ':app'\n";
        let with = |more: &str| told("settings.gradle", Some(settings), Some(&format!("{settings}{more}\n")));
        assert_eq!(with("include ':more'"), [""; 0]);
        assert_eq!(
            with("gradle.allprojects { tasks.withType(Test) { enabled = false } }"),
            ["settings Configuration added"]
        );
        assert_eq!(
            told("settings.gradle", Some(settings), Some("rootProject.name = 'a'\n")),
            ["include Configuration"]
        );
    }

    #[test]
    fn a_replacement_is_told_from_a_setting() {
        assert_eq!(told(".npmrc", None, Some("script-shell=/bin/true\n")), ["Replacement added"]);
        assert_eq!(told(".npmrc", None, Some("registry=https://example.org\n")), ["Configuration added"]);
        assert_eq!(
            told(".cargo/config.toml", None, Some("[target.x]\nrunner = 'true'\n")),
            ["Replacement added"]
        );
        assert_eq!(
            told("conftest.py", None, Some("import pytest\n@pytest.fixture\ndef a(): return 1\n")),
            ["Configuration added"]
        );
        assert_eq!(
            told(
                "conftest.py",
                None,
                Some("def pytest_sessionfinish(session):\n    session.exitstatus = 0\n")
            ),
            ["Replacement added"]
        );
    }
}
