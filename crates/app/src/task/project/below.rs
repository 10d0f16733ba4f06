//! Projects below the top of a repo: the one the user is in, and candidates if the top has no tests.

use super::{ProjectCommand, has, setup_commands, test_commands};
use crate::trust::repo_file;
use ralph_loop_safe_fs::Kind;
use ralph_loop_task::config::{CommandLine, join_argv};
use std::path::{Path, PathBuf};

/// Files that make a folder a project. Test files alone belong to the folder above.
const PROJECT_FILES: &[&str] = &[
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "pytest.ini",
    "requirements.txt",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "Makefile",
    "justfile",
];
/// Third-party and generated folders.
const NOT_OURS: &[&str] = &["node_modules", "vendor", "third_party", "target", "dist", "build", "venv"];
const DEPTH_MAX: usize = 3;
const FOLDERS_MAX: usize = 300;
const NAMES_MAX: usize = 1000;
const PROPOSED_MAX: usize = 3;

/// Test commands of the project around `folder`, if that is below the top; each starts with `cd`.
pub fn tests_where_one_stands(top: &Path, folder: &Path) -> Option<(Vec<ProjectCommand>, Vec<CommandLine>)> {
    let below = folder.strip_prefix(top).ok()?;
    let mut places = below.ancestors().filter(|place| !place.as_os_str().is_empty());
    places.find_map(|place| {
        let tests = tests_in(top, place);
        let setup = || {
            let all = setup_commands(&top.join(place)).into_iter();
            all.map(|command| CommandLine::Shell(at(place, &command.display()))).collect()
        };
        (!tests.is_empty()).then(|| (tests, setup()))
    })
}

/// Test commands of projects below the top, nearest first, to propose if the top has none.
pub fn proposed_tests(top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![(PathBuf::new(), 0)];
    let mut seen = 0;
    while !left.is_empty() && found.len() < PROPOSED_MAX && seen < FOLDERS_MAX {
        let (place, depth) = left.remove(0);
        seen += 1;
        if let Some(first) = tests_in(top, &place).first() {
            found.extend(first.argv.last().cloned());
            continue;
        }
        if depth < DEPTH_MAX {
            let mut names: Vec<PathBuf> = repo_file::entries(&top.join(&place), NAMES_MAX)
                .into_iter()
                .filter(|entry| entry.kind == Kind::Folder)
                .filter(|entry| {
                    let name = entry.name.to_string_lossy();
                    !name.starts_with('.') && !NOT_OURS.contains(&&*name)
                })
                .map(|entry| place.join(entry.name))
                .collect();
            names.sort();
            left.extend(names.into_iter().map(|name| (name, depth + 1)));
        }
    }
    found
}

fn tests_in(top: &Path, place: &Path) -> Vec<ProjectCommand> {
    let folder = top.join(place);
    if place.as_os_str().is_empty() || !PROJECT_FILES.iter().any(|name| has(&folder, name)) {
        return Vec::new();
    }
    let there = |test: ProjectCommand| ProjectCommand {
        argv: vec!["sh".into(), "-c".into(), at(place, &join_argv(&test.argv))],
        source: place.join(&*test.source).display().to_string().into(),
    };
    test_commands(&folder).into_iter().map(there).collect()
}

/// `cd packages/web && npm test`.
fn at(place: &Path, command: &str) -> String {
    let cd = join_argv(&["cd".to_owned(), place.display().to_string()]);
    format!("{cd} && {command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repo(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    const NPM: &str = r#"{"scripts":{"test":"vitest"}}"#;

    #[test]
    fn a_subfolder_selects_its_own_project() {
        let repo = repo(&[
            ("packages/web/package.json", NPM),
            ("packages/web/package-lock.json", "{}"),
            ("packages/web/src/deep/a.js", ""),
            ("tests/test_a.py", "def test_a():\n    assert True\n"),
            ("my app/go.mod", ""),
        ]);
        let top = repo.path();
        let (tests, setup) = tests_where_one_stands(top, &top.join("packages/web/src/deep")).unwrap();
        assert_eq!(tests[0].argv, ["sh", "-c", "cd packages/web && npm test"]);
        assert_eq!(tests[0].source, "packages/web/package.json");
        assert_eq!(setup, [CommandLine::Shell("cd packages/web && npm ci".into())]);
        let (tests, _) = tests_where_one_stands(top, &top.join("my app")).unwrap();
        assert_eq!(tests[0].argv[2], "cd 'my app' && go test ./...");
        assert_eq!(tests_where_one_stands(top, top), None);
        assert_eq!(tests_where_one_stands(top, &top.join("tests")), None, "tests of the project above it");
    }

    #[test]
    fn those_below_the_top_are_proposed_the_nearest_first() {
        let repo = repo(&[
            ("packages/web/package.json", NPM),
            ("packages/web/node_modules/x/package.json", NPM),
            ("api/Cargo.toml", ""),
            (".hidden/package.json", NPM),
            ("docs/readme.md", ""),
        ]);
        assert_eq!(proposed_tests(repo.path()), ["cd api && cargo test", "cd packages/web && npm test"]);
    }
}
