//! Detects how a Python repo is tested: pytest or unittest, directly or through uv, poetry, tox, nox or
//! hatch.

use super::{ProjectCommands, Purpose, has, read};
use crate::trust::repo_file;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Test files read to tell the two runners apart.
const READ: usize = 20;

pub(super) fn add(top: &Path, found: &mut ProjectCommands) {
    let file_of = |names: &[&'static str]| names.iter().copied().find(|name| has(top, name));
    let project = read(top, "pyproject.toml");
    let says = |table: &str| project.lines().any(|line| line.trim_start().starts_with(table));
    let from_project = |table: &str| says(table).then_some("pyproject.toml");
    let mut others = ProjectCommands::default();
    if let Some(source) = file_of(&["tox.ini"]).or_else(|| from_project("[tool.tox")) {
        others.add(Purpose::Test, source, &["tox"]);
    }
    if has(top, "noxfile.py") {
        others.add(Purpose::Test, "noxfile.py", &["nox", "-r"]);
    }
    if let Some(source) = from_project("[tool.hatch.envs") {
        others.add(Purpose::Test, source, hatch(&project));
    }
    let mut own = ProjectCommands::default();
    tests(top, &project, &mut own);
    // Tools that create environments come first, unless theirs are missing and another one exists.
    let made = [".tox", ".nox"].into_iter().any(|name| !repo_file::entries(&top.join(name), 1).is_empty());
    let ready = FOLDERS.into_iter().any(|folder| is_ready(top, folder));
    let [first, second] = if ready && !made { [own, others] } else { [others, own] };
    found.tests.extend(first.tests.into_iter().chain(second.tests));
    let ruff = file_of(&["ruff.toml", ".ruff.toml"]).or_else(|| from_project("[tool.ruff"));
    if let Some(source) = ruff {
        found.add(Purpose::Lint, source, &["ruff", "check", "."]);
    }
    let mypy = file_of(&["mypy.ini", ".mypy.ini"])
        .or_else(|| from_project("[tool.mypy"))
        .or_else(|| read(top, "setup.cfg").lines().any(|l| l.trim() == "[mypy]").then_some("setup.cfg"));
    if let Some(source) = mypy {
        found.add(Purpose::Typecheck, source, &["mypy", "."]);
    }
}

/// Hatch's test script of a project.
fn hatch(project: &str) -> &'static [&'static str] {
    let mut scripts =
        project.lines().skip_while(|line| line.trim() != "[tool.hatch.envs.default.scripts]").skip(1);
    let named = |line: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == "test");
    if scripts.by_ref().take_while(|line| !line.starts_with('[')).any(named) {
        &["hatch", "run", "test"]
    } else if project.contains("[tool.hatch.envs.hatch-test") {
        &["hatch", "test"]
    } else {
        &["hatch", "run", "pytest"]
    }
}

/// Common virtual environment folders.
const FOLDERS: [&str; 3] = [".venv", "venv", "env"];

fn is_environment(top: &Path, folder: &str) -> bool {
    has(&top.join(folder), "pyvenv.cfg")
}

/// Whether a virtual environment with pytest exists.
fn is_ready(top: &Path, folder: &str) -> bool {
    is_environment(top, folder) && has(&top.join(folder).join("bin"), "pytest")
}

/// The virtual environment for the tests: an existing usable one, or the one that setup creates.
fn venv(top: &Path, needs_pytest: bool) -> Option<&'static str> {
    let can = |folder: &&str| is_ready(top, folder) || (!needs_pytest && is_environment(top, folder));
    let there = FOLDERS.into_iter().find(can);
    let listed = || ["requirements.txt", "requirements-dev.txt"].into_iter().any(|name| has(top, name));
    let managed =
        || ["uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"].into_iter().any(|name| has(top, name));
    there.or_else(|| (listed() && !managed()).then_some(".venv"))
}

fn tests(top: &Path, project: &str, found: &mut ProjectCommands) {
    let has = |name: &str| has(top, name);
    let layout = Layout::of(top);
    let files = ["pytest.ini", "pyproject.toml", "setup.cfg", "conftest.py"];
    let named = files.into_iter().find(|name| has(name)).map(Cow::Borrowed);
    let Some(source) = named.or(layout.source) else { return };
    let says = |table: &str| project.lines().any(|line| line.trim_start().starts_with(table));
    let runner = if has("uv.lock") || says("[tool.uv") {
        Some(("uv", if has("uv.lock") { "uv.lock" } else { "pyproject.toml" }))
    } else if has("poetry.lock") || says("[tool.poetry") {
        Some(("poetry", if has("poetry.lock") { "poetry.lock" } else { "pyproject.toml" }))
    } else {
        None
    };
    let asks_for_pytest = has("pytest.ini") || has("conftest.py") || names_pytest(top, project);
    let inner: Vec<&str> = match layout.unittest.filter(|_| !asks_for_pytest) {
        Some(folder) => {
            let mut argv = vec!["-m", "unittest", "discover"];
            argv.extend(folder.into_iter().flat_map(|folder| ["-s", folder]));
            argv
        }
        None => vec!["-m", "pytest"],
    };
    let needs_pytest = inner == ["-m", "pytest"];
    let ready = FOLDERS.into_iter().find(|folder| is_ready(top, folder));
    if let Some(folder) = ready.filter(|_| runner.is_some()) {
        // The environment exists, so checks needn't update it.
        found.add(Purpose::Test, source.clone(), &[&[&*format!("{folder}/bin/python")], &*inner].concat());
    }
    match runner {
        Some((program, source)) if needs_pytest => {
            found.add(Purpose::Test, source, &[program, "run", "pytest"]);
        }
        Some((program, source)) => {
            found.add(Purpose::Test, source, &[&[program, "run", "python"], &*inner].concat());
        }
        None => {
            let folder = venv(top, needs_pytest);
            let python = folder.map_or_else(|| "python3".to_owned(), |folder| format!("{folder}/bin/python"));
            found.add(Purpose::Test, source, &[&[python.as_str()], &*inner].concat());
        }
    }
}

/// Whether the repo names pytest as a dependency.
fn names_pytest(top: &Path, project: &str) -> bool {
    let lists = ["requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt"];
    let lists = lists.into_iter().chain(["setup.py", "setup.cfg", "Pipfile"]);
    project.contains("pytest") || lists.into_iter().any(|name| read(top, name).contains("pytest"))
}

/// Where test files are, by pytest and unittest naming.
#[derive(Debug, Default)]
struct Layout {
    /// The file or folder that shows it.
    source: Option<Cow<'static, str>>,
    /// Set if every file read is written for unittest; the inner value is the folder to pass, if any.
    unittest: Option<Option<&'static str>>,
}

impl Layout {
    fn of(top: &Path) -> Self {
        for (folder, source) in [("tests", "tests/"), ("test", "test/")] {
            let files = test_files(&top.join(folder));
            if files.is_empty() {
                continue;
            }
            let told = (!has(&top.join(folder), "__init__.py")).then_some(folder);
            return Self { source: Some(source.into()), unittest: are_unittest(&files).then_some(told) };
        }
        let files = test_files(top);
        let Some(first) = files.first() else { return Self::default() };
        let name = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { source: Some(name.into()), unittest: are_unittest(&files).then_some(None) }
    }
}

/// Test files in one folder, by name.
fn test_files(folder: &Path) -> Vec<PathBuf> {
    let entries = repo_file::entries(folder, 1000).into_iter();
    entries.map(|entry| folder.join(entry.name)).filter(|path| is_test(path)).collect()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".py");
    stem.is_some_and(|s| s.starts_with("test_") || s.ends_with("_test") || s == "conftest")
        && repo_file::is_file(path)
}

fn are_unittest(files: &[PathBuf]) -> bool {
    let texts = files.iter().take(READ).map(|file| repo_file::read_text(file).unwrap_or_default());
    let mut any = false;
    for text in texts {
        if text.contains("pytest") || (text.contains("def test_") && !text.contains("unittest")) {
            return false;
        }
        any |= text.contains("unittest");
    }
    any && !files.iter().any(|file| file.ends_with("conftest.py"))
}
