//! Which files are tests, recorded expectations, or decide what runs as a test, by the conventions of many ecosystems.

/// Ends of names of sources.
const SOURCES: &[&str] = &[
    "py", "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "rs", "go", "java", "kt", "kts", "scala",
    "groovy", "rb", "php", "cs", "fs", "vb", "swift", "m", "mm", "c", "cc", "cpp", "cxx", "h", "hpp", "ex",
    "exs", "erl", "clj", "cljs", "dart", "lua", "pl", "t", "sh", "bash", "bats", "r", "jl", "hs", "ml",
    "elm", "vue", "svelte", "nim", "zig", "feature", "rego", "robot", "cr", "ps1", "el", "sol", "tcl", "gd",
    "cljc", "gleam", "fish", "zsh", "nu", "d", "f90", "pas", "adb", "v", "sv", "vhd", "rkt", "scm", "lisp",
    "pm", "hurl", "hcl",
];

/// Folders of tests.
const FOLDERS: &[&str] = &[
    "tests",
    "test",
    "__tests__",
    "__mocks__",
    "spec",
    "specs",
    "e2e",
    "integration_tests",
    "testing",
    "testutil",
    "testutils",
    "test_utils",
    "test-utils",
    "testhelpers",
    "t",
];

/// Folders of what tests read.
const DATA_FOLDERS: &[&str] = &[
    "tests",
    "test",
    "__tests__",
    "e2e",
    "integration_tests",
    "fixtures",
    "__fixtures__",
    "testdata",
    "test_data",
    "test-data",
    "cassettes",
];

/// Folders of recorded expectations.
const SNAPSHOT_FOLDERS: &[&str] =
    &["__snapshots__", "snapshots", "__image_snapshots__", "golden", "goldens", "expected", "approvals"];

/// Ends of names of recorded expectations.
const SNAPSHOT_ENDS: &[&str] = &[
    ".snap",
    ".ambr",
    ".golden",
    ".approved.txt",
    ".approved.json",
    ".verified.txt",
    ".expected",
    ".snapshot",
    ".cassette",
];

/// Whether a path is a source of a program by its name.
pub fn is_source(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_some_and(|(_, end)| SOURCES.contains(&end))
}

/// Whether a path is a test by its name or folder. Rust's inline tests are found in the patch itself.
pub fn is_test_path(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    let source = SOURCES.contains(&end);
    if source && folders.split('/').any(|f| FOLDERS.contains(&f) && (f != "t" || end == "t")) {
        return true;
    }
    if folders.starts_with("src/test/") || folders.contains("/src/test/") {
        return source;
    }
    let lower = stem.to_ascii_lowercase();
    let named = lower.starts_with("test_")
        || lower.starts_with("test-")
        || lower == "test"
        || lower == "tests"
        || ["_test", "_tests", "_spec", ".test", ".spec", "-test", "-spec", ".cy", ".e2e"]
            .iter()
            .any(|e| lower.ends_with(e));
    let camel = matches!(end, "java" | "kt" | "scala" | "groovy" | "cs" | "swift" | "php" | "cpp" | "cc")
        && ["Test", "Tests", "TestCase", "Spec", "IT"]
            .iter()
            .any(|e| stem.ends_with(e) && stem.len() > e.len());
    let old = matches!(end, "java" | "php" | "py") && stem.starts_with("Test") && stem.len() > 4;
    // `Part.Tests.ps1` of Pester, `main.tftest.hcl` of Terraform, `Part.t.sol` of Foundry.
    let dotted = [".tests", ".tftest", ".t"].iter().any(|e| lower.ends_with(e));
    (source && (named || camel || old || dotted)) || matches!(end, "bats" | "feature" | "robot" | "hurl")
}

/// Folders of helpers for tests, which a library may ship, too.
const SUPPORT: &[&str] = &["testing", "testutil", "testutils", "test_utils", "test-utils", "testhelpers"];

/// Whether a path is a test only by a folder of helpers below another one: `app/testing/fake.py`. A library may ship those.
pub fn is_support(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let nested = parts.iter().skip(1).any(|part| SUPPORT.contains(part));
    let others: Vec<&str> = parts.iter().map(|p| if SUPPORT.contains(p) { "support" } else { *p }).collect();
    nested && is_test_path(path) && !is_test_path(&others.join("/"))
}

/// Whether a path is the source of a test: what a run of tests does not change by itself.
pub fn is_test_source(path: &str) -> bool {
    is_test_path(path) && !is_snapshot(path)
}

/// Whether a path holds recorded expectations.
pub fn is_snapshot(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let by_name = SNAPSHOT_ENDS.iter().any(|e| name.ends_with(e));
    let by_folder = folders.split('/').any(|f| SNAPSHOT_FOLDERS.contains(&f));
    let ui_test = folders.starts_with("tests") && (name.ends_with(".stdout") || name.ends_with(".stderr"));
    by_name || by_folder || ui_test
}

/// Whether a path is something that tests read, by its folder: `tests/data/want.json`.
pub fn is_test_data(path: &str) -> bool {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/').any(|folder| DATA_FOLDERS.contains(&folder))
}

/// How a file decides what runs as a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Config {
    /// All of it does.
    Whole,
    /// Lines with one of these words do.
    Lines(&'static [&'static str]),
    /// Its targets for tests do.
    Targets,
}

const PYTHON: &[&str] = &[
    "addopts",
    "testpaths",
    "python_files",
    "python_functions",
    "python_classes",
    "norecursedirs",
    "[tool.pytest",
    "[tool:pytest",
    "collect_ignore",
    "deselect",
    "fail_under",
    "xfail_strict",
    "markers",
];
const NODE: &[&str] = &[
    "\"test\"",
    "\"test:",
    "\"pretest",
    "\"posttest",
    "\"postinstall\"",
    "\"preinstall\"",
    "\"prepare\"",
    "\"jest\"",
    "\"vitest\"",
    "\"mocha\"",
    "\"ava\"",
    "testMatch",
    "testPathIgnorePatterns",
    "passWithNoTests",
    "coverageThreshold",
];
const CARGO: &[&str] = &["test = false", "harness = false", "autotests", "doctest = false", "autobenches"];
const JVM: &[&str] = &[
    "skipTests",
    "maven.test.skip",
    "testFailureIgnore",
    "ignoreFailures",
    "<exclude",
    "exclude",
    "enabled = false",
];

/// Whether, and how, a file decides what runs as a test.
pub(super) fn config(path: &str) -> Option<Config> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let whole = [
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "tox.ini",
        "noxfile.py",
        ".coveragerc",
        "karma.conf.js",
        "phpunit.xml",
        "phpunit.xml.dist",
        ".rspec",
        "nextest.toml",
        ".gitmodules",
        "sitecustomize.py",
        "usercustomize.py",
        ".bazelrc",
    ];
    let stems = [
        "jest.config.",
        "vitest.config.",
        "vitest.workspace.",
        ".mocharc",
        "playwright.config.",
        "cypress.config.",
        "ava.config.",
    ];
    if whole.contains(&name) || stems.iter().any(|s| name.starts_with(s)) {
        return Some(Config::Whole);
    }
    match name {
        "pyproject.toml" | "setup.cfg" => Some(Config::Lines(PYTHON)),
        "package.json" => Some(Config::Lines(NODE)),
        "Cargo.toml" => Some(Config::Lines(CARGO)),
        "pom.xml" | "build.gradle" | "build.gradle.kts" => Some(Config::Lines(JVM)),
        "Makefile" | "makefile" | "GNUmakefile" | "justfile" | "Justfile" | ".justfile" | "Rakefile" => {
            Some(Config::Targets)
        }
        _ => None,
    }
}
