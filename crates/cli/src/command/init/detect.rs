//! How the tests of a repo are run, from the files that say so.

use serde_json::Value;
use std::path::Path;

/// A command that runs tests, and the file it was found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCommand {
    /// The command.
    pub argv: Vec<String>,
    /// The file or folder that names it.
    pub source: &'static str,
}

/// Every test command that the files at the top of a repo speak of, the likeliest first.
pub fn test_commands(top: &Path) -> Vec<TestCommand> {
    let has = |name: &str| top.join(name).is_file();
    let mut found = Vec::new();
    let mut add = |source: &'static str, argv: &[&str]| {
        found.push(TestCommand { argv: argv.iter().map(|a| (*a).to_owned()).collect(), source });
    };
    if has("Cargo.toml") {
        add("Cargo.toml", &["cargo", "test"]);
    }
    if package_has_tests(top) {
        let manager = if has("pnpm-lock.yaml") {
            "pnpm"
        } else if has("yarn.lock") {
            "yarn"
        } else {
            "npm"
        };
        add("package.json", &[manager, "test"]);
    }
    if let Some(source) = python(top) {
        add(source, &["python3", "-m", "pytest"]);
    }
    if has("go.mod") {
        add("go.mod", &["go", "test", "./..."]);
    }
    for name in ["Makefile", "makefile", "GNUmakefile"] {
        if has_target(&read(top, name)) {
            add(name, &["make", "test"]);
            break;
        }
    }
    for name in ["justfile", "Justfile", ".justfile"] {
        if has_target(&read(top, name)) {
            add(name, &["just", "test"]);
            break;
        }
    }
    found
}

fn read(top: &Path, name: &str) -> String {
    std::fs::read_to_string(top.join(name)).unwrap_or_default()
}

/// A `test` script that is not the one `npm init` writes, which only fails.
fn package_has_tests(top: &Path) -> bool {
    let package: Value = serde_json::from_str(&read(top, "package.json")).unwrap_or_default();
    package["scripts"]["test"]
        .as_str()
        .is_some_and(|s| !s.trim().is_empty() && !s.contains("no test specified"))
}

fn python(top: &Path) -> Option<&'static str> {
    let file = ["pytest.ini", "pyproject.toml", "setup.cfg"].into_iter().find(|n| top.join(n).is_file());
    file.or_else(|| has_python_tests(&top.join("tests")).then_some("tests/"))
}

/// A folder `tests` says nothing by itself; one with pytest's file names does.
fn has_python_tests(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(1000).any(|e| {
        let name = e.file_name().to_string_lossy().into_owned();
        name.strip_suffix(".py")
            .is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test") || stem == "conftest")
    })
}

/// A line `test:` or `test arg:`, as make and just write a target; not a variable `test := x`.
fn has_target(text: &str) -> bool {
    text.lines().any(|line| {
        let Some((head, rest)) = line.split_once(':') else { return false };
        !line.starts_with([' ', '\t', '#'])
            && !rest.starts_with('=')
            && head.split_whitespace().next() == Some("test")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        test_commands(folder.path())
            .into_iter()
            .map(|t| format!("{} ({})", t.argv.join(" "), t.source))
            .collect()
    }

    #[test]
    fn every_known_kind_of_repo_is_recognised() {
        let script = r#"{"scripts":{"test":"vitest"}}"#;
        assert_eq!(detect(&[("Cargo.toml", "")]), ["cargo test (Cargo.toml)"]);
        assert_eq!(detect(&[("package.json", script)]), ["npm test (package.json)"]);
        assert_eq!(detect(&[("package.json", script), ("pnpm-lock.yaml", "")]), ["pnpm test (package.json)"]);
        assert_eq!(detect(&[("package.json", script), ("yarn.lock", "")]), ["yarn test (package.json)"]);
        assert_eq!(detect(&[("pyproject.toml", "")]), ["python3 -m pytest (pyproject.toml)"]);
        assert_eq!(detect(&[("setup.cfg", "")]), ["python3 -m pytest (setup.cfg)"]);
        assert_eq!(detect(&[("tests/test_a.py", "")]), ["python3 -m pytest (tests/)"]);
        assert_eq!(detect(&[("go.mod", "")]), ["go test ./... (go.mod)"]);
        assert_eq!(detect(&[("Makefile", "all:\n\ntest: all\n\t./t\n")]), ["make test (Makefile)"]);
        assert_eq!(detect(&[("justfile", "test filter='':\n  ./t\n")]), ["just test (justfile)"]);
    }

    #[test]
    fn what_only_looks_like_tests_is_not_taken() {
        assert_eq!(detect(&[]), [""; 0]);
        let stub = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
        assert_eq!(detect(&[("package.json", stub)]), [""; 0]);
        assert_eq!(detect(&[("package.json", "not json")]), [""; 0]);
        assert_eq!(detect(&[("Makefile", "test := x\nlatest:\n\ttest: y\n")]), [""; 0]);
        assert_eq!(detect(&[("tests/run.sh", "")]), [""; 0]);
    }

    #[test]
    fn the_likeliest_comes_first_and_the_others_are_named() {
        assert_eq!(
            detect(&[("Makefile", "test:\n"), ("Cargo.toml", "")]),
            ["cargo test (Cargo.toml)", "make test (Makefile)"]
        );
    }
}
