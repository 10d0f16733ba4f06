//! Detects how a repo is tested, linted and type-checked.

mod below;
mod python;

pub use below::{proposed_tests, tests_where_one_stands};

use crate::trust::repo_file;
use ralph_loop_task::config::{CommandLine, join_argv};
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;

/// A project command, and the file it was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectCommand {
    pub argv: Vec<String>,
    /// The file or folder that names it.
    pub source: Cow<'static, str>,
}

impl ProjectCommand {
    /// As typed in a shell.
    pub fn command_line(&self) -> String {
        match self.argv.as_slice() {
            [sh, c, line] if sh == "sh" && c == "-c" => line.clone(),
            argv => join_argv(argv),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Test,
    /// Finds style problems and likely mistakes.
    Lint,
    Typecheck,
}

/// A project's commands, most likely first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectCommands {
    pub tests: Vec<ProjectCommand>,
    pub lints: Vec<ProjectCommand>,
    pub typechecks: Vec<ProjectCommand>,
}

impl ProjectCommands {
    fn add(&mut self, purpose: Purpose, source: impl Into<Cow<'static, str>>, argv: &[&str]) {
        let list = match purpose {
            Purpose::Test => &mut self.tests,
            Purpose::Lint => &mut self.lints,
            Purpose::Typecheck => &mut self.typechecks,
        };
        list.push(ProjectCommand {
            argv: argv.iter().map(|a| (*a).to_owned()).collect(),
            source: source.into(),
        });
    }
}

/// Test commands named by files at the top of a repo, most likely first.
pub fn test_commands(top: &Path) -> Vec<ProjectCommand> {
    project_commands(top).tests
}

/// Commands that install dependencies from lock files, for a clean checkout.
pub fn setup_commands(top: &Path) -> Vec<CommandLine> {
    ralph_loop_domain::repo::setup::setup_commands(|name| has(top, name))
        .into_iter()
        .map(|setup| CommandLine::Shell(setup.command.to_owned()))
        .collect()
}

/// All commands named by files at the top of a repo.
pub fn project_commands(top: &Path) -> ProjectCommands {
    let has = |name: &str| has(top, name);
    let mut found = ProjectCommands::default();
    if has("Cargo.toml") {
        found.add(Purpose::Test, "Cargo.toml", &["cargo", "test"]);
        found.add(Purpose::Lint, "Cargo.toml", &["cargo", "clippy", "--all-targets"]);
        found.add(Purpose::Typecheck, "Cargo.toml", &["cargo", "check", "--all-targets"]);
    }
    node(top, &mut found);
    python::add(top, &mut found);
    if has("go.mod") {
        found.add(Purpose::Test, "go.mod", &["go", "test", "./..."]);
        found.add(Purpose::Lint, "go.mod", &["go", "vet", "./..."]);
        found.add(Purpose::Typecheck, "go.mod", &["go", "build", "./..."]);
    }
    jvm(top, &mut found);
    ruby(top, &mut found);
    php(top, &mut found);
    if has("mix.exs") {
        found.add(Purpose::Test, "mix.exs", &["mix", "test"]);
    }
    for (program, names) in
        [("make", ["Makefile", "makefile", "GNUmakefile"]), ("just", ["justfile", "Justfile", ".justfile"])]
    {
        let Some(name) = names.into_iter().find(|name| has(name)) else { continue };
        targets(&read(top, name), name, program, &mut found);
    }
    found
}

fn targets(text: &str, name: &'static str, program: &str, found: &mut ProjectCommands) {
    for (purpose, words) in [
        (Purpose::Test, &["test", "tests", "check"][..]),
        (Purpose::Lint, &["lint"][..]),
        (Purpose::Typecheck, &["typecheck", "type-check"][..]),
    ] {
        if let Some(word) = words.iter().find(|word| has_target(text, word)) {
            found.add(purpose, name, &[program, word]);
        }
    }
}

/// Maven and Gradle, through their wrapper if present.
fn jvm(top: &Path, found: &mut ProjectCommands) {
    let has = |name: &str| has(top, name);
    if has("pom.xml") {
        let program = if has("mvnw") { "./mvnw" } else { "mvn" };
        found.add(Purpose::Test, "pom.xml", &[program, "-B", "test"]);
    }
    let builds = ["build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle"];
    if let Some(source) = builds.into_iter().find(|name| has(name)) {
        let program = if has("gradlew") { "./gradlew" } else { "gradle" };
        found.add(Purpose::Test, source, &[program, "test"]);
    }
}

fn ruby(top: &Path, found: &mut ProjectCommands) {
    let rspec = [".rspec", "spec/spec_helper.rb"].into_iter().find(|name| has(top, name));
    let (source, command): (_, &[&str]) = if let Some(source) = rspec {
        (source, &["rspec"])
    } else if has(top, "bin/rails") {
        ("bin/rails", &["rails", "test"])
    } else if ["TestTask", "task :test", "task test"].iter().any(|word| read(top, "Rakefile").contains(word))
    {
        ("Rakefile", &["rake", "test"])
    } else {
        return;
    };
    let bundle: &[&str] = if has(top, "Gemfile") { &["bundle", "exec"] } else { &[] };
    found.add(Purpose::Test, source, &[bundle, command].concat());
}

fn php(top: &Path, found: &mut ProjectCommands) {
    let composer: Value = serde_json::from_str(&read(top, "composer.json")).unwrap_or_default();
    if !composer["scripts"]["test"].is_null() {
        found.add(Purpose::Test, "composer.json", &["composer", "test"]);
    } else if let Some(source) = ["phpunit.xml", "phpunit.xml.dist"].into_iter().find(|name| has(top, name)) {
        found.add(Purpose::Test, source, &["vendor/bin/phpunit"]);
    }
}

fn node(top: &Path, found: &mut ProjectCommands) {
    let package: Value = serde_json::from_str(&read(top, "package.json")).unwrap_or_default();
    let has = |name: &str| has(top, name);
    let named = package["packageManager"].as_str().unwrap_or_default();
    let manager = [
        ("pnpm", &["pnpm-lock.yaml"][..]),
        ("yarn", &["yarn.lock"][..]),
        ("bun", &["bun.lock", "bun.lockb"][..]),
    ]
    .into_iter()
    .find(|(name, locks)| locks.iter().any(|lock| has(lock)) || named.starts_with(&format!("{name}@")))
    .map_or("npm", |(name, _)| name);
    // The `test` script from `npm init` always fails.
    let script = |name: &str| {
        package["scripts"][name]
            .as_str()
            .is_some_and(|s| !s.trim().is_empty() && !s.contains("no test specified"))
    };
    if script("test") && manager == "bun" {
        // `bun test` is bun's own runner instead.
        found.add(Purpose::Test, "package.json", &["bun", "run", "test"]);
    } else if script("test") {
        found.add(Purpose::Test, "package.json", &[manager, "test"]);
    } else if manager == "bun" && has("package.json") {
        found.add(Purpose::Test, "package.json", &["bun", "test"]);
    }
    if script("lint") {
        found.add(Purpose::Lint, "package.json", &[manager, "run", "lint"]);
    }
    let names = ["typecheck", "type-check", "check-types", "tsc"];
    if let Some(name) = names.into_iter().find(|name| script(name)) {
        found.add(Purpose::Typecheck, "package.json", &[manager, "run", name]);
    } else if has("tsconfig.json") && has("package.json") {
        found.add(Purpose::Typecheck, "tsconfig.json", &["npx", "tsc", "--noEmit"]);
    }
}

fn has(top: &Path, name: &str) -> bool {
    repo_file::is_file(&top.join(name))
}

fn read(top: &Path, name: &str) -> String {
    repo_file::read_text(&top.join(name)).unwrap_or_default()
}

/// A make or just target `test:` or `test arg:`, but not a variable `test := x`.
fn has_target(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let Some((head, rest)) = line.split_once(':') else { return false };
        !line.starts_with([' ', '\t', '#'])
            && !rest.starts_with('=')
            && head.split_whitespace().next() == Some(name)
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
        assert_eq!(detect(&[("Makefile", "check:\n\t./t\n")]), ["make check (Makefile)"]);
        assert_eq!(detect(&[("package.json", script), ("bun.lock", "")]), ["bun run test (package.json)"]);
        let managed = r#"{"packageManager":"pnpm@9.1.0","scripts":{"test":"vitest"}}"#;
        assert_eq!(detect(&[("package.json", managed)]), ["pnpm test (package.json)"]);
        assert_eq!(detect(&[("pom.xml", "")]), ["mvn -B test (pom.xml)"]);
        assert_eq!(detect(&[("pom.xml", ""), ("mvnw", "")]), ["./mvnw -B test (pom.xml)"]);
        assert_eq!(detect(&[("build.gradle", ""), ("gradlew", "")]), ["./gradlew test (build.gradle)"]);
        assert_eq!(detect(&[("build.gradle.kts", "")]), ["gradle test (build.gradle.kts)"]);
        let (gems, rake) = (("Gemfile", ""), ("Rakefile", "Rake::TestTask.new\n"));
        assert_eq!(detect(&[gems, rake]), ["bundle exec rake test (Rakefile)"]);
        assert_eq!(detect(&[gems, rake, (".rspec", "")]), ["bundle exec rspec (.rspec)"]);
        assert_eq!(detect(&[("Rakefile", "task :build\n")]), [""; 0]);
        let composer = r#"{"scripts":{"test":["phpunit"]}}"#;
        assert_eq!(detect(&[("composer.json", composer)]), ["composer test (composer.json)"]);
        assert_eq!(
            detect(&[("composer.json", "{}"), ("phpunit.xml.dist", "")]),
            ["vendor/bin/phpunit (phpunit.xml.dist)"]
        );
        assert_eq!(detect(&[("mix.exs", "")]), ["mix test (mix.exs)"]);
    }

    #[test]
    fn python_is_tested_by_what_the_repo_uses() {
        let unit = "import unittest\nclass T(unittest.TestCase):\n    pass\n";
        let plain = "def test_a():\n    assert True\n";
        assert_eq!(detect(&[("test_a.py", plain)]), ["python3 -m pytest (test_a.py)"]);
        assert_eq!(detect(&[("a_test.py", plain), ("a.py", "")]), ["python3 -m pytest (a_test.py)"]);
        assert_eq!(detect(&[("test/test_a.py", plain)]), ["python3 -m pytest (test/)"]);
        assert_eq!(detect(&[("test_a.py", unit)]), ["python3 -m unittest discover (test_a.py)"]);
        assert_eq!(detect(&[("tests/test_a.py", unit)]), ["python3 -m unittest discover -s tests (tests/)"]);
        assert_eq!(
            detect(&[("tests/test_a.py", unit), ("tests/__init__.py", "")]),
            ["python3 -m unittest discover (tests/)"]
        );
        assert_eq!(
            detect(&[("tests/test_a.py", unit), ("requirements-dev.txt", "pytest>=8\n")]),
            [".venv/bin/python -m pytest (tests/)"]
        );
        assert_eq!(
            detect(&[("tests/test_a.py", unit), ("tests/test_b.py", "import pytest\n")]),
            ["python3 -m pytest (tests/)"]
        );
        assert_eq!(
            detect(&[("pyproject.toml", ""), ("uv.lock", ""), ("tests/test_a.py", unit)]),
            ["uv run python -m unittest discover -s tests (uv.lock)"]
        );
        assert_eq!(detect(&[("pyproject.toml", ""), ("uv.lock", "")]), ["uv run pytest (uv.lock)"]);
        assert_eq!(detect(&[("pyproject.toml", "[tool.poetry]\n")]), ["poetry run pytest (pyproject.toml)"]);
        assert_eq!(detect(&[("tox.ini", "")]), ["tox (tox.ini)"]);
        assert_eq!(
            detect(&[("pyproject.toml", "[tool.tox]\n")]),
            ["tox (pyproject.toml)", "python3 -m pytest (pyproject.toml)"]
        );
    }

    #[test]
    fn the_environment_that_is_there_and_has_the_runner_tests_the_repo() {
        let (cfg, pytest) = ((".venv/pyvenv.cfg", ""), (".venv/bin/pytest", ""));
        let (test, list) =
            (("tests/test_a.py", "def test_a():\n    pass\n"), ("requirements.txt", "pytest\n"));
        let (tox, lock) = (("tox.ini", ""), ("uv.lock", ""));
        let unit = ("tests/test_a.py", "import unittest\n");
        for (files, want) in [
            (&[test][..], "python3 -m pytest (tests/)"),
            (&[test, cfg], "python3 -m pytest (tests/)"),
            (&[test, cfg, pytest], ".venv/bin/python -m pytest (tests/)"),
            (&[unit, cfg], ".venv/bin/python -m unittest discover -s tests (tests/)"),
            (&[test, list], ".venv/bin/python -m pytest (tests/)"),
            (&[test, cfg, list], ".venv/bin/python -m pytest (tests/)"),
            (&[test, lock], "uv run pytest (uv.lock)"),
            (&[test, cfg, pytest, lock], ".venv/bin/python -m pytest (tests/)"),
            (&[test, cfg, pytest, tox], ".venv/bin/python -m pytest (tests/)"),
            (&[test, cfg, pytest, tox, (".tox/py/pyvenv.cfg", "")], "tox (tox.ini)"),
            (&[test, tox], "tox (tox.ini)"),
            (&[("venv/pyvenv.cfg", ""), ("venv/bin/pytest", ""), test], "venv/bin/python -m pytest (tests/)"),
            (&[test, ("noxfile.py", "")], "nox -r (noxfile.py)"),
        ] {
            assert_eq!(detect(files)[0], want, "{files:?}");
        }
        let hatch = "[tool.hatch.envs.default.scripts]\ntest = \"pytest\"\n";
        assert_eq!(detect(&[("pyproject.toml", hatch)])[0], "hatch run test (pyproject.toml)");
        let hatch = "[tool.hatch.envs.hatch-test]\n";
        assert_eq!(detect(&[("pyproject.toml", hatch)])[0], "hatch test (pyproject.toml)");
    }

    #[test]
    fn setup_is_detected_from_lock_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Cargo.lock"), "").unwrap();
        assert_eq!(setup_commands(folder.path()), []);
        std::fs::write(folder.path().join("package-lock.json"), "").unwrap();
        assert_eq!(setup_commands(folder.path()), [CommandLine::Shell("npm ci".into())]);
    }

    fn others(files: &[(&str, &str)]) -> [String; 2] {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let found = project_commands(folder.path());
        [found.lints, found.typechecks].map(|list| {
            list.into_iter()
                .map(|c| format!("{} ({})", c.argv.join(" "), c.source))
                .collect::<Vec<_>>()
                .join(", ")
        })
    }

    #[test]
    fn linters_and_type_checkers_are_found_where_a_file_speaks_of_them() {
        let scripts = r#"{"scripts":{"lint":"eslint .","typecheck":"tsc"}}"#;
        assert_eq!(
            others(&[("package.json", scripts), ("pnpm-lock.yaml", "")]),
            ["pnpm run lint (package.json)", "pnpm run typecheck (package.json)"]
        );
        assert_eq!(
            others(&[("package.json", "{}"), ("tsconfig.json", "{}")]),
            ["", "npx tsc --noEmit (tsconfig.json)"]
        );
        assert_eq!(
            others(&[("pyproject.toml", "[tool.ruff]\n[tool.mypy]\n")]),
            ["ruff check . (pyproject.toml)", "mypy . (pyproject.toml)"]
        );
        assert_eq!(others(&[("setup.cfg", "[mypy]\n")]), ["", "mypy . (setup.cfg)"]);
        assert_eq!(others(&[("go.mod", "")]), ["go vet ./... (go.mod)", "go build ./... (go.mod)"]);
        assert_eq!(
            others(&[("Cargo.toml", "")]),
            ["cargo clippy --all-targets (Cargo.toml)", "cargo check --all-targets (Cargo.toml)"]
        );
        assert_eq!(
            others(&[("Makefile", "lint:\ntype-check: lint\n")]),
            ["make lint (Makefile)", "make type-check (Makefile)"]
        );
        assert_eq!(others(&[("justfile", "lint *args:\n")]), ["just lint (justfile)", ""]);
        assert_eq!(others(&[("pyproject.toml", "")]), ["", ""]);
    }

    #[test]
    fn lookalike_test_scripts_are_ignored() {
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
